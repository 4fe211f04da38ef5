"""A TCP proxy that can be cut: bytes then wait on both sides, as behind a dead switch, and go on when it heals."""

import socket
import threading
from contextlib import suppress


class Proxy:
    """Forwards 127.0.0.1:`port` to 127.0.0.1:`target`."""

    def __init__(self, port: int, target: int) -> None:
        self.target = target
        self._open = threading.Event()
        self._open.set()
        self._server = socket.create_server(("127.0.0.1", port), backlog=128)
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """From now on nothing comes through."""
        self._open.clear()

    def heal(self) -> None:
        """What waited comes through, and what follows."""
        self._open.set()

    def close(self) -> None:
        """Take no more connections."""
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        self._open.wait()
        try:
            server = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            client.close()
            return
        for one, other in ((client, server), (server, client)):
            threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._open.wait()
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
