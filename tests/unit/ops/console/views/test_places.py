from ops.console.views.places import UNKNOWN, places


def member(machine, **facts):
    return {"machine": machine, "now": facts or None}


def test_machines_stand_below_their_hypervisor_and_that_below_its_site():
    found = places(
        [
            member("vm-2", site="south", hypervisor="hv-2"),
            member("vm-3", site="north", hypervisor="hv-1"),
            member("vm-1", site="north", hypervisor="hv-1"),
        ]
    )
    assert found == [
        {"site": "north", "hypervisors": [{"hypervisor": "hv-1", "is_member": False, "machines": ["vm-1", "vm-3"]}]},
        {"site": "south", "hypervisors": [{"hypervisor": "hv-2", "is_member": False, "machines": ["vm-2"]}]},
    ]


def test_a_hypervisor_that_is_a_member_stands_once_with_its_guests():
    found = places([member("hv-1", site="north"), member("vm-1", site="north", hypervisor="hv-1")])
    (site,) = found
    assert site["hypervisors"] == [{"hypervisor": "hv-1", "is_member": True, "machines": ["vm-1"]}]


def test_what_is_not_known_comes_last():
    found = places([member("new"), member("vm-1", site="north"), member("vm-2", site="north", hypervisor="hv-1")])
    assert [site["site"] for site in found] == ["north", UNKNOWN]
    assert [host["hypervisor"] for host in found[0]["hypervisors"]] == ["hv-1", UNKNOWN]
    assert found[1]["hypervisors"] == [{"hypervisor": UNKNOWN, "is_member": False, "machines": ["new"]}]
