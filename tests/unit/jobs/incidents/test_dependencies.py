import pytest

from jobs.incidents.dependencies import goes_by, needs

CORE = {"hypervisor": "hv-1", "tenant": "core", "role": "UDM"}


@pytest.mark.parametrize(
    ("needed", "places", "is_needed"),
    [
        ("udm-1", {}, True),
        ("UDM-1", {}, True),  # names of hosts have no case
        ("udm-1.core.svc.cluster.local", {}, True),
        ("statefulset/core/udm", {}, True),
        ("udm", {}, True),  # the workload's last part
        ("udm-2", {}, False),
        ("core", {}, False),
    ],
)
def test_a_machine_is_needed_by_its_name_or_its_workloads(needed, places, is_needed):
    names = goes_by("udm-1", "statefulset/core/udm", {"hypervisor": "hv-1"})
    assert (not names.isdisjoint(needs([needed], places))) is is_needed


@pytest.mark.parametrize(("tenant", "is_needed"), [("core", True), ("other", False)])
def test_a_role_means_that_of_the_same_tenant(tenant, is_needed):
    wanted = needs(["udm"], {"tenant": tenant})
    assert (not goes_by("vm-17", None, CORE).isdisjoint(wanted)) is is_needed


def test_the_first_part_of_an_address_is_no_name():
    assert goes_by("10", None, {}).isdisjoint(needs(["10.0.0.7"], {}))
