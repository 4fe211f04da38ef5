"""Which header a request has, on a server that knows one key."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from elasticsearch import AuthenticationException

from connectors.sinks.elasticsearch import connect
from connectors.sinks.elasticsearch_login import header_of


@pytest.fixture
def server():
    """Answers to the key that `valid` names, and keeps the headers that it got."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got = self.headers.get("Authorization")
            self.server.got.append(got)
            body = json.dumps({"error": "no"} if got != self.server.valid else {"count": 3}).encode()
            self.send_response(200 if got == self.server.valid else 401)
            for name, value in (("X-Elastic-Product", "Elasticsearch"), ("Content-Type", "application/json")):
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.got, made.valid = [], "ApiKey new"
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def url(server):
    return f"http://127.0.0.1:{server.server_address[1]}"


def test_a_key_that_was_changed_is_taken_at_the_next_request(server):
    present = {"api_key": "old"}
    client = connect(url(server), dict(present), lambda: present)
    present["api_key"] = "new"
    with pytest.raises(AuthenticationException):
        client.count(index="x")
    assert client.count(index="x")["count"] == 3
    assert server.got == ["ApiKey old", "ApiKey new"]


def test_without_another_one_it_stays(server):
    client = connect(url(server), {"api_key": "old"})
    for _ in range(2):
        with pytest.raises(AuthenticationException):
            client.count(index="x")
    assert server.got == ["ApiKey old", "ApiKey old"]


@pytest.mark.parametrize(
    ("identity", "header"),
    [
        ({"api_key": "abc"}, "ApiKey abc"),
        ({"basic_auth": ("elastic", "changeme")}, "Basic ZWxhc3RpYzpjaGFuZ2VtZQ=="),
        ({}, None),
    ],
)
def test_the_header_of_each_kind_of_identity(identity, header):
    assert header_of(identity) == header
