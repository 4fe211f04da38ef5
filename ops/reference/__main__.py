"""Writes the generated reference pages into a folder: `python -m ops.reference docs/reference`."""

import sys
from pathlib import Path

from ops.reference.pages import PAGES


def main(arguments: list[str]) -> int:
    """Write each page into the folder that is the only argument; exit code 2 if it isn't given."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m ops.reference FOLDER\n")
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (folder / name).write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
