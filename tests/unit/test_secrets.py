"""No password, key or token lies in git."""

from pathlib import Path

import pytest

from tests.secrets import ACCEPTED, accepted, committed, found


@pytest.mark.skipif(not Path(".git").exists(), reason="no checkout of git")
def test_what_looks_like_a_secret_in_git_was_accepted_by_a_person():
    assert found(committed()) == accepted(), f"see CONTRIBUTING.md, 'Secrets': {ACCEPTED.name} is accepted"


def test_a_password_that_is_put_into_a_file_is_found_wherever_its_line_is(tmp_path):
    file = tmp_path / "settings.py"
    file.write_text('PASSWORD = "' + "correct-horse-" * 2 + '"\n')
    first = found([str(file)])
    assert [one.rpartition(" ")[0] for one in first[str(file)]] == ["Secret Keyword"]
    file.write_text("\n" + file.read_text())
    assert found([str(file)]) == first
