"""The events of the Yahoo streaming benchmark, and what must be counted of them.

Everything follows from the seed: events are drawn in steps of 100 ms, each from a generator of its own, so that whoever
has the seed knows what another process has sent. They are rendered as columns of bytes, without a loop over them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

STEP_MS, WINDOW_MS = 100, 10_000
STEPS_A_SECOND = 1000 // STEP_MS
DISORDER_MS = 1_000  # an event is sent up to so long after its time
# The end of the load closes no window: those that end so shortly before it aren't compared. The first watermarks of our
# runtime leave 5 s for the skew of brokers' clocks.
TAIL_MS = 10_000
CAMPAIGNS, ADS_A_CAMPAIGN = 100, 10
PEOPLE = PAGES = 100
AD_TYPES = ("banner", "modal", "sponsored-search", "mail", "mobile")
EVENT_TYPES = ("view", "click", "purchase")
VIEW = EVENT_TYPES.index("view")
_DIGITS = 10 ** np.arange(12, -1, -1)  # of a time in ms

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Window = tuple[str, int]  # a campaign, and when its window begins: ms since the Unix epoch
Counts = Mapping[Window, int]


class Step(NamedTuple):
    """The events of a step, in the order in which they are sent; times in ms since the Unix epoch."""

    sent_ms: Ints
    event_ms: Ints
    ad: Ints
    event_type: Ints


@dataclass(frozen=True)
class Ads:
    """A load: `rate` events a second, a multiple of ten, over so many seconds from `start_ms` on."""

    seed: int
    start_ms: int
    rate: int
    seconds: int

    @property
    def steps(self) -> int:
        """The number of its steps."""
        return self.seconds * STEPS_A_SECOND

    @property
    def events(self) -> int:
        """The number of its events."""
        return self.rate * self.seconds

    @property
    def complete_until_ms(self) -> int:
        """Each window that ends until then can be complete before the load ends."""
        return self.start_ms + self.seconds * 1000 - TAIL_MS

    @cached_property
    def campaigns(self) -> tuple[str, ...]:
        """The names of the campaigns."""
        return self._names("campaigns", CAMPAIGNS)

    @cached_property
    def ads(self) -> tuple[str, ...]:
        """The names of the ads; those of a campaign follow each other."""
        return self._names("ads", CAMPAIGNS * ADS_A_CAMPAIGN)

    def campaign_of_ads(self) -> dict[str, str]:
        """The table that the events are joined to: the campaign of each ad."""
        return {ad: self.campaigns[number // ADS_A_CAMPAIGN] for number, ad in enumerate(self.ads)}

    def draw(self, number: int) -> Step:
        """The events of a step, as far as counts depend on them."""
        count, rng = self.rate // STEPS_A_SECOND, np.random.default_rng([self.seed, number])
        sent = self.start_ms + number * STEP_MS + np.arange(count) * STEP_MS // count
        late, ad = rng.integers(DISORDER_MS + 1, size=count), rng.integers(len(self.ads), size=count)
        return Step(sent, sent - late, ad, rng.integers(len(EVENT_TYPES), size=count))

    def render(self, number: int) -> tuple[list[int], list[bytes]]:
        """The events of a step as they are sent: Kafka timestamps, and values."""
        step, rng = self.draw(number), np.random.default_rng([self.seed, number, 1])

        def some(table: Bytes) -> Bytes:
            return table[rng.integers(len(table), size=len(step.ad))]

        fields = {
            "user_id": some(self._tables["people"]),
            "page_id": some(self._tables["pages"]),
            "ad_id": self._tables["ads"][step.ad],
            "ad_type": some(_AD_TYPES),
            "event_type": _EVENT_TYPES[step.event_type],
            "event_time": _quoted(_digits(step.event_ms)),
        }
        return step.sent_ms.tolist(), _objects(fields, '"ip_address":"1.2.3.4"')

    def truth(self) -> Counts:
        """The views of each campaign in each window that is compared."""
        counts: Counter[int] = Counter()
        for number in range(self.steps):
            step = self.draw(number)
            is_view = step.event_type == VIEW
            windows, campaigns = step.event_ms[is_view] // WINDOW_MS, step.ad[is_view] // ADS_A_CAMPAIGN
            found, times = np.unique(windows * CAMPAIGNS + campaigns, return_counts=True)
            counts.update(dict(zip(found.tolist(), times.tolist(), strict=True)))
        named = {(self.campaigns[key % CAMPAIGNS], key // CAMPAIGNS * WINDOW_MS): n for key, n in counts.items()}
        return {window: n for window, n in named.items() if self.is_compared(window[1])}

    def is_compared(self, window_start_ms: int) -> bool:
        """Whether a window ends early enough before the load does."""
        return window_start_ms + WINDOW_MS <= self.complete_until_ms

    @cached_property
    def _tables(self) -> dict[str, Bytes]:
        names = {"ads": self.ads, "people": self._names("people", PEOPLE), "pages": self._names("pages", PAGES)}
        return {kind: _quoted(_table(some)) for kind, some in names.items()}

    def _names(self, kind: str, count: int) -> tuple[str, ...]:
        rng = np.random.default_rng([self.seed, *kind.encode()])
        return tuple(str(UUID(bytes=rng.bytes(16), version=4)) for _ in range(count))


def _table(texts: tuple[str, ...]) -> Bytes:
    """A row a text; all must be of one length."""
    return np.frombuffer("".join(texts).encode(), np.uint8).reshape(len(texts), -1)


def _padded(texts: tuple[str, ...]) -> Bytes:
    """JSON strings made equally long by blanks after them, which JSON passes over."""
    width = max(map(len, texts)) + 2
    return _table(tuple(f'"{text}"'.ljust(width) for text in texts))


def _quoted(rows: Bytes) -> Bytes:
    return np.pad(rows, ((0, 0), (1, 1)), constant_values=ord('"'))


def _digits(numbers: Ints) -> Bytes:
    return (numbers[:, np.newaxis] // _DIGITS % 10 + ord("0")).astype(np.uint8)


def _objects(fields: Mapping[str, Bytes], last: str) -> list[bytes]:
    """A JSON object a row; all are equally long."""
    rows = np.concatenate(list(_columns(fields, last)), axis=1)
    return rows.view(f"S{rows.shape[1]}").ravel().tolist()


def _columns(fields: Mapping[str, Bytes], last: str) -> Iterator[Bytes]:
    before, rows = "{", 0
    for name, column in fields.items():
        rows = len(column)
        yield _repeated(f'{before}"{name}":', rows)
        yield column
        before = ","
    yield _repeated(f"{before}{last}}}", rows)


def _repeated(text: str, rows: int) -> Bytes:
    return np.broadcast_to(_table((text,)), (rows, len(text)))


_AD_TYPES, _EVENT_TYPES = _padded(AD_TYPES), _padded(EVENT_TYPES)
