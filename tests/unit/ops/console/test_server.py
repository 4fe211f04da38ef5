import re

import pytest

from infra.errors import UserError
from jobs.runtime.settings import Settings
from ops.console.server import STATIC
from ops.console.settings import load_console_settings
from ops.console.views.table import NAVIGATION

LISTS = [page.path for page in NAVIGATION]


@pytest.mark.parametrize("path", LISTS)
def test_a_page_runs_nothing_of_its_own_text(browser, path):
    page = browser.get(f"/{path}")
    assert page.headers["content-security-policy"].startswith("default-src 'self'; ")
    assert re.findall(r"<script(?![^>]* src=\"/static/)|<style|\sstyle=|\son[a-z]+=|javascript:", page.text) == []


@pytest.mark.parametrize("path", LISTS)
def test_a_page_is_in_the_navigation_and_names_itself(browser, path):
    assert f'<a href="/{path}" aria-current="page">' in browser.get(f"/{path}").text


@pytest.mark.parametrize("path", [path for path in LISTS if path not in ("chain", "ask", "savepoints")])
def test_a_view_whose_source_is_down_says_so_and_the_others_go_on(browser, sources, path):
    sources.down = {"Kafka", "Elasticsearch"}
    page, data = browser.get(f"/{path}"), browser.get(f"/api/v1/{path}")
    assert (page.status_code, data.status_code) == (503, 503)
    assert f"{data.json()['source']}: does not answer." in page.text
    assert browser.get("/chain").status_code == 200


def test_a_request_for_another_host_is_refused(browser):
    assert browser.get("/chain", headers={"Host": "rebound.example"}).status_code == 400


@pytest.mark.parametrize("file", sorted(STATIC.glob("*.*")), ids=lambda file: file.name)
def test_static_files_are_served_and_load_nothing_from_elsewhere(browser, file):
    assert browser.get(f"/static/{file.name}").text == file.read_text()
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)|@import|\beval\(", file.read_text()) == []


def test_what_others_wrote_has_its_version_in_its_name_and_its_licence_beside_it():
    files = [file.name for file in (STATIC / "vendor").iterdir()]
    licensed = {name.removesuffix(".LICENSE") for name in files if name.endswith(".LICENSE")}
    for name in files:
        assert name.endswith(".LICENSE") or re.fullmatch(r"(\w+)-\d+\.\d+\.\d+\..+", name)[1] in licensed


def test_a_view_only_reads(browser):
    assert {browser.post(f"/{path}").status_code for path in LISTS} == {405}


def test_a_page_that_is_not_there_is_named_and_escaped(browser):
    page = browser.get("/%3Cscript%3E")
    assert page.status_code == 404
    assert "There is no page /&lt;script&gt;." in page.text


def test_health_is_that_of_the_process_and_readiness_that_of_its_sources(browser, sources):
    assert (browser.get("/healthz").status_code, browser.get("/readyz").status_code) == (200, 200)
    sources.down = {"Kafka"}
    ready = browser.get("/readyz")
    assert (browser.get("/healthz").status_code, ready.status_code) == (200, 503)
    assert ready.text == "Kafka: does not answer\n"


def test_its_metrics_count_the_requests_of_a_page(browser):
    browser.get("/chain")
    assert 'kappa_console_request_seconds_count{page="chain",status="200"}' in browser.get("/metrics").text


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::"])
def test_an_address_that_others_reach_is_refused(host):
    with pytest.raises(UserError, match=r"KAPPA_CONSOLE_HOST=.*the console has no authentication"):
        load_console_settings(host=host)


def test_a_container_says_that_it_listens_unprotected(monkeypatch):
    monkeypatch.setenv("KAPPA_CONSOLE_UNPROTECTED", "true")
    assert load_console_settings(host="0.0.0.0").host == "0.0.0.0"


def test_a_wrong_setting_is_named_with_its_value():
    with pytest.raises(UserError, match="KAPPA_CONSOLE_PORT=70000"):
        load_console_settings(port=70_000)


def test_its_metrics_are_for_those_who_have_the_jobs_token(sources, browsing, tmp_path):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef-of-a-test")
    sources.settings = Settings(metrics_token_file=token)
    browser = browsing()
    refused = browser.get("/metrics")
    assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, 'Bearer realm="kappa"')
    assert browser.get("/metrics", headers={"Authorization": f"Bearer {token.read_text()}"}).status_code == 200
    assert browser.get("/healthz").status_code == 200
