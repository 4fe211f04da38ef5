"""What the parts of the file of routes have in common."""

import os
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]  # the name of an environment variable


class Declared(BaseModel):
    """A part of the file of routes: it can't be changed, and a field that it doesn't have is a fault."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def secret(variable: str) -> str:
    """The value of an environment variable, or the empty text: a secret is read when it is used, and kept nowhere."""
    return os.environ.get(variable, "")
