"""Helm and kubeconform: those that `make tools` has built, else those on PATH."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "kappa"
EXAMPLES = sorted((CHART / "examples").glob("*.yaml"))
GOLDEN = Path(__file__).parent / "golden"
TOOLS = ROOT / ".kappa" / "tools"
KUBERNETES = "1.34.0"
SCHEMAS = TOOLS / f"v{KUBERNETES}-standalone-strict"


def find(program: str) -> str | None:
    """Where a program is, or None."""
    return shutil.which(program, path=TOOLS) or shutil.which(program)


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run helm; the caller looks at its code."""
    command = [find("helm") or "helm", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def render(*arguments: str | Path) -> str:
    """The manifests of a release `kappa` in namespace `kappa`; raises what helm says."""
    done = helm("template", "kappa", CHART, "--namespace", "kappa", "--kube-version", KUBERNETES, *arguments)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def write_goldens() -> None:
    """Render the examples anew: `make chart-goldens`."""
    for example in EXAMPLES:
        (GOLDEN / example.name).write_text(render("--values", example))


if __name__ == "__main__":
    write_goldens()
