"""Addresses to go back to."""

HOME = "/chain"
LONGEST = 2_000  # characters


def own_path(text: object) -> str:
    """`text` if it is a path of the console, else its first page: nobody is sent to another site."""
    if not isinstance(text, str) or not text.startswith("/") or text.startswith("//") or len(text) > LONGEST:
        return HOME
    return HOME if any(ord(mark) < 0x20 or mark == "\\" for mark in text) else text.removesuffix("?")
