import pytest

from ops.console.views.table import PAGES


@pytest.fixture
def described(browser):
    return browser.get("/api/v1/openapi.json").json()


def test_each_view_is_described_with_the_arguments_of_its_path(described):
    assert len(described["paths"]) == len(PAGES)
    parameters = described["paths"]["/api/v1/fleet/{machine}"]["get"]["parameters"]
    assert [(one["name"], one["in"], one["required"]) for one in parameters] == [
        ("machine", "path", True),
        ("span", "query", False),
        ("from", "query", False),
        ("to", "query", False),
        ("series", "query", False),
        ("novelty", "query", False),
        ("peers", "query", False),
        ("generation", "query", False),
    ]


@pytest.mark.parametrize(("path", "status"), [("incidents/{id}", 404), ("incidents?state=shut", 400), ("fleet", 503)])
def test_an_error_has_the_form_that_is_described(browser, sources, described, path, status):
    if status == 503:
        sources.down = {"Elasticsearch"}
    answer = browser.get(f"/api/v1/{path.replace('{id}', 'none')}")
    said = described["paths"][f"/api/v1/{path.partition('?')[0]}"]["get"]["responses"]
    schema = described["components"]["schemas"]["Error"]
    assert (answer.status_code, str(status) in said) == (status, True)
    assert set(schema["required"]) <= set(answer.json()) <= set(schema["properties"])


def test_arguments_that_are_described_are_read(browser, sources, described):
    for name in ("site", "role", "verdict"):
        assert name in [one["name"] for one in described["paths"]["/api/v1/fleet"]["get"]["parameters"]]
        assert browser.get(f"/api/v1/fleet?{name}=x").json()["chosen"] == {name: "x"}
