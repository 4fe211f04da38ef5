import pytest

from infra.errors import UserError
from ops.simulator import cloud


def test_the_default_cloud_has_two_sites_four_hypervisors_and_24_guests():
    machines = cloud.build()
    hypervisors = {machine.name for machine in machines if machine.type == "physical"}
    guests = [machine for machine in machines if machine.type == "virtual"]
    assert hypervisors == {"hv-01", "hv-02", "hv-03", "hv-04"}
    assert [guest.name for guest in guests] == [f"vm-{n:02d}" for n in range(1, 25)]
    assert {guest.role for guest in guests} == set(cloud.NETWORK_FUNCTIONS)
    assert {machine.site for machine in machines} == {"site-1", "site-2"}


def test_a_guest_stands_at_the_site_of_its_hypervisor():
    machines = {machine.name: machine for machine in cloud.build(50, 3)}
    guests = [machine for machine in machines.values() if machine.hypervisor]
    assert guests
    assert all(machines[guest.hypervisor].site == guest.site for guest in guests)


def test_an_inventory_record_leaves_out_what_a_physical_machine_lacks():
    hypervisor, *_, guest = cloud.build()
    assert hypervisor.inventory(7) == {
        "machine": "hv-01",
        "type": "physical",
        "site": "site-1",
        "role": "compute",
        "valid_from_unix_nano": 7,
    }
    assert guest.inventory(7).keys() - hypervisor.inventory(7).keys() == {"hypervisor", "tenant"}


def test_newcomers_join_an_existing_hypervisor():
    machines = cloud.build()
    (newcomer,) = cloud.newcomers(machines, ["vm-99"])
    assert newcomer.name == "vm-99"
    assert newcomer.hypervisor in {machine.name for machine in machines if machine.type == "physical"}


@pytest.mark.parametrize(("machines", "sites", "message"), [(28, 0, "sites 0"), (3, 2, "machines 3")])
def test_a_cloud_that_cannot_be_is_refused(machines, sites, message):
    with pytest.raises(UserError, match=message):
        cloud.build(machines, sites)


def test_two_clouds_can_stand_side_by_side():
    one, other = cloud.build(machines=7, sites=1), cloud.build(machines=7, sites=1, prefix="lab-")
    assert [machine.name for machine in other] == [f"lab-{machine.name}" for machine in one]
    assert {machine.site for machine in other} == {"lab-site-1"}
    assert {machine.hypervisor for machine in other} == {None, "lab-hv-01"}
