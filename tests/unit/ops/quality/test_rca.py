"""Root causes: recordings in the form of their publishers, led through the folds."""

import json

import pytest

from infra.errors import UserError
from ops.quality import rca, rca_data
from ops.quality.rca import Outcome, figures
from ops.quality.rca_data import Case, Recording, System

CALLS = {"front": ["cart"], "cart": ["db"]}


def values(second, **changed):
    """What three machines say of a window, each a latency that varies a little."""
    usual = {"front": 30.0, "cart": 20.0, "db": 10.0}
    noise = (second * 7 % 5 - 2) / 20
    return {name: {"latency": changed.get(name, value * (1 + noise))} for name, value in usual.items()}


def system(*faults):
    return System(10.0, CALLS, [Recording([values(second) for second in range(200)], list(faults))])


def fault(cause, target=None, **changed):
    return Case(f"{cause} is slow", [values(7)], [values(second, **changed) for second in range(4)], cause, target)


def test_the_cause_is_what_the_others_wait_for():
    slow = fault("db", db=70.0, cart=100.0, front=150.0)
    ((outcome,), calm) = rca.outcomes_of(system(slow), system(slow).recordings[0])
    assert (outcome.named, outcome.delay_seconds) == (["db", "cart", "front"], 0.0)
    assert calm == 0


def test_each_fault_follows_the_same_normal_operation():
    alone, both = (
        rca.outcomes_of(system(*faults), system(*faults).recordings[0])[0]
        for faults in ([fault("cart", cart=90.0)], [fault("db", db=70.0), fault("cart", cart=90.0)])
    )
    assert both[1] == alone[0]
    assert alone[0].named == ["cart"]


def incident(name, machines, *, score=20.0):
    members = [{"machine": machine} for machine in machines]
    return {"id": name, "machines": len(machines), "members": members, "score": score}


@pytest.mark.parametrize(("target", "expected"), [("db", "small"), ("front", "large"), (None, "large"), ("x", "large")])
def test_the_incident_of_the_machine_where_the_fault_was_seen_is_read_first_else_the_largest(target, expected):
    found = [incident("small", ["db"], score=90.0), incident("large", ["front", "cart"])]
    read = [one["id"] for one in rca._most_telling_first(found, target)]
    assert read == [expected, *({"small", "large"} - {expected})]


def test_a_cause_in_an_incident_of_its_own_is_named_after_those_of_the_one_where_the_fault_was_seen():
    apart = fault("db", target="front", db=70.0, front=150.0)
    without_edge = System(10.0, {"front": ["cart"]}, system(apart).recordings)
    ((outcome,), _) = rca.outcomes_of(without_edge, without_edge.recordings[0])
    assert outcome.named == ["front", "db"]


def test_a_fault_that_nothing_was_said_of_is_not_found():
    calm = system(fault("cart"))
    assert rca.outcomes_of(calm, calm.recordings[0])[0] == [Outcome("cart is slow", "cart", [], None)]


def test_an_incident_of_before_that_only_ends_meanwhile_is_not_the_faults():
    ended = Case("nothing", [values(7), values(8, front=300.0)], [values(at) for at in range(30)], "cart", None)
    chain = rca.Chain(system())
    assert [one["phase"] for one in chain.feed([*system().recordings[0].normal, *ended.before], 1000)] == ["start"]
    assert "end" in {one["phase"] for one in chain.feed(ended.windows, 1202)}
    assert rca.outcomes_of(system(ended), system(ended).recordings[0])[0] == [Outcome("nothing", "cart", [], None)]


def test_figures_say_how_often_the_cause_was_among_the_first_and_what_was_wrong():
    found = figures(
        [
            Outcome("one", "a", ["a", "b"], 0.0),
            Outcome("two", "a", ["b", "c", "a"], 0.0),
            Outcome("three", "a", ["b"], 0.0),
            Outcome("four", "a", [], None),
        ]
    )
    assert (found["top1"], found["top3"], found["avg5"]) == (0.25, 0.5, pytest.approx((2 * 0.25 + 3 * 0.5) / 5))
    assert (found["false_causes"], found["not_found"]) == (2, 1)
    assert found["missed"] == {"two": ["a", "b", "c", "a"], "three": ["a", "b"], "four": ["a"]}


def test_the_files_of_sockshop_are_read(tmp_path):
    run = tmp_path / "sockshop" / "carts-db-cpu" / "1"
    run.mkdir(parents=True)
    (run / "normal.csv").write_text("time,carts-db_cpu,carts_mem,carts_lat_50\n1,0.5,10,0.25\n2,0.75,,0.5\n")
    (run / "anomalous.csv").write_text("time,carts-db_cpu,carts_mem,carts_lat_50\n9,1,11,4\n")
    ((recording,),) = [rca_data.load(tmp_path)["sockshop"].recordings]
    assert recording.normal == [
        {"carts-db": {"cpu": 0.5}, "carts": {"memory": 10.0, "latency 50": 0.25}},
        {"carts-db": {"cpu": 0.75}, "carts": {"latency 50": 0.5}},
    ]
    windows = [{"carts-db": {"cpu": 1.0}, "carts": {"memory": 11.0, "latency 50": 4.0}}]
    assert recording.cases == [Case("carts-db-cpu/1", [], windows, "carts-db", None)]


def petshop(folder, name, values, timestamp):
    issue = folder / "train" / name
    issue.mkdir(parents=True)
    rows = [f"{timestamp + 300 * at},{value},{value}" for at, value in enumerate(values)]
    (issue / "metrics.csv").write_text("\n".join(["microservice,site,db", "metric,latency,requests", HEAD, *rows]))
    target = {"target": {"node": "site", "timestamp": timestamp}, "root_cause": {"node": "db"}}
    (issue / "target.json").write_text(json.dumps(target))


HEAD = "statistic,Average,Sum\nunix_timestamp,,"


def test_the_files_of_petshop_are_read_and_each_issue_knows_what_was_before_the_others(tmp_path):
    folder = tmp_path / "petshop" / "high_traffic"
    petshop(folder, "issue_0", [3, 4], 9000)
    petshop(folder, "issue_1", [5, 6], 3000)
    (folder / "noissue").mkdir()
    (folder / "noissue" / "metrics.csv").write_text(
        "\n".join(["microservice,site,db", "metric,latency,requests", HEAD, "0,1,2", "300,,2"])
    )
    (folder / "graph.csv").write_text(",db,site\ndb,0,0\nsite,1,0\n")
    found = rca_data.load(tmp_path)["petshop"]
    assert (found.window_seconds, found.dependencies) == (300.0, {"db": [], "site": ["db"]})
    (recording,) = found.recordings
    assert recording.normal == [
        {"site": {"latency Average": 1.0}, "db": {"requests Sum": 2.0}},
        {"db": {"requests Sum": 2.0}},
    ]
    earlier, later = recording.cases
    assert (earlier.name, later.name) == ("high_traffic/train/issue_1", "high_traffic/train/issue_0")
    assert earlier.before == later.windows[:1] == [{"site": {"latency Average": 3.0}, "db": {"requests Sum": 3.0}}]
    assert (later.cause, later.target) == ("db", "site")


def test_a_folder_without_recordings_is_refused_with_what_it_needs(tmp_path):
    with pytest.raises(UserError, match=r"--rca .*: no sockshop/SERVICE-FAULT/RUN and no petshop/TRAFFIC/graph\.csv"):
        rca_data.load(tmp_path)
    (tmp_path / "sockshop" / "carts-cpu" / "1").mkdir(parents=True)
    with pytest.raises(UserError, match=r"--rca: .*normal\.csv\.gz is missing"):
        rca_data.load(tmp_path)
