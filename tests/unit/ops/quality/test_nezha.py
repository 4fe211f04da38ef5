import gzip
from pathlib import Path

import orjson
import pytest

from infra.errors import UserError
from ops.quality.nezha import LOGS, Fault, figures, load

FAULT = Fault(1_000_000, "pod-a", "cpu_contention")


def novelty(machine: str, seconds: int, score: float = 20.0) -> dict[str, object]:
    return {"machine": machine, "time_unix_nano": (FAULT.time + seconds) * 10**9, "score": score}


def test_a_fault_is_found_by_its_pod_within_three_minutes() -> None:
    assert figures([FAULT], [novelty("pod-a", 180)])["found_within_3_minutes"] == 1
    assert figures([FAULT], [novelty("pod-a", 181), novelty("pod-b", 60)])["found_within_3_minutes"] == 0


def test_the_first_pod_is_the_earliest_and_of_the_same_minute_the_most_surprising() -> None:
    other = novelty("pod-b", 60, score=30.0)
    assert figures([FAULT], [other, novelty("pod-a" + LOGS, 60, score=40.0)])["right_pod_first"] == 1
    assert figures([FAULT], [other, novelty("pod-a", 60)])["right_pod_first"] == 0
    assert figures([FAULT], [other, novelty("pod-a", 30)])["right_pod_first"] == 1


def test_what_no_fault_explains_is_a_false_alarm() -> None:
    emitted = [novelty("pod-b", -1800), novelty("pod-b", 60), novelty("pod-b", 1800)]
    assert figures([FAULT], emitted)["false_alarms_per_hour"] == 2.0


def test_a_folder_is_read_as_statistics_by_minute_and_pod(tmp_path: Path) -> None:
    day = tmp_path / "faulty-2023-01-29"
    (day / "metric").mkdir(parents=True)
    (day / "log").mkdir()
    fault = {"inject_time": "2023-01-29 08:43:04", "inject_pod": "a", "inject_type": "return"}
    (day / "2023-01-29-fault_list.json").write_bytes(orjson.dumps({"08": [fault]}))
    with gzip.open(day / "metric" / "a_metric.csv.gz", "wt") as file:
        file.write("Time,TimeStamp,PodName,CpuUsage(m),Latency\nx,1674981670,a,11.5,\n")
    with gzip.open(day / "log" / "08_43_log.csv.gz", "wt") as file:
        file.write("PodName,TimeUnixNano,Log\n")
        for number in (1, 2):
            file.write(f'a,1674981670000000000,"{{""log"":""order {number} paid\\n"",""stream"":""stdout""}}"\n')
    recording = load(tmp_path)
    assert recording.faults == [Fault(1674981784, "a", "return")]
    minute = 1674981670 // 60 + 1
    assert [(s["series"], s["mean"]) for s in recording.metrics[minute]["a"]] == [("CpuUsage(m)", 11.5)]
    assert [(s["series"], s["count"]) for s in recording.logs[minute]["a" + LOGS]] == [("order <*> paid", 2)]


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--nezha .*fault_list\.json"):
        load(tmp_path)
