"""The images of `make test-upgrade` can still be made of the present code."""

import ast

import pytest

from infra.contract.topics import load_topics
from jobs.runtime.job_settings import load_job_settings
from jobs.runtime.packed_state import VALUE
from jobs.table import JOBS
from tests.deploy.upgrade.variants import ROOT, STATE, VARIANTS, Change


@pytest.mark.parametrize("name", VARIANTS)
def test_its_modules_differ_from_ours_and_are_python(name, tmp_path):
    VARIANTS[name].write(tmp_path / "app", "cpython-311")
    written = list(tmp_path.rglob("*.py"))
    assert written
    for path in written:
        text = path.read_text()
        ast.parse(text)
        assert text != (ROOT / path.relative_to(tmp_path / "app")).read_text()
        # The image never compares byte code with its source.
        assert (path.parent / "__pycache__" / f"{path.stem}.cpython-311.pyc").read_bytes() == b""


def test_a_text_that_has_changed_since_is_named():
    with pytest.raises(ValueError, match=r"a\.py: has 2 times 'x', instead of once"):
        Change("a.py", "x", "y").applied("x x")


def test_the_one_that_converts_reads_our_state_and_we_refuse_what_it_writes(tmp_path):
    job = JOBS["statistics"]
    ours = job.implementation().opener(load_job_settings(job), load_topics())
    VARIANTS["converts"].write(tmp_path, "cpython-311")
    theirs = {"__name__": "theirs"}
    exec((tmp_path / STATE).read_text(), theirs)
    state = theirs["State"](ours(None).state.windows, ours(None).dump())
    assert state.packed()[VALUE + "layout"] == b"5"
    with pytest.raises(Exception, match="this state has the layout 5, this version 4"):
        ours(state.packed())
