"""The generated reference pages say what the code says."""

from pathlib import Path

import pytest

from ops.reference.pages import PAGES

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_current(name):
    assert (REFERENCE / name).read_text() == PAGES[name](), "make reference"


def test_every_setting_of_the_runtime_is_listed():
    from jobs.runtime.settings import Settings

    page = PAGES["configuration.md"]()
    assert [name for name in Settings.model_fields if f"| `KAPPA_{name.upper()}` |" not in page] == []


def test_a_setting_has_type_default_and_meaning():
    page = PAGES["configuration.md"]()
    assert "| `KAPPA_DRAIN_SECONDS` | number > 0 | `60.0` | how long a stop waits for the running micro-batch |" in page
    assert "| `KAPPA_KAFKA_SASL_PASSWORD` | secret | none |" in page


def test_a_comment_above_a_setting_is_its_meaning():
    page = PAGES["configuration.md"]()
    assert "| Fixed for the life of a checkpoint, as state is partitioned by it. About one a core. |" in page


def test_a_schema_links_to_the_schemas_in_it():
    page = PAGES["records.md"]()
    assert "| `statistics` | table in columns of [statistic](#statistic) |" in page
    assert "| `severity_number` | integer (32 bits) | OTLP's scale: 9 INFO, 13 WARN, 17 ERROR |" in page


def test_every_topic_is_listed_with_its_writer():
    about = "events that arrived later than their topic's lateness allows"
    assert f"| `events.late` | {about} | machine, or its workload | enrichment, statistics |" in PAGES["records.md"]()


def test_a_command_has_its_options_and_its_example():
    page = PAGES["cli.md"]()
    section = page.split("## kappa infra logs\n")[1].split("\n## ")[0]
    assert "| `-n`, `--lines` | integer | `50` | How many of the last lines. |" in section
    assert "```\nkappa infra logs elasticsearch -n 100\n```" in section


def test_a_counter_is_named_as_prometheus_shows_it():
    assert "| `kappa_output_rows_total` | counter | `job`, `target` |" in PAGES["metrics.md"]()
