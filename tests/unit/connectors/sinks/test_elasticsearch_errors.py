"""What a command says of an Elasticsearch that refuses it or doesn't answer."""

import pytest
from elastic_transport import ApiResponseMeta, HttpHeaders, NodeConfig
from elasticsearch import AuthorizationException, ConnectionError

from connectors.sinks.elasticsearch_errors import user_errors
from infra.errors import UserError


def test_a_refusal_is_one_line_with_the_servers_words():
    meta = ApiResponseMeta(403, "1.1", HttpHeaders(), 0.1, NodeConfig("https", "es", 9200))
    body = {"error": {"type": "security_exception", "reason": "unauthorized for API key"}}
    said = r"^KAPPA_ELASTICSEARCH_URL: 403 security_exception: unauthorized for API key$"
    with pytest.raises(UserError, match=said), user_errors():
        raise AuthorizationException("refused", meta, body)


def test_so_is_that_it_does_not_answer():
    with (
        pytest.raises(UserError, match=r"^KAPPA_ELASTICSEARCH_URL: Elasticsearch does not answer: refused"),
        user_errors(),
    ):
        raise ConnectionError("refused")
