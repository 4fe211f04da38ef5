import orjson
import pytest

from jobs.detector.control import allow, reset, suppress
from jobs.detector.rules import Rule
from ops.backtest.orders import Order, with_orders
from tests.unit.ops.backtest.recorded import FIRST, SETTINGS, SIZE, record

RULE = Rule(machine="vm-a")
BEGIN = FIRST * SIZE


@pytest.mark.parametrize(
    ("control", "concerns"),
    [
        ({"machine": "vm-a"}, True),
        ({"machine": "vm-*", "series": "c*"}, True),
        ({"machine": "vm-*", "series": "mem"}, False),
        ({"machine": "hv-*"}, False),
    ],
)
def test_an_order_concerns_what_it_names(control, concerns):
    assert Order(0, {"action": "suppress", **control}).concerns("vm-a", ["cpu", "net"]) is concerns


def test_what_was_said_before_the_first_window_and_holds_is_told_at_the_beginning_in_its_order():
    early, late = BEGIN // 1_000_000 - 5, BEGIN // 1_000_000 + 5
    orders = [
        Order(early - 2, suppress(RULE)),
        Order(early - 1, reset("cpu", "vm-a")),  # the replay begins without what it would forget
        Order(early, allow(RULE.id)),
        Order(late, suppress(RULE)),  # stands among the recorded statistics
    ]
    other = orjson.dumps({"watermark_unix_nano": BEGIN - SIZE})
    batches = [[other], [record("vm-a", 0)], [record("vm-a", 1)]]
    found = list(with_orders(batches, orders, SETTINGS))
    assert [found[0], *found[2:]] == batches
    told = [orjson.loads(value) for value in found[1]]
    assert [one["control"]["action"] for one in told] == ["suppress", "allow"]
    times = [one["time_unix_nano"] for one in told]
    assert times == sorted(times)
    assert BEGIN < times[0] < times[1] < BEGIN + 3 * SIZE


def test_an_order_is_shown_by_what_it_says():
    said = Order(0, {"action": "reset", "machine": "vm-a", "series": "cpu", "by": "eva", "novelty_record": "{}"})
    assert said.text() == "reset machine=vm-a series=cpu"
