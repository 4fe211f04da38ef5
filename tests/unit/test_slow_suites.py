"""The suites and benchmarks that `make test` doesn't run: what they import is there, and none ends before it begins."""

import subprocess
import sys
from pathlib import Path

# What has an environment of its own: Flink, the object store, and the peers of requirements-bench.lock.
OTHER_PACKAGES = (
    "tests/bench/flink",
    "tests/bench/pictures.py",
    "tests/bench/templates",
    "tests/object_store/server.py",
)
RUN_ELSEWHERE = ("tests/unit", "tests/integration", "tests/charts")
IMPORT = "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)"


def test_each_module_of_a_slow_suite_can_be_imported():
    paths = [
        path for path in Path("tests").rglob("*.py") if not str(path).startswith((*OTHER_PACKAGES, *RUN_ELSEWHERE))
    ]
    modules = sorted(".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths)
    assert "tests.chaos.test_chaos" in modules
    # In a process of its own: what they start or change as they are imported stays there.
    subprocess.run([sys.executable, "-c", IMPORT, *modules], check=True, timeout=200)
