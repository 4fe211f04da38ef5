"""Checks that Java and Maven are there, before anything is installed: with the standard library only."""

import sys

from infra.errors import UserError
from infra.jdk import ELASTICSEARCH_JAVA, SPARK_JAVA, find_jdk, find_maven


def main() -> int:
    """Returns the exit code: 0, or 2 after a line on stderr that names what to install."""
    try:
        find_jdk(SPARK_JAVA, "Spark")
        find_jdk(ELASTICSEARCH_JAVA, "Elasticsearch")
        find_maven()
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
