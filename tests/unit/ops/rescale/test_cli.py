"""What `kappa rescale` refuses, and what it says to do next."""

import pytest
from typer.testing import CliRunner

from infra.errors import UserError
from jobs.runtime.settings import Settings
from ops.replay.registry import CHAIN, Generation, Registry
from ops.rescale import cli
from ops.savepoints.saved import Savepoint

MADE = Generation(name="wide", base="live", jobs=CHAIN, partitions=16)


def test_a_savepoint_of_one_job_is_refused(monkeypatch):
    one = Savepoint.model_construct(name="monday", job="detector")
    monkeypatch.setattr(cli.savepoints, "read", lambda name, settings: one)
    with pytest.raises(UserError, match="--from monday: is of detector alone; take one of all jobs"):
        cli._saved("monday", Settings())


def test_it_says_what_runs_the_generation(capsys):
    cli._tell(MADE, Registry(), Settings())
    assert "wide is planned with 16 partitions; run it: kappa replay resume wide" in capsys.readouterr().err
    made = MADE.model_copy(update={"platform": "compose", "image": "kappa:next"})
    cli._tell(made, Registry({"wide": made}), Settings())
    printed = capsys.readouterr()
    assert "KAPPA_GENERATION=wide" in printed.out and "KAPPA_IMAGE=kappa:next" in printed.out
    assert "kappa replay watch wide" in printed.err


@pytest.mark.parametrize("options", [["--partitions", "1"], ["--partitions", "many"], []])
def test_wrong_options_end_with_code_2(options):
    assert CliRunner().invoke(cli.app, [*options, "--as", "wide", "--from", "monday"]).exit_code == 2
