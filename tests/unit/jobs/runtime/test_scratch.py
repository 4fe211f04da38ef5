import subprocess
import sys
from pathlib import Path

from jobs.runtime.scratch import scratch_of_this_process
from tests.waiting import until

HOLD = """
import sys, time
from pathlib import Path
from jobs.runtime.scratch import scratch_of_this_process
own = scratch_of_this_process(Path(sys.argv[1]))
(own / "blockmgr-1").mkdir()
(own / "blockmgr-1" / "shuffle").write_text("x" * 1000)
print(own, flush=True)
time.sleep(300)
"""


def test_what_killed_processes_left_is_deleted_and_what_others_use_stays(tmp_path):
    root = tmp_path / "spark"
    processes = [
        subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        killed, alive = (Path(one.stdout.readline().strip()) for one in processes)
        assert (killed / "blockmgr-1" / "shuffle").is_file()
        processes[0].kill()
        processes[0].wait()
        former, foreign = root / "blockmgr-of-a-former-version", root / "warehouse"
        for folder in (former, foreign):
            folder.mkdir()

        own = scratch_of_this_process(tmp_path)
        until(lambda: not killed.exists(), 10, "the lock of a killed process is free")
        assert not former.exists()
        assert (alive / "blockmgr-1" / "shuffle").is_file()
        assert foreign.is_dir()
        assert scratch_of_this_process(tmp_path) == own
    finally:
        for one in processes:
            one.kill()
            one.communicate()
