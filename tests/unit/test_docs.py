"""The documentation builds strictly, and what names a page of it names one that is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.table import JOBS

PROJECT = Path(__file__).parents[2]
SUFFIXES = {".py", ".yaml", ".yml", ".tpl", ".txt", ".md", ".java", ".toml"}
PAGE = re.compile(r"\bdocs/[\w/-]+\.md\b(?:, '([^']+)')?")
LOADED = re.compile(r'<(?:script|link)[^>]+(?:src|href)="(https?://[^"]+)"')
LINK = re.compile(r"\]\(([^)#\s:]+)(?:#[\w-]+)?\)")


def tracked() -> list[Path]:
    names = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    files = [PROJECT / name for name in names.splitlines()]
    return [file for file in files if file.is_file() and (file.suffix in SUFFIXES or file.name == "Makefile")]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_the_site_builds_strictly(site):
    assert (site / "tutorial" / "first-hour.html").is_file()


def test_no_page_of_the_site_loads_anything_from_the_network(site):
    pages = [page.read_text() for page in site.rglob("*.html")]
    assert {url for page in pages for url in LOADED.findall(page)} == set()


def test_a_page_that_is_named_is_there():
    """Also its section, where a message names one: docs/how-to/operate.md, 'A lost checkpoint'."""
    missing = []
    for file in tracked():
        for found in PAGE.finditer(file.read_text()):
            page = PROJECT / found[0].split(",")[0]
            headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE) if page.is_file() else []
            if not page.is_file() or (found[1] and found[1] not in headings):
                missing.append(f"{file.relative_to(PROJECT)}: {found[0]}")
    assert missing == []


@pytest.mark.parametrize("file", [file for file in tracked() if file.suffix == ".md"], ids=str)
def test_the_links_of_a_page_lead_to_files(file):
    targets = [target for target in LINK.findall(file.read_text()) if not target.startswith("http")]
    assert [target for target in targets if not (file.parent / target).exists()] == []


def test_the_table_of_the_architecture_has_the_jobs_of_the_table():
    text = (PROJECT / "docs" / "explanation" / "architecture.md").read_text()
    section = text.split("## The jobs\n")[1].split("\n## ")[0]
    rows = [re.match(r"\| (\w+)", line) for line in section.splitlines()]
    assert [row[1] for row in rows if row][1:] == list(JOBS.names())
