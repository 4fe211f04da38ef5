"""Which tables can be asked: those of the promoted generation, by their names in SQL."""

import os
from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from infra.contract.topics import LIVE, load_topics
from infra.errors import UserError
from jobs.runtime.object_store import delta_options, plain_url
from jobs.runtime.settings import Settings

CURRENT = "current"  # the generation under which the pointer stands, see ops/replay/views.py


@dataclass(frozen=True)
class Table:
    """A Delta table, and the generation whose it is."""

    name: str
    path: str
    generation: str

    def open(self) -> DeltaTable | None:
        """The table as of its newest version; None if it isn't there yet."""
        try:
            return DeltaTable(plain_url(self.path), storage_options=delta_options(os.environ))
        except TableNotFoundError:
            return None


def promoted_tables(settings: Settings) -> list[Table]:
    """The tables that readers see: as `kappa replay promote` has left them, before any promotion the live ones.

    Raises UserError if they are out of reach.
    """
    settings.check_storage_is_shared()
    pointer = Table(CURRENT, settings.model_copy(update={"generation": CURRENT}).delta_of("tables"), CURRENT)
    try:
        found = pointer.open()
    except OSError as error:
        raise UserError(f"{pointer.path}: can't be read: {error}") from None
    if found is not None:
        rows = found.to_pyarrow_table().to_pylist()
        tables = [Table(_sql_name(row["table"]), row["path"], row["generation"]) for row in rows]
    else:
        live = settings.model_copy(update={"generation": LIVE})
        parsed = [key for key, topic in load_topics(settings.topics_file).topics.items() if topic.archive == "parsed"]
        tables = [Table(_sql_name(key), live.delta_of(key), LIVE) for key in parsed]
    return sorted(tables, key=lambda table: table.name)


def _sql_name(key: str) -> str:
    return key.replace(".", "_")
