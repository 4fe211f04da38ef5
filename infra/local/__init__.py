"""Kafka and Elasticsearch as local processes without containers, from registry packages."""

from infra.local.servers import LocalServers

__all__ = ["LocalServers"]
