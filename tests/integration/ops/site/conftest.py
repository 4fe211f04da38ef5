"""Two sites and their centre, for all files of tests: they take minutes to fill."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ops.site.mirror import mirrored
from tests.integration.conftest import free_ports
from tests.integration.ops.site.mirroring import Arrivals, between, mirror_maker, sent
from tests.integration.ops.site.two_sites import SENT, Sites
from tests.replay.report import Report

COUNTS = ("lost", "duplicated")  # of all proofs together
SHOWN = ("same_bytes", "cut_s", "failover_s", "bytes_ratio_edge")


@pytest.fixture(scope="session")
def sites(new_chain, tmp_path_factory):
    """Everything was sent. Of dc1 all is at the centre, through two kills of its mirror; of dc2 what is before CUT."""
    chains = {name: new_chain(name, f"{name}-", SENT) for name in ("dc1", "dc2")}
    centre = new_chain("centre")
    folder: Path = tmp_path_factory.mktemp("mirrors")
    mirrors, arrivals = {}, Arrivals(centre, mirrored(centre.topics))
    try:
        port = free_ports(len(chains))
        for number, (name, chain) in enumerate(chains.items()):
            way = between(name, chain, centre)
            mirrors[name] = mirror_maker(way, mirrored(chain.topics), port + number, folder)
            mirrors[name].start()
        found = Sites(chains, centre, mirrors, arrivals)
        found.feed()
        yield found
    finally:
        for mirror in mirrors.values():
            mirror.clean()
        arrivals.close()


@pytest.fixture(scope="session")
def judged(sites: Sites) -> Sites:
    """The chains of the sites and of the centre have read what there is; dc2 is still cut off."""
    for chain in (*sites.chains.values(), sites.centre):
        chain.start()
        chain.stop()
    return sites


@pytest.fixture(scope="session")
def back(judged: Sites) -> Sites:
    """The mirror of dc2 is back, and the centre has read what came then."""
    judged.mirrors["dc2"].start()
    judged.arrivals.wait_for(sum(sent(chain) for chain in judged.chains.values()))
    judged.centre.start()
    judged.centre.stop()
    return judged


@pytest.fixture(scope="session")
def report(request) -> Iterator[Report]:
    found = Report(Path("build/sites.json"))
    yield found
    proofs = found.proofs.values()
    facts = {name: value for proof in proofs if isinstance(proof, dict) for name, value in proof.items()}
    counts = {name: sum(proof.get(name, 0) for proof in proofs if isinstance(proof, dict)) for name in COUNTS}
    shown = {name: facts[name] for name in SHOWN if name in facts}
    found.conclude(passed=request.session.testsfailed == 0, **counts, **shown)
