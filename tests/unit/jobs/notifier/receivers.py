"""Real servers that take notifications, on ports of their own, and can be told to refuse them."""

import email
import email.policy
import socket
import threading
import time
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import orjson
from aiosmtpd.controller import Controller


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class MailServer:
    """An SMTP server. `answer` is what it says to a mail: what begins with 2 has taken it."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.answer, self.seconds = "250 taken", 0.0
        self.port = _free_port()  # aiosmtpd must know it before
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        time.sleep(self.seconds)
        if self.answer.startswith("2"):
            self.mails.append(email.message_from_bytes(envelope.content, policy=email.policy.default))
        return self.answer

    @property
    def ids(self) -> list[str]:
        return [mail["Message-ID"].strip("<>").partition("@")[0] for mail in self.mails]

    def __enter__(self) -> Self:
        self._controller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._controller.stop()


class WebServer:
    """An HTTP server that takes events, and what its requests said of themselves."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.status, self.seconds = 204, 0.0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/events"

    @property
    def ids(self) -> list[str]:
        return [event["id"] for event in self.events]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                time.sleep(outer.seconds)
                if outer.status < 300:
                    outer.events.append(orjson.loads(body))
                    outer.headers.append({name.lower(): value for name, value in self.headers.items()})
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
