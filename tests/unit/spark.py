"""The Spark session of the unit tests: one core, no UI."""

import os
import sys

from pyspark.sql import SparkSession


def session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.memory": "2g"}
    builder = SparkSession.builder.master("local[1]").config("spark.sql.session.timeZone", "UTC")
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
