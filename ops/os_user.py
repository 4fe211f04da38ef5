"""Who runs a command."""

import getpass
import os


def os_user() -> str:
    """The name of who runs this command; a container's user may have none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
