import random

from jobs.detector.population.workloads import by_workload

WEB = "Deployment/shop/web"


def record(machine: str, workload: str | None = WEB, **columns: list[object]) -> dict[str, object]:
    facts = {"known": True, "site": "s1", "hypervisor": f"hv-{machine[-1]}"} | (
        {"workload": workload} if workload else {}
    )
    return {"machine": machine, "inventory": facts, "statistics": columns}


FIRST = record(
    "web-1",
    series=["cpu", "new", "opened <*>"],
    kind=["metric", "metric", "log"],
    unit=["1", "By", None],
    count=[2, 1, 5],
    mean=[1.0, None, 9.0],
    example=[None, None, "opened 7"],
)
SECOND = record("web-2", series=["opened <*>", "cpu"], kind=["log", "metric"], count=[3, 2], mean=[9.0, 4.0])


def test_members_are_one_machine_with_the_mean_of_metrics_and_the_lines_of_all() -> None:
    (workload,), members = by_workload([FIRST, SECOND])
    assert members == {"web-1", "web-2"}
    assert workload["machine"] == WEB
    assert workload["inventory"] == {"known": True, "site": "s1", "workload": WEB}  # each is on a hypervisor of its own
    statistics = workload["statistics"]
    assert statistics["series"] == ["cpu", "new", "opened <*>"]
    assert statistics["kind"] == ["metric", "metric", "log"]
    assert statistics["unit"] == ["1", "By", None]
    assert statistics["count"] == [4, 1, 8]
    assert statistics["example"] == [None, None, "opened 7"]
    assert statistics["mean"][0] == 2.5
    assert statistics["mean"][1] != statistics["mean"][1]  # nobody has a value


def test_the_order_of_records_does_not_show() -> None:
    records = [record(f"web-{n}", series=["cpu"], kind=["metric"], count=[1], mean=[0.1 * n]) for n in range(20)]
    shuffled = random.Random(3).sample(records, 20)
    assert by_workload(records) == by_workload(shuffled)


def test_other_machines_stay_as_they_are() -> None:
    alone, other = record("vm-1", None, series=["cpu"]), record("db-1", "StatefulSet/shop/db", **SECOND["statistics"])  # type: ignore[arg-type]
    unknown = {"machine": "vm-2", "statistics": {}}
    found, members = by_workload([alone, other, FIRST, unknown, SECOND])
    assert [one["machine"] for one in found] == ["vm-1", "vm-2", WEB, "StatefulSet/shop/db"]
    assert (found[0], found[1]) == (alone, unknown)
    assert members == {"db-1", "web-1", "web-2"}
