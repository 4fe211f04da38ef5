"""The OpenAPI description of what is below /api/v1."""

import re
from collections.abc import Iterable
from typing import Any

from ops.console.views.table import Page

_ERRORS = {
    "400": "An argument can't be used",
    "404": "It doesn't exist",
    "503": "A source is down; `source` names it",
}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string"}, "source": {"type": "string"}},
}


def openapi(pages: Iterable[Page]) -> dict[str, Any]:
    """Describe the JSON of these pages."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Kappa console",
            "version": "1",
            "description": "What the pages show. Times are in ms.",
        },
        "paths": {f"/api/v1/{_plain(page.path)}": {"get": _get(page)} for page in pages},
        "components": {"schemas": {"Error": _ERROR}},
    }


def _plain(path: str) -> str:
    """A path without Starlette's kinds of parameters."""
    return re.sub(r":\w+}", "}", path)


def _get(page: Page) -> dict[str, Any]:
    within = [(name, "path") for name in re.findall(r"{(\w+)", page.path)]
    query = [(name, "query") for name in page.query]
    return {
        "operationId": page.name,
        "summary": page.title,
        "parameters": [
            {"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}}
            for name, place in within + query
        ],
        "responses": {
            "200": {"description": "The view", "content": {"application/json": {"schema": {"type": "object"}}}},
            **{status: _error(reason) for status, reason in _ERRORS.items()},
        },
    }


def _error(reason: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": reason, "content": {"application/json": {"schema": schema}}}
