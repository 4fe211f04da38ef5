import pytest

from infra.errors import UserError
from tests.unit.ops.console.sources import ESCAPED, MARKUP

TABLE = {"name": "novelties", "generation": "v2", "version": 7, "committed": 1_790_000_000_000, "files": 3}
ANSWER = {
    "tables": [TABLE],
    "columns": [
        {"name": "machine", "type": "VARCHAR"},
        {"name": "n", "type": "BIGINT"},
        {"name": "l", "type": "VARCHAR[]"},
    ],
    "rows": [["vm-1", 4711, ["a", "b"]], [None, None, None]],
    "is_complete": False,
    "seconds": 0.12,
}


def test_a_query_is_answered_with_rows_and_freshness(browser, sources):
    sources.said_to_sql = ANSWER
    view = browser.get("/api/v1/ask?sql=SELECT 1").json()
    assert (view["rows"], view["tables"], view["is_asked"]) == (ANSWER["rows"], [TABLE], True)
    page = browser.get("/ask?sql=SELECT 1").text
    for said in (
        'data-value="4711">4,711<',
        "[&#34;a&#34;,&#34;b&#34;]",
        "there are more",
        "2026-09-21 14:13:20",
        "/ask.csv?sql=SELECT+1",
    ):
        assert said in page


def test_without_a_query_there_are_examples(browser, sources):
    page = browser.get("/ask").text
    assert sources.asked == [""]
    assert page.count('<a href="/ask?sql=') >= 7


def test_a_result_is_a_file(browser, sources):
    sources.said_to_sql = ANSWER
    answer = browser.get("/ask.csv?sql=SELECT 1")
    assert answer.text.splitlines()[:2] == ["machine,n,l", 'vm-1,4711,"[""a"",""b""]"']
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"].startswith("attachment")


def test_what_cannot_be_answered_says_why(browser, sources):
    sources.said_to_sql = UserError(f"sql: Parser Error {MARKUP}")
    for path, status in (("/ask?sql=x", 400), ("/api/v1/ask?sql=x", 400), ("/ask.csv?sql=x", 400)):
        answer = browser.get(path)
        assert (answer.status_code, "Parser Error" in answer.text) == (status, True)
    page = browser.get("/ask?sql=x").text
    assert ESCAPED in page
    assert ">x</textarea>" in page


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_on_another_site_has_a_query_filled_in_but_not_answered(browser, sources, site):
    page = browser.get("/ask?sql=SELECT 1", headers={"Sec-Fetch-Site": site}).text
    assert sources.asked == [""]
    assert ">SELECT 1</textarea>" in page


def test_what_is_in_the_tables_is_escaped(browser, sources):
    hostile = ANSWER | {"columns": [{"name": MARKUP, "type": "VARCHAR"}], "rows": [[MARKUP], [[MARKUP]]]}
    sources.said_to_sql = hostile
    page = browser.get(f"/ask?sql={MARKUP}").text
    assert ESCAPED in page
    assert "<script>" not in page
