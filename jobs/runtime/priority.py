"""What runs beside the chain gives way to it where both want the same cores."""

import os
from contextlib import suppress
from pathlib import Path

NICENESS = 5
# Where the kernel divides cores among sessions first, it is the session that must give way.
_SESSION = Path("/proc/self/autogroup")


def give_way() -> None:
    """Lower the priority of this thread, and of all threads and processes that it starts from now on."""
    os.nice(NICENESS)
    with suppress(OSError):  # not everywhere are sessions divided, and within containers not writable
        _SESSION.write_text(str(NICENESS))
