import os
import re
import subprocess
import sys
import urllib.error
import urllib.request

from tests.waiting import until

NOBODY = {"KAPPA_KAFKA_BOOTSTRAP": "127.0.0.1:1", "KAPPA_ELASTICSEARCH_URL": "http://127.0.0.1:1"}


def test_it_starts_without_the_packages_that_it_leaves_out_and_without_servers_and_ends_on_sigterm(tmp_path):
    log = tmp_path / "log"
    with log.open("wb") as output:
        command = [sys.executable, "-u", "-m", "ops.cli", "console", "--port", "0"]
        process = subprocess.Popen(command, env=os.environ | NOBODY, stdout=output, stderr=subprocess.STDOUT)

    def is_healthy():
        assert process.poll() is None, log.read_text()
        address = re.search(r"console: (http\S+)", log.read_text())
        try:
            return address and urllib.request.urlopen(f"{address[1]}/healthz", timeout=10).read() == b"ok\n"
        except urllib.error.URLError:
            return False

    try:
        until(is_healthy, 60, "it does not start")
        process.terminate()
        assert process.wait(30) == 0, log.read_text()
    finally:
        process.kill()
        process.wait(30)
