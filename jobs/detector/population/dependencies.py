"""What a machine needs: what its inventory says, and the peers that the metrics of its clients name.

OpenTelemetry's semantic conventions put the other side of a call into attributes of the caller's metrics. They are part
of a series' name, so what is learned costs no state, and is forgotten with the series.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from infra.contract.inventory import DEPENDS_ON, MOST_DEPENDENCIES

_SERVICE = re.compile(r"[{,](?:peer\.service|service\.peer\.name)=([^,}]+)")
# On a server's metrics these name the server itself.
_ADDRESS = re.compile(r"^[^{]*\.client\.[^{]*\{(?:.*,)?(?:server\.address|net\.peer\.name)=([^,}]+)")
_OWN = re.compile(r"localhost$|127\.|::1$|\[::1\]$|0\.0\.0\.0$", re.IGNORECASE)


def peer_of(series: str) -> str | None:
    """The service or address that a client's metric is about; None of other series and of the machine itself.

    >>> peer_of("http.client.request.duration{http.request.method=GET,server.address=udm.core}")
    'udm.core'
    """
    found = _SERVICE.search(series) or _ADDRESS.match(series)
    return None if found is None or _OWN.match(found[1]) else found[1]


def dependencies(inventory: Mapping[str, Any] | None, series: Iterable[str]) -> list[str]:
    """The names of what a machine with these facts and these series needs, sorted, at most MOST_DEPENDENCIES.

    Those of the inventory are the first that are kept.
    """
    declared = set((inventory or {}).get(DEPENDS_ON) or ())
    learned = {peer for one in series if (peer := peer_of(one))} - declared
    return sorted([*declared, *sorted(learned)[: max(MOST_DEPENDENCIES - len(declared), 0)]])
