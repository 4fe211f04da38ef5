"""What gives way has a lower priority, and so has what it starts."""

import os
import subprocess
import sys

from jobs.runtime.priority import NICENESS

PROGRAM = """
import os, subprocess
from jobs.runtime.priority import give_way
give_way()
subprocess.run(["nice"], check=True)
"""


def test_a_process_that_gives_way_and_its_children_have_a_lower_priority():
    started = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert int(started.stdout) == min(19, os.nice(0) + NICENESS)
