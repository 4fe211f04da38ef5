from jobs.detector.control import suppress
from jobs.detector.rules import Rule
from jobs.detector.shard import fold
from ops.backtest.orders import Order
from ops.backtest.replay import Alert, Run, Variant, note, replay
from tests.unit.ops.backtest.recorded import BURST, FAINT, FIRST, SETTINGS, SIZE, WINDOWS, Recorded, stream

NOW = Variant("now", SETTINGS)


def places(alerts):
    return [(alert.machine, alert.time_unix_nano // SIZE - FIRST) for alert in alerts]


def test_a_run_gives_what_the_fold_gives():
    run = Run([NOW])
    for batch in Recorded().read(0):
        run.feed(batch)
    found = run.found()
    novelties = [one for one in fold(None, stream(), SETTINGS)[1] if one["phase"] == "start"]
    assert [alert.id for alert in found.alerts["now"]] == [one["id"] for one in novelties]
    assert ("vm-a", BURST) in places(found.alerts["now"])
    assert (found.first_unix_nano, found.last_unix_nano) == (FIRST * SIZE, (FIRST + WINDOWS - 1) * SIZE)


def test_all_partitions_in_processes_of_their_own_give_the_same_as_one_after_the_other():
    records = Recorded({0: stream(), 2: stream(), 5: []})
    told = []
    found = replay(records, [NOW], progress=told.append)
    run = Run([NOW])
    run.feed(stream())
    alone = run.found()
    assert places(found.alerts["now"]) == sorted(
        2 * places(alone.alerts["now"]), key=lambda place: (place[1], place[0])
    )
    assert (found.first_unix_nano, found.last_unix_nano) == (alone.first_unix_nano, alone.last_unix_nano)
    assert told[-1] == 2 * len(stream())


def test_variants_see_the_same_records_with_other_settings_or_without_orders():
    strict = Variant("strict", SETTINGS.model_copy(update={"alarms_per_day": 5e-5}))
    variants = [NOW, strict, Variant("unordered", SETTINGS, obeys=False)]
    rule = Order(1, suppress(Rule(machine="vm-a", series="cpu")))
    found = replay(Recorded(), variants, [rule])
    assert places(found.alerts["now"]) == [("vm-b", FAINT)]
    assert places(found.alerts["unordered"]) == [("vm-b", FAINT), ("vm-a", BURST)]
    assert found.alerts["strict"] == []


def novelty(identity, phase, verdict="anomaly", time=5):
    return {
        "id": identity,
        "phase": phase,
        "verdict": verdict,
        "time_unix_nano": time,
        "machine": "vm-1",
        "series": "cpu",
        "score": 9.0,
        "text": "t",
    }


def test_an_alert_is_a_novelties_first_record_with_its_last_verdict():
    alerts = {}
    note(alerts, [novelty("a", "start"), novelty("b", "end"), novelty("c", "end", "gone")])
    note(alerts, [novelty("a", "update", "state_change", 8)])
    assert alerts == {
        "a": Alert("a", 5, "vm-1", "anomaly", "cpu", 9.0, "t", "state_change", 8),
        "c": Alert("c", 5, "vm-1", "gone", "cpu", 9.0, "t", "gone", 5),
    }


def test_without_records_nothing_was_learned():
    assert replay(Recorded({0: []}), [NOW]).first_unix_nano is None
