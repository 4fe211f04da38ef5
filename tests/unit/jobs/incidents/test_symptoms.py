import pytest

from jobs.incidents.symptoms import Symptom, symptom_of


@pytest.mark.parametrize(
    ("name", "symptom"),
    [
        ("system.cpu.utilization{state=user}", Symptom.RESOURCE),
        ("system.disk.operation_time{device=sda}", Symptom.RESOURCE),
        ("jvm.gc.duration", Symptom.RESOURCE),
        ("process.memory.usage", Symptom.RESOURCE),
        ("load.shortterm", Symptom.RESOURCE),
        ("carts_mem", Symptom.RESOURCE),
        ("http.server.request.duration{http.route=/cart}", Symptom.SERVICE),
        ("messaging.process.duration", Symptom.SERVICE),
        ("system.network.errors", Symptom.SERVICE),
        ("http.server.active_requests", Symptom.SERVICE),
        ("availability Average", Symptom.SERVICE),
        ("amf.registrations", Symptom.SERVICE),
        ("requests Sum", Symptom.DEMAND),
        ("system.network.packets{direction=receive}", Symptom.DEMAND),
        ("rpc.server.calls", Symptom.DEMAND),
        ("upf.throughput{cpu=1}", Symptom.DEMAND),  # a label says nothing
    ],
)
def test_a_metrics_name_says_who_may_be_behind_its_deviation(name, symptom):
    assert symptom_of(name) == symptom
