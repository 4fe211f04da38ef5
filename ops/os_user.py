"""Who runs a command."""

import getpass
import os

from connectors.kafka.security import load_security


def os_user() -> str:
    """The name of who runs this command; a container's user may have none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def author() -> str:
    """Who a record is from: who runs this command, and as which user of Kafka, where that asks for one."""
    security = load_security()
    return f"{os_user()} as {security.kafka_sasl_username}" if security.uses_sasl else os_user()
