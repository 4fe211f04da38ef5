"""What a benchmark does beside what it measures: a thread for the length of a `with` block."""

import threading
from typing import Self


class Background(threading.Thread):
    """A thread that runs while its block does: `run` ends soon once `over` is set, then `close` frees what it holds."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()

    def close(self) -> None:
        """Free what the thread holds; nothing, if it has none."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()
        self.close()
