"""The console on a port of this process."""

import threading
from contextlib import contextmanager

import uvicorn

from tests.waiting import until


@contextmanager
def serving(application):
    """Serve until the end of the block; gives the address."""
    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started, 30, "the console listens", pause=0.05)
    (port,) = {socket.getsockname()[1] for one in server.servers for socket in one.sockets}
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(30)
