"""What a job of one's own touches, counted for the job `rules`; and that the tutorial shows the code that is there.

The count goes to build/your-own-job.json.
"""

import re
import subprocess
from pathlib import Path

import orjson
import pytest

REPORT = Path("build/your-own-job.json")
TUTORIAL = Path("docs/tutorial/your-own-job.md")
ELISION = "…"

# How a file can name the job: by its package, settings, row, topic or schema; where it is deployed, as a service.
NAMES = re.compile(
    r"""jobs[./]rules\b | KAPPA_RULES | Job\(\s*"rules" | "alerts" | \bALERTS\b | schema:\ alerts
    | [ \[]rules[,\]] | ^\ {2}rules:\ | "rules":\ \{ | \.Values\.(?:jobs\.)?rules | "rules"\ "all" """,
    re.VERBOSE | re.MULTILINE,
)
# Its own package, what tests and describes it, and other jobs, which may read its topic.
APART = re.compile(r"(?:jobs/(?!runtime/|table\.py)|tests/|docs/|build/).*|.*\.(?:md|lock)")
DEPLOYMENT = re.compile(r"(?:charts|infra/docker|infra/prometheus)/.*|docker-compose\.yml")


def _files():
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=False).stdout.split()
    if not listed:
        pytest.skip("not a git checkout")
    return [name for name in listed if not APART.fullmatch(name) and Path(name).is_file()]


def _naming():
    return [name for name in _files() if NAMES.search(Path(name).read_text(errors="ignore"))]


def test_a_job_is_one_package_one_row_and_one_topic_with_its_schema():
    named = _naming()
    places = [name for name in named if not DEPLOYMENT.fullmatch(name)]
    deployed = [name for name in named if DEPLOYMENT.fullmatch(name)]
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_bytes(orjson.dumps({"places": len(places), "files": places, "deployment": deployed}))
    assert places == ["infra/contract/schemas.py", "infra/topics.yaml", "jobs/table.py"]
    assert {"charts/kappa/values.yaml", "infra/docker/jobs-standard.yml"} <= set(deployed)


def _shown():
    for block in re.findall(r"```(?:python|yaml)\n(.*?)```", TUTORIAL.read_text(), re.DOTALL):
        first, _, rest = block.partition("\n")
        assert first.startswith("# "), f"a block that doesn't say of which file it is: {first}"
        yield from ((first[2:], part) for part in rest.split(f"{ELISION}\n"))


@pytest.mark.parametrize(("file", "code"), list(_shown()))
def test_the_tutorial_shows_the_code_that_is_there(file, code):
    assert code in Path(file).read_text()
