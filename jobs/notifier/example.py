"""A made-up incident: for a dry run where there is none, and for a test of a channel."""

from typing import Any

from jobs.notifier.notice import Places

_TIME = 1_790_000_000 * 10**9
_MACHINES = ("vm-01", "vm-02", "vm-03")
_TEXT = (
    "3 machines, likely because of hypervisor hv-01 (3 of its 4 machines); "
    "first: vm-01 has sent nothing for 30 s; gaps of up to 20 s are usual"
)

EXAMPLE: dict[str, Any] = {
    "id": "00000000000000000000000000000000",
    "phase": "start",
    "time_unix_nano": _TIME,
    "since_unix_nano": _TIME - 30 * 10**9,
    "machines": 3,
    "novelties": 3,
    "verdicts": ["silence"],
    "score": 31.5,
    "causes": [
        {"kind": "hypervisor", "name": "hv-01", "likelihood": 4.2, "affected": 3, "machines": 4},
        {"kind": "machine", "name": "vm-01", "likelihood": 1.0, "affected": 1, "machines": 1},
    ],
    "members": [
        {"novelty": f"n-{machine}", "machine": machine, "verdict": "silence", "since_unix_nano": _TIME, "score": 31.5}
        for machine in _MACHINES
    ],
    "text": _TEXT,
}


def example_places(machine: str) -> Places:
    """Where its machines are."""
    return {"site": "site-1", "hypervisor": "hv-01", "tenant": "operator-a", "role": "UPF"}
