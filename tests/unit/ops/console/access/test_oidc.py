import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest

from tests.unit.ops.console.access.provider import CLIENT, SECRET, Provider
from tests.unit.ops.console.writes import post

PUBLIC = "https://kappa.example.org"


@pytest.fixture(scope="module")
def provider():
    with Provider() as running:
        yield running


@pytest.fixture
def browser(browsing, provider):
    provider.claims, provider.forged = {"sub": "1", "preferred_username": "ada", "groups": ["sre", "other"]}, False
    return browsing(
        auth="oidc",
        host="0.0.0.0",
        public_url=PUBLIC,
        oidc_issuer=provider.issuer,
        oidc_client_id=CLIENT,
        oidc_client_secret=SECRET,
        operators="group:sre",
        viewers="group:sre,group:noc",
    )


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def log_in(browser, page="/control"):
    """Follow the login from a page to the answer that comes after it."""
    to_login = browser.get(page, follow_redirects=False)
    to_provider = browser.get(to_login.headers["location"], follow_redirects=False)
    with pytest.raises(urllib.error.HTTPError) as answer:
        urllib.request.build_opener(NoRedirect).open(to_provider.headers["location"], timeout=30)
    back = urlsplit(answer.value.headers["location"])
    assert f"{back.scheme}://{back.netloc}" == PUBLIC
    return browser.get(f"{back.path}?{back.query}", follow_redirects=False)


def test_who_logs_in_comes_back_to_the_page_with_the_role_of_their_group(browser, writes):
    answer = log_in(browser, "/control?by=bob")
    assert answer.headers["location"] == "/control?by=bob"
    assert "<b>ada</b> <small>operator</small>" in browser.get("/control").text
    assert post(browser, "allow", rule="x").status_code == 303
    assert writes.done == [("allow", "x", "ada")]


def test_a_viewers_group_gives_no_right_to_act(browser, provider, writes):
    provider.claims = {"sub": "2", "preferred_username": "bob", "groups": ["noc"]}
    log_in(browser)
    assert "<b>bob</b> <small>viewer</small>" in browser.get("/control").text
    assert (post(browser, "allow", rule="x").status_code, writes.done) == (403, [])


def test_who_has_no_role_is_told_so_after_the_login(browser, provider):
    provider.claims = {"sub": "3", "preferred_username": "eve", "groups": []}
    log_in(browser)
    answer = browser.get("/control")
    assert (answer.status_code, answer.text) == (403, "eve may not see the console.\n")


def test_without_a_login_json_is_refused_and_nothing_is_done(browser, writes):
    assert browser.get("/api/v1/chain").status_code == 401
    assert browser.post("/act/allow", data={"rule": "x"}).status_code == 401
    assert writes.done == []


def test_a_token_that_another_key_has_signed_is_refused(browser, provider):
    provider.forged = True
    answer = log_in(browser)
    assert (answer.status_code, answer.text.startswith("Login failed: ")) == (403, True)
    assert browser.get("/api/v1/chain").status_code == 401


def test_an_answer_that_nobody_asked_for_is_refused(browser):
    answer = browser.get("/login/done?code=stolen&state=guessed")
    assert (answer.status_code, answer.text.startswith("Login failed: ")) == (403, True)


def test_one_may_log_out(browser):
    log_in(browser)
    token = browser.get("/control").text.partition('name="csrf" value="')[2].partition('"')[0]
    assert browser.post("/logout", data={"csrf": "wrong"}).status_code == 403
    assert browser.post("/logout", data={"csrf": token}).text == "Logged out.\n"
    assert browser.get("/api/v1/chain").status_code == 401


def test_a_provider_that_is_down_is_said(browsing):
    browser = browsing(
        auth="oidc",
        host="0.0.0.0",
        public_url=PUBLIC,
        oidc_issuer="http://127.0.0.1:1",
        oidc_client_id=CLIENT,
        oidc_client_secret=SECRET,
    )
    answer = browser.get("/login", follow_redirects=False)
    assert (answer.status_code, answer.text.startswith("Login failed: the provider does not answer")) == (503, True)
