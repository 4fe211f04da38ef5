"""Advisories in files, against a lock file."""

import json

import pytest
import yaml

from infra.errors import UserError
from tests.supply_chain import audit

HASH = f"    --hash=sha256:{'0' * 64}\n"


def _advisory(name="Some_Package", ranges=(), versions=(), **more):
    affected = {
        "package": {"ecosystem": "PyPI", "name": name},
        "ranges": [{"type": "ECOSYSTEM", "events": list(ranges)}],
        "versions": list(versions),
    }
    return {"id": "PYSEC-1", "aliases": ["CVE-1"], "modified": "2024-01-01T00:00:00Z", "affected": [affected], **more}


@pytest.fixture
def found(tmp_path):
    lock = tmp_path / "requirements.lock"
    lock.write_text(
        f"other==9 \\\n{HASH}    # via kappa (pyproject.toml)\nsome-package==1.10.0 \\\n{HASH}    # via other\n"
    )
    folder = tmp_path / "vulns"
    folder.mkdir()

    def run(advisory):
        (folder / "one.yaml").write_text(yaml.safe_dump(advisory))
        return audit.faults(audit.advisories(folder), lock)

    return run


@pytest.mark.parametrize(
    ("events", "affected"),
    [
        ([{"introduced": "0"}], True),
        ([{"introduced": "0"}, {"fixed": "1.10.0"}], False),
        ([{"introduced": "0"}, {"fixed": "1.10.1"}], True),
        ([{"introduced": "0"}, {"fixed": "1.9"}], False),  # as numbers: 1.9 is before 1.10
        ([{"introduced": "0"}, {"last_affected": "1.10.0"}], True),
        ([{"introduced": "0"}, {"last_affected": "1.9"}], False),
        ([{"introduced": "0"}, {"fixed": "1.0"}, {"introduced": "1.5"}, {"fixed": "2.0"}], True),
        ([{"introduced": "2.0"}], False),
        ([{"introduced": "0"}, {"fixed": "no version"}], True),
    ],
)
def test_a_version_is_affected_by_the_ranges(found, events, affected):
    assert bool(found(_advisory(ranges=events))) is affected


def test_a_version_that_is_named_is_affected(found):
    assert found(_advisory(versions=["1.10.0"])) and not found(_advisory(versions=["1.9"]))


def test_the_line_says_which_and_what_to_do(found):
    fixed = _advisory(ranges=[{"introduced": "0"}, {"fixed": "1.11"}])
    assert found(fixed) == ["some-package 1.10.0: PYSEC-1 (CVE-1): fixed in 1.11; make lock"]
    assert "no version is known" in found(_advisory(versions=["1.10.0"]))[0]


def test_what_is_about_another_package_or_withdrawn_does_not_count(found):
    assert not found(_advisory("another", versions=["1.10.0"]))
    with pytest.raises(UserError, match="no advisory"):
        found(_advisory(versions=["1.10.0"], withdrawn="2024-01-01T00:00:00Z"))


def test_json_is_read_too_and_all_is_counted(tmp_path, capsys):
    (tmp_path / "one.json").write_text(json.dumps(_advisory("pyspark", ranges=[{"introduced": "0"}])))
    assert audit.main([str(tmp_path)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert (
        said[0].startswith("pyspark ") and said[-1] == "1 advisories, the newest of 2024-01-01: 1 affect what is locked"
    )
    (tmp_path / "one.json").write_text(json.dumps(_advisory("pyspark", ranges=[{"introduced": "99"}])))
    assert audit.main([str(tmp_path)]) == 0


def test_a_folder_without_advisories_is_refused(tmp_path, capsys):
    assert audit.main([str(tmp_path)]) == 2
    assert f"ADVISORIES={tmp_path}: has no advisory" in capsys.readouterr().err
    (tmp_path / "one.json").write_text("{")
    assert audit.main([str(tmp_path)]) == 2
    assert "one.json: can't be read as json" in capsys.readouterr().err
