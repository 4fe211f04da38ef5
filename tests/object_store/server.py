"""moto's S3 as a server that can be slow and refuse. Run by a Python that has moto, alone: server.py PORT [HOST].

PUT /-/faults with JSON: `delay_s`, how long each request takes longer; `refused`, the share of them that gets a 503;
`lost`, the share of conditional writes that are done, and get one all the same. GET /-/requests tells how many there
were so far.
"""

import json
import random
import sys
import time

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, run_simple

FAULTS, REQUESTS = "/-/faults", "/-/requests"
SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


class Faulty:
    """Passes requests on to a WSGI application, after a delay, or refuses them."""

    def __init__(self, application):
        self.application, self.delay_s, self.refused, self.lost = application, 0.0, 0.0, 0.0
        self.random = random.Random(1)
        self.requests = 0

    def __call__(self, environ, start_response):
        """Answer one request."""
        if environ["PATH_INFO"] == FAULTS:
            return self._change(environ, start_response)
        if environ["PATH_INFO"] == REQUESTS:
            start_response("200 OK", [])
            return [str(self.requests).encode()]
        self.requests += 1
        time.sleep(self.delay_s)
        if self.random.random() < self.refused:
            environ["wsgi.input"].read()
            return self._refuse(start_response)
        if "HTTP_IF_NONE_MATCH" in environ and self.random.random() < self.lost:
            list(self.application(environ, lambda *_: None))
            return self._refuse(start_response)
        return self.application(environ, start_response)

    def _refuse(self, start_response):
        start_response("503 Slow Down", [("Content-Type", "application/xml"), ("Content-Length", str(len(SLOW_DOWN)))])
        return [SLOW_DOWN]

    def _change(self, environ, start_response):
        wanted = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        self.delay_s, self.refused, self.lost = wanted["delay_s"], wanted["refused"], wanted["lost"]
        start_response("204 No Content", [])
        return []


class Handler(WSGIRequestHandler):
    """As S3, it keeps connections open; it writes no log."""

    protocol_version = "HTTP/1.1"

    def handle_expect_100(self):
        """Say nothing: werkzeug says it, and to be told to continue twice is an error to some clients."""
        return True

    def log_request(self, *_):
        """Say nothing."""


if __name__ == "__main__":
    application = Faulty(DomainDispatcherApplication(create_backend_app))
    port, host = int(sys.argv[1]), (sys.argv[2:] or ["127.0.0.1"])[0]
    run_simple(host, port, application, threaded=True, request_handler=Handler)
