import stat

from infra.files import write_private


def test_a_private_file_is_its_owners_alone_even_where_there_was_another(tmp_path):
    path = tmp_path / "secret"
    path.write_text("for all")
    write_private(path, b"for me")
    assert (stat.S_IMODE(path.stat().st_mode), path.read_text()) == (0o600, "for me")
