"""The threads that send: one delivery a channel at a time, and outcomes that stay until they are committed."""

import threading

import pytest

from jobs.notifier.channels.channel import Channel, DeliveryError
from jobs.notifier.couriers import Couriers
from tests.unit.jobs.notifier.records import delivery
from tests.waiting import until


class Hand(Channel):
    """A channel whose attempts the test ends."""

    def __init__(self, failure=None):
        super().__init__()
        object.__setattr__(self, "go", threading.Event())
        object.__setattr__(self, "failure", failure)

    @property
    def variables(self):
        return ()

    def send(self, delivery):
        assert self.go.wait(30)
        if self.failure:
            raise self.failure


def outcome(couriers):
    until(couriers.outcomes, 30, "no outcome", pause=0.01)
    return couriers.outcomes()


def test_a_channel_that_hangs_holds_up_no_other_and_is_busy_until_its_outcome_is_committed():
    slow, quick = Hand(), Hand()
    couriers = Couriers({"mail": slow, "pager": quick})
    for channel in ("mail", "pager"):
        couriers.start(delivery(channel=channel).begun())
    assert couriers.idle == []
    quick.go.set()
    (sent,) = outcome(couriers)
    assert (sent.channel, sent.state) == ("pager", "sent")
    assert couriers.outcomes() == [sent] and couriers.idle == []
    couriers.committed(sent)
    assert couriers.idle == ["pager"]
    slow.go.set()
    couriers.wait(30)
    assert [one.channel for one in couriers.outcomes()] == ["mail"]


@pytest.mark.parametrize(
    ("failure", "reason"),
    [(DeliveryError("HTTP 503"), "HTTP 503"), (RuntimeError("https://secret"), "unexpected RuntimeError")],
)
def test_whatever_a_channel_raises_is_a_failed_attempt(failure, reason):
    channel = Hand(failure)
    channel.go.set()
    couriers = Couriers({"mail": channel})
    couriers.start(delivery().begun())
    (failed,) = outcome(couriers)
    assert (failed.state, failed.reason, failed.attempt) == ("failed", reason, 1)
