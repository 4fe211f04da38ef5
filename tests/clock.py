"""A clock for the module that a test is of, in the place of its `time`: the threads of other tests keep their own."""


class Clock:
    """It goes on only where something waits, or the test says so."""

    def __init__(self, now: float) -> None:
        self.now = now

    def monotonic(self) -> float:
        """The time, in seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Go on at once."""
        self.now += seconds
