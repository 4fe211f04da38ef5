"""What a metric's deviation says of where its cause is, by the metric's name.

The distinction follows the USE and RED methods (Gregg 2013; Wilkie 2018): utilisation of a resource belongs to its
machine, the rate of requests to those who send them, errors and durations also to those whom the machine waits for.
"""

import re
from enum import StrEnum
from functools import lru_cache


class Symptom(StrEnum):
    """Who may be behind a deviation."""

    RESOURCE = "resource"  # the machine itself: nobody's slowness fills its memory
    DEMAND = "demand"  # those who call it: they ask for more or for less
    SERVICE = "service"  # itself, or what it depends on: it waits, or passes an error on


def _words(*alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(alternatives)})\b")


# OpenTelemetry's namespaces of what is measured from within a machine.
_OF_A_HOST = re.compile(r"(?:system|process|container|k8s|jvm|go|dotnet|hw) ")
_RESOURCES = _words(
    "cpu|mem|memory|heap|rss|swap|paging|gc|jvm|threads|process(?:es)?|goroutines|fd|filehandles|load",
    "disk|filesystem|fs|df|inodes",
    "temperature|power|fan",
)
_DEMANDS = _words("requests|calls|queries|messages|packets|transactions|operations|network|traffic|throughput")
_SERVICES = _words(
    "duration|latency|rtt|delay|active|pending|queued?|inflight",
    "errors?|fail(?:ed|ures)|timeouts|dropped|discarded|retransmits|rejected|availability|success",
)
_SEPARATORS = re.compile(r"[^a-z0-9]+")


@lru_cache(4096)
def symptom_of(name: str) -> Symptom:
    """The symptom of a metric of this name, of which labels in braces say nothing.

    >>> symptom_of("http.server.request.duration{http.route=/cart}").value
    'service'
    """
    words = _SEPARATORS.sub(" ", name.partition("{")[0].lower())
    is_service = bool(_SERVICES.search(words))
    if _RESOURCES.search(words) and (_OF_A_HOST.match(words) or not is_service):
        return Symptom.RESOURCE
    return Symptom.DEMAND if not is_service and _DEMANDS.search(words) else Symptom.SERVICE
