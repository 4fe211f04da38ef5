"""An object store on this machine, and what a process needs to use it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import orjson

from tests.waiting import until

BUCKET = "kappa"
PYTHON = Path(os.environ.get("KAPPA_MOTO", ".venv-moto/bin/python"))


class ObjectStore:
    """A server of S3's protocol, in memory: it ends with this object's `close`."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        command = [PYTHON, Path(__file__).with_name("server.py"), str(port)]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self._makes_bucket, 60, "the object store does not answer")

    @property
    def environment(self) -> dict[str, str]:
        """The variables of whoever uses it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "kappa",
            "AWS_SECRET_ACCESS_KEY": "not a secret",
        }

    def trouble(self, *, delay_s: float = 0.0, refused: float = 0.0, lost: float = 0.0) -> None:
        """From now on let each request take longer, refuse so many, and lose so many answers of conditional writes."""
        self._put("/-/faults", orjson.dumps({"delay_s": delay_s, "refused": refused, "lost": lost}))

    def requests(self) -> int:
        """How many it has been asked so far."""
        with urlopen(f"{self.url}/-/requests", timeout=10) as answer:
            return int(answer.read())

    @contextmanager
    def away(self) -> Iterator[None]:
        """Within the block it accepts connections and answers nothing, as a store behind a dead switch."""
        self._process.send_signal(signal.SIGSTOP)
        yield
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it; what it held is gone."""
        self._process.kill()
        self._process.wait()

    def _makes_bucket(self) -> bool:
        assert self._process.poll() is None, "the object store has ended"
        with suppress(URLError):
            self._put(f"/{BUCKET}", b"")
            return True
        return False

    def _put(self, path: str, body: bytes) -> None:
        with urlopen(Request(f"{self.url}{path}", body, method="PUT"), timeout=10):
            pass
