import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def check(path):
    """Run the check as a fresh clone does: Python without any package, nothing on PATH but `path`."""
    return subprocess.run(
        [sys.executable, "-S", "-m", "infra.check"],
        cwd=ROOT,
        env={"PATH": path, "JAVA_HOME": os.environ.get("JAVA_HOME", "")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_passes_here_with_the_standard_library_only():
    done = check(os.environ["PATH"])
    assert (done.returncode, done.stderr) == (0, "")


def test_names_what_is_missing_in_one_line(tmp_path):
    done = check(str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "mvn: Maven is needed and is not on PATH; install it (e.g. apt install maven, brew install maven)"
    ]
