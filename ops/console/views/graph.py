"""Where the jobs of the chain stand in a drawing: columns by what they read, from left to right."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from infra.contract.jobs import Job, Topics
from infra.contract.topics import TopicMap

WIDTH, HEIGHT = 148, 62  # of a node
GAP_X, GAP_Y = 92, 24
SINK_ROW = 1  # of jobs that read groups of topics, below the others


@dataclass(frozen=True)
class Node:
    """A job and its upper left corner."""

    job: str
    x: int
    y: int


class Edge(NamedTuple):
    """From a job to one that reads what it writes, as an SVG path."""

    writer: str
    reader: str
    path: str


@dataclass(frozen=True)
class Graph:
    """The drawing, in SVG units."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    width: int
    height: int


def layout(jobs: Sequence[Job], topics: TopicMap) -> Graph:
    """Place each job to the right of those whose topics it reads by name; jobs of whole groups below the others."""
    depths: dict[str, int] = {}
    for job in jobs:  # the table's order: writers first
        before = [depths[other.name] for other in jobs if other.name in depths and _feeds(other, job, topics)]
        depths[job.name] = 1 + max(before, default=-1)
    placed: dict[tuple[int, int], str] = {}
    for job in jobs:
        column, row = depths[job.name], SINK_ROW if _reads_groups(job) else 0
        while (column, row) in placed:
            row += 1
        placed[column, row] = job.name
    nodes = {name: Node(name, x * (WIDTH + GAP_X), y * (HEIGHT + GAP_Y)) for (x, y), name in placed.items()}
    edges = [
        Edge(one.name, other.name, _curve(nodes[one.name], nodes[other.name]))
        for one in jobs
        for other in jobs
        if one is not other and _feeds(one, other, topics) and depths[one.name] < depths[other.name]
    ]
    right, below = max(node.x for node in nodes.values()), max(node.y for node in nodes.values())
    return Graph(tuple(nodes.values()), tuple(edges), right + WIDTH, below + HEIGHT)


def _reads_groups(job: Job) -> bool:
    return job.sink != "kafka" and any(isinstance(one, Topics) for one in job.reads)


def _feeds(writer: Job, reader: Job, topics: TopicMap) -> bool:
    """Whether one reads what the other writes, dead letters left out."""
    read = {topic.name for topic in reader.inputs(topics)}
    written = {topics[key].name for key in writer.writes if key not in ("events.rejected", "events.late")}
    return bool(read & written)


def _curve(one: Node, other: Node) -> str:
    x1, y1, x2, y2 = one.x + WIDTH, one.y + HEIGHT // 2, other.x, other.y + HEIGHT // 2
    middle = (x1 + x2) // 2
    return f"M{x1},{y1} C{middle},{y1} {middle},{y2} {x2},{y2}"
