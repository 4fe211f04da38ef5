"""What `kappa replay promote --tolerance` promotes, and what it leaves for a person."""

from contextlib import nullcontext

import pytest
from typer.testing import CliRunner

from infra.errors import UserError
from ops.replay import cli, promotion
from ops.replay.diff import Diff, Difference
from ops.replay.promotion import too_different
from ops.replay.registry import Generation, Promotion, Registry


def differing(count, novelties=100, events=10_000):
    records = [Difference("novelties", {"id": str(number)}, None) for number in range(count)]
    return Diff({"events": (events, events), "novelties": (novelties, novelties - count)}, records)


@pytest.mark.parametrize(
    ("count", "tolerance", "reason"),
    [(0, 0, None), (1, 0.01, None), (1, 0, "1.00% of novelties differ, 0.00% may"),
     (25, 0.2, "25.00% of novelties differ, 20.00% may")],
)  # fmt: skip
def test_the_topic_that_differs_most_decides(count, tolerance, reason):
    assert too_different(differing(count), tolerance) == reason


def test_nothing_to_compare_is_no_proof():
    assert too_different(Diff({"novelties": (0, 0)}), 1) == "there is no record to compare"


@pytest.fixture
def promoted(monkeypatch):
    """The generations that were promoted; `v2` is caught up."""
    names, registry = [], Registry({"v2": Generation(name="v2", base="live", jobs=("detector", "archive", "indexer"))})

    def promote(name, *_):
        names.append(name)
        return Promotion(generation=name, previous="live")

    monkeypatch.setattr(cli.Registry, "read", classmethod(lambda *_: registry))
    monkeypatch.setattr(cli, "session", lambda *_: nullcontext())
    monkeypatch.setattr(cli.promotion, "watch", lambda name, *_: name)
    monkeypatch.setattr(cli.promotion, "check_caught_up", lambda _watched, patience: names.append(patience))
    monkeypatch.setattr(cli.promotion, "promote", promote)
    monkeypatch.setattr(cli, "_compared", lambda first, second, *_: (differing(2), 0))
    return names, registry


def call(*arguments):
    return CliRunner().invoke(cli.app, ["promote", "v2", *arguments])


def test_without_tables_or_documents_it_is_refused_even_by_force(promoted):
    names, registry = promoted
    registry.generations["v2"] = Generation(name="v2", base="live", jobs=("detector", "archive"))
    refused = call("--force")
    assert isinstance(refused.exception, UserError) and "v2: runs without indexer" in str(refused.exception)
    assert not names


def test_within_the_tolerance_it_is_promoted(promoted):
    names, _ = promoted
    assert call("--tolerance", "0.02", "--deadline", "2h").exit_code == 0
    assert names == [7200, "v2"]


def test_beyond_it_is_left_for_a_person_with_one_line_that_says_why(promoted):
    names, _ = promoted
    left = call("--tolerance", "0.01")
    assert left.exit_code == 1 and names == [300]
    assert left.stdout == (
        "v2 is not promoted: 2.00% of novelties differ, 1.00% may; kappa replay diff live v2 shows what differs\n"
    )


def test_without_a_tolerance_nothing_is_compared(promoted):
    assert call("--force").exit_code == 0 and promoted[0] == ["v2"]


def test_what_is_promoted_already_is_not_compared_with_itself(promoted, monkeypatch):
    names, registry = promoted
    registry.promotion = Promotion(generation="v2", previous="live")
    monkeypatch.setattr(cli, "_compared", lambda *_: pytest.fail("compared"))
    assert call("--tolerance", "0").exit_code == 0 and names == [300, "v2"]


@pytest.mark.parametrize(("options", "named"), [(("--tolerance", "2"), "--tolerance"), (("--deadline", "soon"), "")])
def test_a_wrong_option_is_named(promoted, options, named):
    refused = call(*options)
    assert named in refused.output
    assert refused.exit_code == 2 or isinstance(refused.exception, UserError)
    assert promoted[0] == []


def test_the_wait_for_a_generation_ends_at_the_deadline(monkeypatch):
    class Behind:
        class generation:
            name, follows = "v2", True

        def behind(self, _group):
            return 7

    class Never:
        def __init__(self, watched):
            self.watched = watched

        def look(self):
            return "kappa.v2.detector"

    monkeypatch.setattr(promotion, "CatchUp", Never)
    with pytest.raises(UserError, match=r"generation=v2: kappa\.v2\.detector is 7 records behind"):
        promotion.check_caught_up(Behind(), 0)
