"""Prometheus and Alertmanager as processes, with the project's own rules in shorter times, and who hears of them."""

import json
import re
import subprocess
import threading
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import yaml

from tests.waiting import until

RULES = Path("charts/kappa/files/rules.yml")
MINUTE = 6  # seconds of the test for a minute of the rules
# A second of a threshold is a tenth of one here; what is counted in hours and days stays.
THRESHOLDS = {
    "KappaNoProgress": ("> 300", "> 30"),
    "KappaStaleBatches": ("> 600", "> 60"),
    "KappaEventTimeBehind": ("> 300", "> 60"),
    "KappaLagGrows": ("> 300", "> 30"),
    "KappaDataWillBeLost": ("> 600", "> 60"),
}


def hasty_rules() -> dict[str, Any]:
    """The rules with a minute as six seconds."""
    rules: dict[str, Any] = yaml.safe_load(RULES.read_text())
    for rule in rules["groups"][0]["rules"]:
        rule["expr"] = re.sub(r"(?<=[\[:])(\d+)m(?=[\]:])", _hasty, rule["expr"])
        rule["expr"] = rule["expr"].replace("[1h]", f"[{60 * MINUTE}s]")
        if "for" in rule:
            rule["for"] = re.sub(r"(\d+)m", _hasty, rule["for"])
        if rule["alert"] in THRESHOLDS:
            normal, hasty = THRESHOLDS[rule["alert"]]
            assert normal in rule["expr"], rule
            rule["expr"] = rule["expr"].replace(normal, hasty)
    return rules


def _hasty(minutes: "re.Match[str]") -> str:
    return f"{int(minutes[1]) * MINUTE}s"


class Monitoring:
    """A context manager: scrapes `targets` (name -> port), evaluates the rules, and hears what Alertmanager sends."""

    def __init__(self, folder: Path, first_port: int, targets: dict[str, int]) -> None:
        self.folder, self.targets = folder, targets
        self.prometheus, self.alertmanager, self.receiver = range(first_port, first_port + 3)
        self.heard: list[dict[str, Any]] = []  # alerts, each time that one is sent
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        server = ThreadingHTTPServer(("127.0.0.1", self.receiver), self._handler())
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self._stack.callback(server.shutdown)
        self._write()
        self._run(
            "prometheus-alertmanager", "--config.file=alertmanager.yml", "--storage.path=am",
            "--cluster.listen-address=",
            f"--web.listen-address=127.0.0.1:{self.alertmanager}",
        )  # fmt: skip
        self._run(
            "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
            f"--web.listen-address=127.0.0.1:{self.prometheus}",
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _write(self) -> None:
        targets = [
            {"targets": [f"127.0.0.1:{port}"], "labels": {"instance": name}} for name, port in self.targets.items()
        ]
        kappa = {"job_name": "kappa", "honor_labels": True, "static_configs": targets}
        managers = [{"static_configs": [{"targets": [f"127.0.0.1:{self.alertmanager}"]}]}]
        receiver = {"name": "test", "webhook_configs": [{"url": f"http://127.0.0.1:{self.receiver}/"}]}
        own = {"receiver": "test", "group_by": ["..."], "group_wait": "1s", "group_interval": "2s"}
        shipped = yaml.safe_load(Path("infra/prometheus/alertmanager.yml").read_text())
        for name, content in {
            "rules.yml": hasty_rules(),
            "prometheus.yml": {
                "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"},
                "rule_files": ["rules.yml"],
                "alerting": {"alertmanagers": managers},
                "scrape_configs": [kappa],
            },
            "alertmanager.yml": {"route": own | {"repeat_interval": "1h"}, "receivers": [receiver]},
            "shipped.yml": shipped,
        }.items():
            (self.folder / name).write_text(yaml.safe_dump(content))

    def _run(self, *command: str) -> None:
        log = (self.folder / f"{command[0]}.log").open("wb")
        process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)

        def end() -> None:
            process.terminate()
            process.wait(30)
            log.close()

        self._stack.callback(end)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        heard = self.heard

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                heard.extend(alert | {"heard": time.time()} for alert in body["alerts"])
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler

    def firing(self) -> set[str]:
        """The names of the alerts that fire now, as far as they were heard."""
        last = {json.dumps(alert["labels"], sort_keys=True): alert for alert in self.heard}
        return {alert["labels"]["alertname"] for alert in last.values() if alert["status"] == "firing"}

    def wait_for(self, seconds: float, name: str, status: str = "firing", **labels: str) -> None:
        """Until somebody has heard that an alert with these labels fires, or no longer does."""
        until(lambda: self._last(name, labels) == status, seconds, f"{name} {labels} is {status}")

    def _last(self, name: str, labels: dict[str, str]) -> str | None:
        wanted = {"alertname": name, **labels}
        found = [alert["status"] for alert in self.heard if wanted.items() <= alert["labels"].items()]
        return found[-1] if found else None
