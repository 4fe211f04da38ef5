from pathlib import Path

import numpy as np
import pytest

from infra.errors import UserError
from ops.quality.smd import Machine
from ops.quality.tsb_ad import TABLE, beside, load

PUBLISHED = """file,IForest,PCA,ts_len,anomaly_len,num_anomaly,avg_anomaly_len,anomaly_ratio,point_anomaly,seq_anomaly
057_SMD_id_1_Facility.csv,0.10,0.30,20,5,2,2.5,0.25,0,1
058_SMD_id_2_Facility.csv,0.20,0.10,20,4,1,4.0,0.2,0,1
001_MSL_id_1_Sensor.csv,0.90,0.90,20,4,1,4.0,0.2,0,1
"""


def machine(name: str, *events: tuple[int, int]) -> Machine:
    labels = np.zeros(20, bool)
    for first, end in events:
        labels[first:end] = True
    return Machine(name, np.zeros((0, 1)), np.zeros((20, 1)), labels)


def test_machines_are_beside_the_published_scores_of_the_files_with_their_labels(tmp_path: Path) -> None:
    (tmp_path / TABLE).write_text(PUBLISHED)
    machines = [machine("one", (3, 6), (10, 12)), machine("two", (8, 12)), machine("no file", (1, 2))]
    found = beside(load(tmp_path), machines, {"one": 0.5, "two": 0.4, "no file": 1.0})
    assert found["machines"] == ["one", "two"]
    assert found["ours"] == pytest.approx(0.45)
    assert list(found["published"]) == ["PCA", "IForest"]
    assert found["published"] == pytest.approx({"PCA": 0.2, "IForest": 0.15})


def test_a_folder_without_the_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=TABLE):
        load(tmp_path)
