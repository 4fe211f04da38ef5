import sys

import pytest

from infra.errors import UserError
from ops.console import operations
from ops.console.operations import ElsewhereError, Operations, listed
from tests.waiting import until


@pytest.fixture
def run(monkeypatch):
    """Operations whose commands are Python programs."""
    started = operations.subprocess.Popen
    monkeypatch.setattr(
        operations.subprocess, "Popen", lambda command, **more: started([sys.executable, "-c", command[3]], **more)
    )
    return Operations({"KAPPA_SAID": "aloud"}, None)


def ended(operation):
    until(lambda: operation.code is not None, 30, "it ends", pause=0.02)
    return operation


def test_a_command_runs_and_what_it_says_is_kept(run):
    one = run.begin(["import os, sys; print(7); sys.stderr.write(os.environ['KAPPA_SAID'])"], "ada")
    ended(one)
    assert (one.code, one.text(), one.json(), one.by) == (0, "7\naloud", 7, "ada")
    assert run.every() == [one]
    assert run.find("1") is one


def test_a_command_that_fails_says_why(run):
    one = ended(run.begin(["import sys; sys.exit('no broker answers')"], "ada"))
    assert (one.code, one.text()) == (1, "no broker answers")
    with pytest.raises(UserError, match="no broker answers"):
        one.json()


def test_of_much_the_end_is_shown(run):
    one = ended(run.begin(["print('x' * 10_000 + 'end')"], "ada"))
    assert (len(one.text()), one.text()[-4:]) == (3_999, "xend")


def test_the_same_command_does_not_run_twice_at_once_nor_many_others(run):
    forever = "import time; time.sleep(60)"
    first = run.begin([forever], "ada")
    with pytest.raises(UserError, match="runs already"):
        run.begin([forever], "bob")
    second = run.begin([f"{forever} # another"], "bob")
    with pytest.raises(UserError, match="2 commands run already"):
        run.begin(["print(1)"], "bob")
    for one in (first, second):
        one.process.kill()
        ended(one)
    assert ended(run.begin([forever[:11]], "ada")).code == 0


def test_something_new_is_a_new_sign(run):
    before = run.sign()
    one = run.begin(["print(1)"], "ada")
    during = run.sign()
    ended(one)
    assert len({str(sign) for sign in (before, during, run.sign())}) >= 2
    assert run.sign() == run.sign()


def test_an_operation_that_is_not_known_is_said(run):
    with pytest.raises(UserError, match="operation='7': isn't known"):
        run.find("7")


def test_where_nothing_can_be_run_the_command_is_given():
    elsewhere = Operations({}, "docker compose run --rm kappa")
    with pytest.raises(ElsewhereError, match=r"^docker compose run --rm kappa replay start '--where=machine = 1'$"):
        elsewhere.begin(["replay", "start", "--where=machine = 1"], "ada")


def test_a_list_that_cannot_be_had_says_why(monkeypatch, tmp_path):
    monkeypatch.setenv("KAPPA_HOME", str(tmp_path))
    with pytest.raises(OSError, match="No such command 'nothing'"):
        listed(["savepoint", "nothing"])
