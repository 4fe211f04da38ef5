"""What each principal may do in Elasticsearch: roles as JSON, and API keys that have them."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from elasticsearch import Elasticsearch

from connectors.sinks.elasticsearch_errors import user_errors
from connectors.sinks.elasticsearch_indices import IndexAdmin
from infra.contract.topics import TopicMap
from infra.files import write_private
from jobs.indexer.indices import template_of
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.acl.principals import ADMINISTRATOR, OPERATOR, SMALL

VIEWER = "viewer"  # Grafana's, Kibana's, and whoever else only looks
KEY, AUTHORITY = "kappa_elasticsearch_api_key", "kappa_elasticsearch_ca"

Roles = dict[str, dict[str, Any]]


def roles(topics: TopicMap, *, small: bool = False) -> Roles:
    """The role of each principal that uses Elasticsearch, as its API takes it."""
    names = sorted(name for topic in topics.indexed for name in (f"kappa-{topic.index}", f"kappa-{topic.index}-*"))
    writers = {SMALL if small else job.runs_in for job in JOBS if job.sink == "elasticsearch"}
    found = {
        # `manage` makes, measures and deletes indices and moves aliases; `monitor` looks whether a template is there.
        **{writer: _role(names, ["read", "write", "manage"], ["monitor"]) for writer in writers},
        OPERATOR: _role(names, ["read", "view_index_metadata", "maintenance"], []),
        VIEWER: _role(names, ["read", "view_index_metadata"], []),
        ADMINISTRATOR: _role(names, ["read", "manage"], ["monitor", "manage_index_templates"]),
    }
    return dict(sorted(found.items()))


def _role(names: list[str], privileges: list[str], cluster: list[str]) -> dict[str, Any]:
    return {"cluster": cluster, "indices": [{"names": names, "privileges": privileges}]}


def put_templates(client: Elasticsearch, topics: TopicMap) -> None:
    """Put the templates of all indices, so that whoever writes them needs no right to."""
    with user_errors():
        admin = IndexAdmin(client, lambda call: call())
        for topic in topics.indexed:
            if topic.index:
                admin.put_template(f"kappa-{topic.index}", template_of(topic.index))


def make_keys(
    client: Elasticsearch, wanted: Roles, settings: Settings, folder: Path, expires: str | None
) -> Iterator[tuple[str, str]]:
    """Make an API key for each principal and write it into its folder for KAPPA_SECRETS; gives (principal, its id)."""
    for principal, role in wanted.items():
        name = f"{settings.principal_prefix}{principal}"
        with user_errors():
            made = client.security.create_api_key(name=name, role_descriptors={name: role}, expiration=expires)
        own = folder / name
        own.mkdir(parents=True, exist_ok=True, mode=0o700)
        if settings.elasticsearch_ca:
            write_private(own / AUTHORITY, str(settings.elasticsearch_ca.resolve()).encode())
        write_private(own / KEY, str(made["encoded"]).encode())
        yield name, str(made["id"])


def revoke_former(client: Elasticsearch, made: Iterable[tuple[str, str]]) -> int:
    """Revoke the earlier keys of these principals; returns how many there were."""
    doomed = []
    for name, identity in made:
        with user_errors():
            found = client.security.get_api_key(name=name)["api_keys"]
        doomed += [one["id"] for one in found if one["id"] != identity and not one["invalidated"]]
    if doomed:
        with user_errors():
            client.security.invalidate_api_key(ids=doomed)
    return len(doomed)


def as_json(found: Roles, prefix: str) -> str:
    """The roles by name, as text."""
    return json.dumps({f"{prefix}{name}": role for name, role in found.items()}, indent=1)
