"""Reads the documents of a generation back from Elasticsearch."""

import time
from collections.abc import Iterator
from typing import Any

from elasticsearch import Elasticsearch
from elasticsearch.helpers import scan

from infra.contract.columnar import to_columns

PAGE = 2_000


def documents(client: Elasticsearch, index: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every document of an index or alias with its id, after a refresh; none if the index doesn't exist."""
    client.indices.refresh(index=index, ignore_unavailable=True)
    for hit in scan(client, index=index, size=PAGE, ignore_unavailable=True):
        yield hit["_id"], hit["_source"]


def statistics(client: Elasticsearch, index: str) -> Iterator[dict[str, Any]]:
    """The documents of the statistics' index in the form of records of the topic `statistics`, one for each series."""
    for _, document in documents(client, index):
        window = document.pop("window")
        yield {
            "machine": document.pop("machine"),
            "window": {
                "size_seconds": window["size_seconds"],
                "start_unix_nano": window["start"] * 1_000_000,
                "end_unix_nano": window["end"] * 1_000_000,
            },
            "statistics": to_columns([document]),
        }


class Sightings:
    """Keeps in `seen` when each document was first seen: by its id, in Unix seconds. `look` is to be called often."""

    def __init__(self, client: Elasticsearch, *indices: str, seen: dict[str, float] | None = None) -> None:
        self._client = client
        self._indices = indices
        self.seen = {} if seen is None else seen

    def look(self) -> dict[str, dict[str, Any]]:
        """Read the indices; returns the documents that were not seen before, by id."""
        fresh = {
            identity: document
            for index in self._indices
            for identity, document in documents(self._client, index)
            if identity not in self.seen
        }
        self.seen |= dict.fromkeys(fresh, time.time())
        return fresh
