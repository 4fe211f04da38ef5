"""What detect-secrets takes for a password, key or token in the files of git, and what of that a person has accepted.

`python -m tests.secrets` accepts all that is found: read the change of `accepted_secrets.json` before you commit it.
"""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

from detect_secrets import SecretsCollection
from detect_secrets.settings import default_settings

ACCEPTED = Path(__file__).with_name("accepted_secrets.json")


def committed() -> list[str]:
    """The files of git, but for the list of what was accepted."""
    listed = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
    return [file for file in listed.split("\0") if Path(file).is_file() and Path(file).name != ACCEPTED.name]


def found(files: Iterable[str]) -> dict[str, list[str]]:
    """By file: the kind of each secret and its SHA-1, which stay the same where lines move."""
    secrets = SecretsCollection()
    with default_settings():
        # Not scan_files: it forks, and the fork of a process with clients' threads may hang.
        for name in files:
            secrets.scan_file(name)
    return {file: sorted({f"{one.type} {one.secret_hash}" for one in secrets[file]}) for file in sorted(secrets.files)}


def accepted() -> dict[str, list[str]]:
    """The same of what isn't secret: names of variables, placeholders, hashes, the tests' own passwords."""
    return dict(json.loads(ACCEPTED.read_text()))


if __name__ == "__main__":
    ACCEPTED.write_text(json.dumps(found(committed()), indent=1) + "\n")
