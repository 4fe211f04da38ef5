import re

import numpy as np
import pytest

from ops.simulator import cloud, logs
from ops.simulator.logs import MASK, NEW_TEMPLATE, Logs

MACHINES = cloud.build()
END = 1_795_000_005_000_000_000


def templates():
    return {template.id: template for role in logs.ROLE_TEMPLATES for template in logs.of_role(role)}.values()


def test_a_machine_and_step_give_the_same_lines_again():
    counts = Logs(MACHINES, 1, 5.0).counts(3)
    one, other = (Logs(MACHINES, 1, 5.0).lines(7, 3, counts[7], END, {}) for _ in range(2))
    assert one == other
    assert one


def test_a_machine_added_at_the_end_changes_no_other():
    more = (*MACHINES, *cloud.newcomers(MACHINES, ["vm-99"]))
    assert np.array_equal(Logs(MACHINES, 1, 5.0).counts(3), Logs(more, 1, 5.0).counts(3)[: len(MACHINES)])


def test_lines_are_in_order_within_the_step():
    lines = Logs(MACHINES, 1, 5.0).lines(0, 0, [40], END, {})
    times = [simulated.line.time_unix_nano for simulated in lines]
    assert times == sorted(times)
    assert END - 5_000_000_000 <= times[0] <= times[-1] < END


def test_extra_lines_leave_the_usual_ones_as_they_are():
    source, counts = Logs(MACHINES, 1, 5.0), [1, 2, 3]
    usual, more = source.lines(0, 0, counts, END, {}), source.lines(0, 0, counts, END, {NEW_TEMPLATE: 2.0})
    assert [s for s in more if s.template != NEW_TEMPLATE] == usual
    assert sum(s.template == NEW_TEMPLATE for s in more) == 10


def test_lines_come_as_often_as_their_template_says():
    source = Logs(MACHINES, 1, 5.0)
    total = sum(source.counts(step) for step in range(400))
    row = next(i for i, machine in enumerate(MACHINES) if machine.role == "AMF")
    rates = [template.rate for template in logs.of_role("AMF")]
    assert total[row][: len(rates)] / 2000 == pytest.approx(rates, abs=0.08)


@pytest.mark.parametrize("template", templates(), ids=lambda template: template.id)
def test_a_line_fits_its_masked_template(template):
    source = Logs(MACHINES, 1, 5.0)
    (simulated,) = source.lines(0, 0, [], END, {template: 0.2})
    pattern = ".+".join(re.escape(part) for part in template.masked.split(MASK))
    assert re.fullmatch(pattern, simulated.line.body)
    assert "{" not in template.masked
    assert template.severity in logs.SEVERITIES


def test_faults_add_lines_of_the_role_or_of_a_new_template():
    assert logs.extra(["log_burst"], "AMF") == {logs.ROLE_TEMPLATES["AMF"][0]: logs.BURST_RATE}
    assert NEW_TEMPLATE in logs.extra(["new_template", "silence"], "AMF")
    assert logs.extra(["cpu_hog"], "AMF") == {}
