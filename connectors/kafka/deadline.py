"""A deadline for calls that have no timeout of their own."""

import threading
from collections.abc import Callable
from concurrent.futures import Future


def within(seconds: float, call: Callable[[], None]) -> None:
    """Run `call` in a thread; raises its exception, or TimeoutError if it takes more than `seconds`.

    librdkafka's `send_offsets_to_transaction` may never return when its broker dies, whatever timeout it is given, nor
    may the end of a consumer. A call that hangs keeps its thread, and with it its client, until the process ends.
    """
    outcome: Future[None] = Future()

    def run() -> None:
        try:
            call()
            outcome.set_result(None)
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name="within", daemon=True).start()
    outcome.result(seconds)
