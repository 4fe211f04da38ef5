import pytest

from infra.errors import UserError
from ops.console.settings import load_console_settings
from tests.unit.ops.console.writes import post

PROXY = {"auth": "proxy", "public_url": "https://kappa.example.org", "host": "0.0.0.0", "operators": "ada,group:sre"}


def token_of(browser, page="/control"):
    return browser.get(page).text.partition('name="csrf" value="')[2].partition('"')[0]


def test_a_form_without_the_sessions_token_is_refused(browser, writes):
    browser.get("/control")
    assert browser.post("/act/allow", data={"rule": "x"}).status_code == 403
    assert browser.post("/act/allow", data={"rule": "x", "csrf": "guessed"}).status_code == 403
    assert writes.done == []


def test_a_token_of_another_session_is_refused(browser, browsing, writes):
    stolen = token_of(browsing())
    browser.get("/control")
    assert browser.post("/act/allow", data={"rule": "x", "csrf": stolen}).status_code == 403
    assert writes.done == []


@pytest.mark.parametrize(
    "headers", [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "https://evil.example"}]
)
def test_a_form_of_another_site_is_refused_even_with_the_token(browser, writes, headers):
    form = {"rule": "x", "csrf": token_of(browser)}
    assert browser.post("/act/allow", data=form, headers=headers).status_code == 403
    assert writes.done == []


def test_without_authentication_one_may_say_ones_name(browser, writes):
    form = {"csrf": token_of(browser), "name": "bob", "back": "/fleet"}
    answer = browser.post("/who", data=form, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/fleet")
    post(browser, "allow", rule="x")
    assert writes.done == [("allow", "x", "bob")]


def test_where_nobody_is_known_one_has_to_say_a_name_first(browsing, writes):
    browser = browsing(host="0.0.0.0", unprotected=True)
    answer = post(browser, "allow", rule="x")
    assert (answer.headers["location"], writes.done) == ("/who?back=/control", [])
    assert "no name yet" in browser.get("/chain").text


@pytest.mark.parametrize(
    ("headers", "role"),
    [
        ({"X-Forwarded-User": "ada"}, "operator"),
        ({"X-Forwarded-User": "bob", "X-Forwarded-Groups": "dev, sre"}, "operator"),
        ({"X-Forwarded-User": "bob"}, "viewer"),
    ],
)
def test_the_proxy_says_who_asks(browsing, writes, headers, role):
    browser = browsing(**PROXY)
    browser.headers |= headers
    page = browser.get("/chain").text
    assert f"<b>{headers['X-Forwarded-User']}</b> <small>{role}</small>" in page
    answer = post(browser, "allow", on="/control", rule="x")
    assert (answer.status_code, len(writes.done)) == ((303, 1) if role == "operator" else (403, 0))


def test_a_viewer_sees_no_form_that_acts(browsing, sources):
    sources.controls = [{"action": "suppress", "rule": "aa", "machine": "vm-1", "time": 1, "by": "ada"}]
    browser = browsing(**PROXY)
    browser.headers |= {"X-Forwarded-User": "bob"}
    for path in ("/control", "/control/suppress?machine=vm-1", "/rejected", "/generations"):
        assert "/act/" not in browser.get(path).text


def test_the_header_of_whoever_is_not_the_proxy_says_nothing(browsing):
    browser = browsing(**PROXY, proxy_networks="10.0.0.0/8")
    answer = browser.get("/chain", headers={"X-Forwarded-User": "ada"})
    assert (answer.status_code, answer.text) == (403, "The console is reached through its proxy only.\n")


def test_nobody_and_strangers_are_refused(browsing):
    browser = browsing(**PROXY, viewers="group:noc")
    assert browser.get("/chain").status_code == 403
    assert browser.get("/api/v1/chain", headers={"X-Forwarded-User": "eve"}).status_code == 403
    assert browser.get("/chain", headers={"X-Forwarded-User": "eve", "X-Forwarded-Groups": "noc"}).status_code == 200


def test_probes_need_no_person_and_no_host(browsing):
    browser = browsing(**PROXY)
    for path in ("/healthz", "/readyz", "/metrics"):
        assert browser.get(path, headers={"Host": "10.1.2.3:8080"}).status_code == 200
    assert browser.get("/chain", headers={"Host": "10.1.2.3:8080"}).status_code == 400


def test_the_session_is_a_cookie_that_scripts_and_other_sites_dont_get(browsing):
    browser = browsing(**PROXY)
    cookie = browser.get("/control", headers={"X-Forwarded-User": "ada"}).headers["set-cookie"]
    assert cookie.endswith("httponly; samesite=lax; secure")


@pytest.mark.parametrize(
    ("auth", "missing"),
    [
        ({"auth": "proxy"}, "KAPPA_CONSOLE_PUBLIC_URL: is missing"),
        ({"auth": "oidc", "public_url": "https://a.example"}, "KAPPA_CONSOLE_OIDC_ISSUER: is missing"),
    ],
)
def test_what_authentication_needs_is_named(auth, missing):
    with pytest.raises(UserError, match=missing):
        load_console_settings(host="0.0.0.0", **auth)


def test_a_network_that_is_none_is_named(monkeypatch):
    monkeypatch.setenv("KAPPA_CONSOLE_PROXY_NETWORKS", "10.0.0.0/8, all")
    with pytest.raises(UserError, match=r"KAPPA_CONSOLE_PROXY_NETWORKS=.*'all' does not appear to be"):
        load_console_settings()
