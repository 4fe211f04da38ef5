"""What statistics says of a log template's parameters, as the detector judges it."""

import orjson

from infra.contract.columnar import event_columns
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import fold
from jobs.runtime.shard_state import Input
from jobs.statistics.settings import load_windows
from jobs.statistics.shard import Shard

NANO = 10**9
START = 1_800_000_000


def pane(at: int, template: str, *bodies: str) -> list[bytes]:
    """Lines of one template in the pane of this number, and the watermark after it."""
    begin = (START + 10 * at) * NANO
    events = [
        {"time_unix_nano": begin + n, "type": "log", "series": template, "template": template, "body": body}
        for n, body in enumerate(bodies)
    ]
    head = {"id": f"x-0-{at}-0", "machine": "vm-1", "kind": "log", "inventory": {"known": True, "site": "s1"}}
    return [
        orjson.dumps(head | {"events": event_columns(events)}),
        orjson.dumps({"watermark_unix_nano": begin + 10 * NANO}),
    ]


def sentences(log: list[bytes]) -> list[object]:
    """Of the novelties that start."""
    outputs = Shard(load_windows()).feed(Input("events", 0, range(len(log)), log))
    statistics = [output.value for output in outputs if output.topic is None]
    novelties = fold(None, statistics, DetectorSettings())[1]
    return [one["text"] for one in novelties if one["phase"] == "start"]


def test_a_status_that_never_came_is_a_novelty_that_quotes_a_line() -> None:
    usual = [["GET status: 200"] * 15 + ["GET status: 404"] for _ in range(60)]
    log = [value for at, bodies in enumerate(usual) for value in pane(at, "GET status: <*>", *bodies)]
    assert sentences(log) == []
    failing = ["GET status: 503"] * 3 + ["GET status: 200"] * 13
    assert sentences([*log, *pane(60, "GET status: <*>", *failing)]) == [
        'log line "GET status: <503>" was never seen before on vm-1 (at s1); for example "GET status: 503"'
    ]


def test_durations_far_out_of_range_are_a_novelty_that_quotes_a_line() -> None:
    usual = [[f"took {20 + (7 * n + at) % 16 + n / 16:.2f} s" for n in range(16)] for at in range(60)]
    log = [value for at, bodies in enumerate(usual) for value in pane(at, "took <*> s", *bodies)]
    assert sentences(log) == []
    slow = ["took 940.20 s"] * 3 + usual[0][3:]
    assert sentences([*log, *pane(60, "took <*> s", *slow)]) == [
        'log line "took <above 48.43> s" was never seen before on vm-1 (at s1); for example "took 940.20 s"'
    ]
