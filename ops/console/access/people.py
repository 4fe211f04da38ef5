"""Who asks, and what that person may do."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

GROUP = "group:"
ANYBODY = "*"
LONGEST_NAME = 200  # characters

Role = Literal["viewer", "operator"]


@dataclass(frozen=True)
class Person:
    """Somebody who may see the console. Without a name nothing can be done: whatever is done bears one."""

    name: str | None
    role: Role

    @property
    def may_act(self) -> bool:
        """Whether this person may change something."""
        return self.role == "operator"


@dataclass(frozen=True)
class Roles:
    """Who has which role: names, `group:NAME`, or `*` for all that are known."""

    viewers: Collection[str]
    operators: Collection[str]

    def person(self, name: str, groups: Collection[str]) -> Person | None:
        """The person of that name in these groups; None if no role is theirs."""
        known = {ANYBODY, name, *(f"{GROUP}{group}" for group in groups)}
        if known & {*self.operators}:
            return Person(name, "operator")
        return Person(name, "viewer") if known & {*self.viewers} else None

    def names_group(self, group: str) -> bool:
        """Whether a role is given to that group."""
        return f"{GROUP}{group}" in {*self.viewers, *self.operators}
