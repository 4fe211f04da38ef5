"""A job whose JVM has no memory left ends; else it could stand still with a thread of Spark gone."""

import subprocess
import sys

WITHOUT_MEMORY = """
import sys
from pathlib import Path
from jobs.runtime.session import open_session
from jobs.runtime.settings import Settings

spark = open_session("memory", Settings(home=Path(sys.argv[1]), spark_master="local[1]", driver_memory="512m"))
gateway = spark.sparkContext._gateway
try:
    gateway.new_array(gateway.jvm.long, 2**28)
except Exception:
    print("ended with", gateway.proc.wait(60))
"""


def test_a_jvm_without_memory_ends(tmp_path):
    command = [sys.executable, "-c", WITHOUT_MEMORY, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "ended with 3" in done.stdout, done.stderr
