import random

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from infra.contract.json_schema import json_schema
from infra.contract.schemas import INCIDENTS
from infra.errors import UserError
from jobs.incidents.causes import SECOND
from jobs.incidents.fold import Incidents, fold
from jobs.incidents.incident import JOIN, LONGEST
from jobs.runtime.packed_state import pack, unpack

SCHEMA = Draft202012Validator(json_schema("incidents", INCIDENTS))
PARTITIONS = 2
FLEET = {"machines": 20, "hypervisor": 4, "site": 20, "tenant": 10, "role": 5}


def novelty(machine, second, phase="start", *, since=None, verdict="anomaly", score=20.0, needs=None, **inventory):
    """Without inventory, a machine of its own."""
    began = second if since is None else since
    return {
        "id": f"{machine}@{began}",
        "phase": phase,
        "verdict": verdict,
        "machine": machine,
        "inventory": {"known": bool(inventory), **inventory},
        "peers": {kind: n for kind, n in FLEET.items() if kind in ("machines", "hypervisor") or kind in inventory},
        "series": "cpu",
        "time_unix_nano": second * SECOND,
        "since_unix_nano": began * SECOND,
        "score": score,
        "text": f"cpu on {machine} is high",
        **({"depends_on": needs} if needs else {}),
    }


def partition_of(machine):
    return sum(machine.encode()) % PARTITIONS


def log_of(*novelties, until=4000):
    """Each in its machine's partition, and a watermark for each ten seconds that something was said in."""
    records = []
    times = sorted({one["time_unix_nano"] for one in novelties} | {until * SECOND})
    for time in times:
        records += [(partition_of(n["machine"]), orjson.dumps(n)) for n in novelties if n["time_unix_nano"] == time]
        records += [(partition, watermark(time)) for partition in range(PARTITIONS)]
    return records


def watermark(time):
    return orjson.dumps({"watermark_unix_nano": time + 1})


def emitted(*novelties, until=4000):
    found = fold(None, log_of(*novelties, until=until), PARTITIONS)[1]
    for record in found:
        SCHEMA.validate(record)
    return found


def lives(records):
    """By incident in the order of their starts: the phases."""
    found = {}
    for record in records:
        found.setdefault(record["id"], []).append(record["phase"])
    return list(found.values())


def test_a_novelty_alone_is_an_incident_and_ends_with_it():
    start, end = emitted(novelty("vm-1", 100), novelty("vm-1", 150, "end", since=100))
    assert (start["phase"], start["machines"], start["text"]) == ("start", 1, "cpu on vm-1 is high")
    assert start["causes"][0]["kind"] == "machine"
    assert (end["phase"], end["id"]) == ("end", start["id"])
    assert end["time_unix_nano"] == 100 * SECOND + JOIN  # until then others could have come


def test_it_lasts_as_long_as_one_of_its_novelties():
    found = emitted(
        novelty("vm-1", 100, hypervisor="hv-1"),
        novelty("vm-2", 110, hypervisor="hv-1"),
        novelty("vm-1", 150, "end", since=100, hypervisor="hv-1"),
        novelty("vm-2", 900, "end", since=110, hypervisor="hv-1"),
    )
    assert lives(found) == [["start", "update", "end"]]
    assert found[-1]["time_unix_nano"] == 900 * SECOND


def test_machines_of_one_hypervisor_are_one_incident_and_it_is_the_cause():
    found = emitted(*(novelty(f"vm-{n}", 100 + n, hypervisor="hv-1", tenant=f"t{n}", role="upf") for n in range(3)))
    assert lives(found) == [["start", "update", "update"]]
    cause = found[-1]["causes"][0]
    assert (cause["kind"], cause["name"], cause["affected"]) == ("hypervisor", "hv-1", 3)
    assert found[-1]["text"] == (
        "3 machines, likely because of hypervisor hv-1 (3 of its 8 machines); first: cpu on vm-0 is high"
    )
    assert [member["machine"] for member in found[-1]["members"]] == ["vm-0", "vm-1", "vm-2"]


def test_a_hypervisor_belongs_to_its_guests():
    found = emitted(novelty("vm-1", 100, hypervisor="hv-1"), novelty("hv-1", 110), novelty("hv-2", 110))
    assert sorted(record["machines"] for record in found if record["phase"] == "update") == [2]
    assert len({record["id"] for record in found}) == 2


def test_the_same_role_of_a_tenant_is_one_incident_and_role_or_tenant_alone_are_not():
    found = emitted(
        novelty("vm-1", 100, hypervisor="hv-1", tenant="t1", role="upf"),
        novelty("vm-2", 110, hypervisor="hv-2", tenant="t1", role="upf"),
        novelty("vm-3", 120, hypervisor="hv-3", tenant="t1", role="amf"),
        novelty("vm-4", 120, hypervisor="hv-4", tenant="t2", role="upf"),
    )
    assert [record["phase"] for record in found[:2]] == ["start", "update"]
    assert len({record["id"] for record in found}) == 3
    assert found[1]["causes"][0]["kind"] == "role"  # the smallest group that both share


def test_what_begins_much_later_is_an_incident_of_its_own():
    seconds = JOIN // SECOND
    near, far = (
        emitted(novelty("vm-1", 100, hypervisor="hv-1"), novelty("vm-2", 100 + after, hypervisor="hv-1"))
        for after in (seconds - 1, seconds)
    )
    assert len({record["id"] for record in near}) == 1
    assert len({record["id"] for record in far}) == 2


def test_an_incident_takes_no_more_after_a_quarter_of_an_hour():
    found = emitted(*(novelty(f"vm-{n}", 100 + 60 * n, hypervisor="hv-1") for n in range(20)))
    first = [record for record in found if record["id"] == found[0]["id"]]
    assert first[-1]["machines"] == LONGEST // (60 * SECOND)


def test_novelties_of_one_time_are_emitted_once():
    found = emitted(*(novelty(f"vm-{n}", 100, hypervisor="hv-1") for n in range(9)))
    assert [(record["phase"], record["machines"]) for record in found] == [("start", 9)]


def test_a_change_of_verdict_is_an_update():
    found = emitted(novelty("vm-1", 100), novelty("vm-1", 180, "update", since=100, verdict="state_change"))
    assert [(record["phase"], record["verdicts"]) for record in found] == [
        ("start", ["anomaly"]),
        ("update", ["state_change"]),
    ]


def test_nothing_is_emitted_before_the_slowest_partition_has_passed_it():
    records = [(0, orjson.dumps(novelty("a", 100))), (0, watermark(500 * SECOND)), (1, watermark(99 * SECOND))]
    state, found = fold(None, records, PARTITIONS)
    assert found == []
    assert [record["phase"] for record in fold(state, [(1, watermark(100 * SECOND))], PARTITIONS)[1]] == ["start"]


def test_an_incident_of_which_nothing_is_heard_for_a_day_is_over():
    start, end = emitted(novelty("vm-1", 100), until=100_000)
    assert end["time_unix_nano"] - start["time_unix_nano"] == 86_400 * SECOND


MACHINES = [(f"vm-{n}", f"hv-{n % 3}", f"t{n % 2}", ("upf", "amf")[n % 2]) for n in range(8)]


def story(rng):
    """Novelties of some machines, with their ends."""
    found = []
    for name, host, tenant, role in MACHINES:
        facts = {"hypervisor": host, "tenant": tenant, "role": role}
        for begin in sorted(rng.sample(range(10, 1200, 10), rng.randint(0, 3))):
            score = rng.randint(10, 30)
            found.append(novelty(name, begin, score=score, **facts))
            if rng.random() < 0.5:
                found.append(novelty(name, begin + rng.randint(1, 300), "end", since=begin, score=score, **facts))
    return found


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32).map(random.Random))
def test_neither_batches_nor_the_pace_of_the_partitions_show(rng):
    records = log_of(*story(rng))
    whole_state, whole = fold(None, records, PARTITIONS)
    left = {partition: [one for one in records if one[0] == partition] for partition in range(PARTITIONS)}
    state, found = None, []
    while any(left.values()):
        batch = []
        for partition, rest in left.items():
            taken = rng.randint(0, min(9, len(rest)))
            batch += rest[:taken]
            left[partition] = rest[taken:]
        state, more = fold(state, batch, PARTITIONS)
        found += more
    assert orjson.dumps(found) == orjson.dumps(whole)
    assert state == whole_state


def test_a_machine_joins_what_it_depends_on_and_what_depends_on_it():
    found = emitted(novelty("amf", 100, needs=["udm"]), novelty("udm", 110), novelty("smf", 120, needs=["UDM.core"]))
    assert lives(found) == [["start", "update", "update"]]
    first = found[-1]["causes"][0]
    assert (found[-1]["machines"], first["name"], first["affected"]) == (3, "udm", 2)  # the AMF began before it
    together = emitted(*(novelty(name, 100, needs=["udm"]) for name in ("amf", "smf")), novelty("udm", 100))
    assert [cause["name"] for cause in together[-1]["causes"]] == ["udm", "amf", "smf"]
    assert together[-1]["text"] == (
        "3 machines, likely because of machine udm, on which 2 of the others depend; first: cpu on amf is high"
    )


def test_incidents_that_turn_out_to_be_one_become_one():
    """Front and database are strange; then the cart, which stands between them."""
    front, db, cart = novelty("front", 100, needs=["cart"]), novelty("db", 110), novelty("cart", 120, needs=["db"])
    found = emitted(front, db, cart)
    assert lives(found) == [["start", "update"], ["start", "end"]]
    whole, part = found[-1], found[-2]
    assert (part["merged_into"], part["text"]) == (whole["id"], f"a part of incident {whole['id']}: cpu on db is high")
    assert ([member["machine"] for member in whole["members"]], whole["novelties"]) == (["front", "db", "cart"], 3)


def test_incidents_of_one_time_become_one_before_anybody_hears_of_them():
    found = emitted(novelty("a", 100, needs=["c"]), novelty("b", 100), novelty("c", 100, needs=["b"]))
    assert [(record["phase"], record["machines"]) for record in found] == [("start", 3)]


def test_an_incident_of_long_windows_takes_others_for_two_of_them():
    def long(machine, second):
        return novelty(machine, second, hypervisor="hv-1") | {"window_seconds": 300.0}

    near, far = (emitted(long("vm-1", 1000), long("vm-2", 1000 + after)) for after in (599, 600))
    assert (len({record["id"] for record in near}), len({record["id"] for record in far})) == (1, 2)


def test_a_state_of_0_2_0_goes_on():
    """Its members lack what causes are judged by now."""
    state, _ = fold(None, log_of(novelty("vm-1", 100, hypervisor="hv-1"), until=110), PARTITIONS)
    packed = unpack(state)[0]
    ours = ("workload", "depends_on", "window", "strength", "passed_on", "is_demand", "evidence")
    for member in packed["open"][0]["members"]:
        for name in ours:
            del member[name]
    incidents = Incidents(PARTITIONS, pack(packed, {}))
    more = [(partition_of("vm-2"), orjson.dumps(novelty("vm-2", 120, hypervisor="hv-1")))]
    more += [(partition, watermark(120 * SECOND)) for partition in range(PARTITIONS)]
    (update,) = fold(incidents.dump(), more, PARTITIONS)[1]
    assert (update["phase"], update["machines"]) == ("update", 2)
    SCHEMA.validate(update)


def test_a_state_of_another_version_is_refused_with_what_to_do():
    older = pack({"ticks": [0], "waiting": [], "open": []}, {})
    with pytest.raises(UserError, match=r"incidents: its checkpoint holds the state of another version; .*--as NAME"):
        Incidents(1, older)


def test_machines_of_one_site_that_fall_silent_together_are_one_incident():
    silent = [novelty(f"vm-{n}", 100 + n % 50, verdict="silence", site="s1", tenant=f"t{n}") for n in range(200)]
    silent += [novelty("vm-far", 100, verdict="silence", site="s2")]
    records = emitted(*silent)
    assert sorted({record["id"]: record["machines"] for record in records}.values()) == [1, 200]


def test_a_mass_retirement_is_one_incident_whatever_the_places_and_it_is_over():
    gone = [
        {
            **novelty(f"vm-{n}", 100 + 10 * (n % 3), "end", verdict="gone", score=0.0, site=f"s{n % 7}"),
            "kind": "machine",
        }
        for n in range(1000)
    ]
    records = emitted(*gone)
    assert lives(records) == [["start", "update", "update", "end"]]
    assert (records[-1]["machines"], records[-1]["verdicts"]) == (1000, ["gone"])
    assert records[-1]["time_unix_nano"] == 120 * SECOND + JOIN


def test_a_silence_that_ends_as_gone_changes_its_incident_and_begins_none():
    places = {"site": "s1"}
    silent = [novelty(f"vm-{n}", 100, verdict="silence", **places) for n in range(3)]
    gone = [novelty(f"vm-{n}", 400, "end", since=100, verdict="gone", **places) for n in range(3)]
    records = emitted(*silent, *gone)
    assert lives(records) == [["start", "update", "end"]]
    assert [record["verdicts"] for record in records] == [["silence"], ["gone"], ["gone"]]


def grown(partition, record):
    """Where a record of one of two partitions is when there are four: a novelty by its machine, a watermark in both."""
    if b'"machine"' not in record:
        return [partition, partition + PARTITIONS]
    return [partition + PARTITIONS * (sum(orjson.loads(record)["machine"].encode()) // PARTITIONS % 2)]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32).map(random.Random), st.data())
def test_incidents_go_on_when_each_partition_has_become_two(rng, chosen):
    """But for what they say of causes: by how many machines there are, as far as each partition has told."""
    records = log_of(*story(rng))
    cut = chosen.draw(st.integers(0, len(records)))
    state, _ = fold(None, records[:cut], PARTITIONS)
    expected = fold(state, records[cut:], PARTITIONS)[1]
    after = [(partition, value) for old, value in records[cut:] for partition in grown(old, value)]
    found = fold(state, after, 2 * PARTITIONS)[1]
    for record in (*found, *expected):
        del record["causes"], record["text"]
    assert found == expected


def test_each_new_partition_goes_on_from_the_watermark_of_the_one_that_it_was_a_part_of():
    state, _ = fold(None, [(0, watermark(100)), (1, watermark(200))], 2)
    assert Incidents(6, state).watermarks == [101, 201, 101, 201, 101, 201]


@pytest.mark.parametrize("partitions", [1, 3])
def test_partitions_that_a_state_was_not_divided_into_are_refused(partitions):
    state, _ = fold(None, [], 2)
    with pytest.raises(UserError, match=f"of 2 partitions of novelties, now there are {partitions}"):
        Incidents(partitions, state)
