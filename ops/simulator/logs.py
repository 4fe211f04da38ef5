"""Generates log lines: templates by role, Poisson arrivals, random variable parts for each line."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from connectors.otlp import LogLine
from ops.simulator.cloud import HYPERVISOR_ROLE, Machine

LOG_STREAM = 2
SEVERITIES = {"INFO": 9, "WARN": 13, "ERROR": 17}
MASK = "<*>"
USERS = ("root", "nova", "cloud-admin", "zabbix", "backup", "operator")
VARIABLE = re.compile(r"\{(\w+)\}")


def _hex(digits: int) -> Callable[[Random], str]:
    # The first digit is decimal: an id such as `feedbeef` could also be a word.
    return lambda random: f"{random.randrange(10)}{random.getrandbits(4 * digits - 4):0{digits - 1}x}"


def _uuid(random: Random) -> str:
    text = f"{random.getrandbits(128):032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _address(random: Random) -> str:
    bits = random.getrandbits(16)
    return f"10.20.{bits >> 8}.{bits & 255}"


VARIABLES: dict[str, Callable[[Random], str]] = {
    "int": lambda random: str(random.randrange(1, 100_000)),
    "small": lambda random: str(random.randrange(1, 64)),
    "pid": lambda random: str(random.randrange(300, 32_768)),
    "port": lambda random: str(random.randrange(1024, 65_536)),
    "seconds": lambda random: f"{random.random() * 3:.6f}",
    "ms": lambda random: f"{random.random() * 90:.2f}",
    "ip": _address,
    "uuid": _uuid,
    "hex": _hex(8),
    "sha": _hex(40),
    "imsi": lambda random: f"imsi-24001{random.randrange(10**10):010d}",
    "mac": lambda random: ":".join(f"{random.getrandbits(8):02x}" for _ in range(6)),
    "user": lambda random: random.choice(USERS),
}


@dataclass(frozen=True, slots=True)
class Template:
    """A template of log lines; `rate` is how many a machine writes a second."""

    id: str
    daemon: str
    rate: float
    pattern: str
    severity: str = "INFO"

    @property
    def masked(self) -> str:
        """The template with `<*>` for every variable part."""
        return VARIABLE.sub(MASK, self.pattern)


LINUX = (
    Template("linux-1", "sshd", 0.05, "Accepted publickey for {user} from {ip} port {port} ssh2: RSA SHA256:{sha}"),
    Template("linux-2", "sshd", 0.05, "pam_unix(sshd:session): session opened for user {user} by (uid={small})"),
    Template("linux-3", "systemd", 0.08, "Started Session {int} of user {user}."),
    Template("linux-4", "CRON", 0.04, "(root) CMD (/usr/lib/sysstat/sa1 {small} {small})"),
    Template("linux-5", "chronyd", 0.03, "Selected source {ip}"),
    Template("linux-6", "sshd", 0.03, "Failed password for {user} from {ip} port {port} ssh2", "WARN"),
)

ROLE_TEMPLATES: dict[str, tuple[Template, ...]] = {
    HYPERVISOR_ROLE: (
        Template(
            "nova-1",
            "nova-compute",
            0.4,
            "[req-{uuid} - - - - -] Final resource view: phys_ram={int}MB used_ram={int}MB phys_disk={int}GB "
            "used_disk={small}GB total_vcpus={small} used_vcpus={small} pci_stats=[]",
        ),
        Template("nova-2", "nova-compute", 0.2, "[instance: {uuid}] VM Resumed (Lifecycle Event)"),
        Template(
            "nova-3",
            "nova-compute",
            0.2,
            "[instance: {uuid}] During sync_power_state the instance has a pending task (spawning). Skip.",
        ),
        Template(
            "nova-4",
            "nova-api",
            0.3,
            '[req-{uuid} {hex} {hex} - - -] {ip} "GET /v2/{hex}/servers/detail HTTP/1.1" '
            "status: 200 len: {int} time: {seconds}",
        ),
        Template("ovs-1", "ovs-vswitchd", 0.15, "bridge br-int: added interface tap{hex} on port {small}"),
        Template("libvirt-1", "libvirtd", 0.02, "internal error: End of file from qemu monitor {hex}", "ERROR"),
    ),
    "AMF": (
        Template("amf-1", "amf", 0.6, "[{imsi}] Registration complete: 5G-GUTI {hex} TAC {small} in {ms} ms"),
        Template("amf-2", "amf", 0.4, "NGAP: InitialUEMessage from gNB {hex} ({ip}:{port}) RAN-UE-NGAP-ID {int}"),
        Template("amf-3", "amf", 0.2, "[{imsi}] UE Context Release: cause radioNetwork user-inactivity"),
        Template("amf-4", "amf", 0.02, "[{imsi}] Authentication failure: cause MAC failure (20)", "WARN"),
    ),
    "SMF": (
        Template("smf-1", "smf", 0.6, "[{imsi}:{small}] PDU session established: DNN internet, UE address {ip}"),
        Template("smf-2", "smf", 0.4, "PFCP session {hex} modified on UPF {ip}: {small} PDRs, {small} FARs"),
        Template("smf-3", "smf", 0.2, "[{imsi}:{small}] PDU session released after {int} s"),
        Template("smf-4", "smf", 0.02, "PFCP heartbeat to {ip} timed out after {ms} ms, retry {small}", "WARN"),
    ),
    "UPF": (
        Template("upf-1", "upf", 0.6, "PFCP session establishment: SEID {hex} TEID {hex} UE {ip}"),
        Template("upf-2", "upf", 0.3, "GTP-U: path {ip} up, echo round trip {ms} ms"),
        Template("upf-3", "upf", 0.2, "usage report SEID {hex}: uplink {int} kB downlink {int} kB"),
        Template("upf-4", "upf", 0.02, "GTP-U: error indication from {ip} TEID {hex}", "WARN"),
    ),
    "UDM": (
        Template("udm-1", "udm", 0.5, "[{imsi}] Generated authentication vector 5G_AKA in {ms} ms"),
        Template("udm-2", "udm", 0.3, '"PUT /nudm-uecm/v1/{imsi}/registrations/amf-3gpp-access HTTP/2" 204 {ms} ms'),
        Template("udm-3", "udm", 0.2, "[{imsi}] SDM subscription {uuid} created"),
        Template("udm-4", "udm", 0.02, "UDR {ip}:{port}: connection reset, reconnecting", "WARN"),
    ),
    "HSS": (
        Template("hss-1", "hss", 0.5, "Diameter S6a AIR from {ip} session {hex};{int}: DIAMETER_SUCCESS (2001)"),
        Template("hss-2", "hss", 0.3, "Diameter S6a ULR for {imsi}: location updated to MME {ip}"),
        Template("hss-3", "hss", 0.2, "Cx-SAR for sip:{int}@ims.example answered in {ms} ms"),
        Template("hss-4", "hss", 0.02, "Diameter peer {ip} watchdog timeout after {seconds} s", "WARN"),
    ),
    "PCF": (
        Template("pcf-1", "pcf", 0.5, "[{imsi}] SM policy association {uuid} created, {small} rules"),
        Template("pcf-2", "pcf", 0.3, '"POST /npcf-smpolicycontrol/v1/sm-policies/{uuid}/update HTTP/2" 200 {ms} ms'),
        Template("pcf-3", "pcf", 0.2, "[{imsi}] AM policy evaluated: RFSP index {small}"),
        Template("pcf-4", "pcf", 0.02, "[{imsi}] policy decision rejected: quota exceeded by {int} kB", "WARN"),
    ),
}

BURST_RATE = 20.0  # extra lines a second of a log_burst: of the role's first template
NEW_TEMPLATE = Template(
    "new-1",
    "kernel",
    1.0,
    "EDAC MC{small}: {small} CE memory read error on CPU_SrcID#{small}_MC#{small} page:0x{hex}",
    "ERROR",
)


def of_role(role: str) -> tuple[Template, ...]:
    """The templates of a machine of this role, its own first."""
    return ROLE_TEMPLATES[role] + LINUX


def extra(faults: Iterable[str], role: str) -> dict[Template, float]:
    """The additional lines a second that these kinds of faults cause on a machine of this role, by template."""
    rates = {"log_burst": (ROLE_TEMPLATES[role][0], BURST_RATE), "new_template": (NEW_TEMPLATE, NEW_TEMPLATE.rate)}
    return dict(rates[kind] for kind in faults if kind in rates)


class SimulatedLine(NamedTuple):
    """A log line and the template that made it."""

    line: LogLine
    template: Template


class Logs:
    """Generates the cloud's log lines for each step, from the seed, the machine's name and the step alone."""

    def __init__(self, machines: Sequence[Machine], seed: int, interval_s: float) -> None:
        self._machines = machines
        self._seed = seed
        self._interval_s = interval_s
        self._templates = [of_role(machine.role) for machine in machines]
        width = max(map(len, self._templates))
        self._rates = np.array([[t.rate for t in row] + [0.0] * (width - len(row)) for row in self._templates])

    def counts(self, step: int) -> NDArray[np.int64]:
        """How many lines each machine writes in this step, machines x templates."""
        rng = np.random.default_rng([self._seed, LOG_STREAM, step])
        return rng.poisson(self._rates * self._interval_s)

    def lines(
        self, machine: int, step: int, counts: Iterable[int], end_unix_nano: int, extra: Mapping[Template, float]
    ) -> list[SimulatedLine]:
        """The machine's lines of the step that ends at `end_unix_nano`, in order of time.

        `extra` are lines a second of further templates; the other lines are the same with and without them.
        """
        random = Random(f"{self._seed}/{self._machines[machine].name}/{step}")
        usual = zip(self._templates[machine], counts, strict=False)
        bursts = ((template, round(rate * self._interval_s)) for template, rate in extra.items())
        lines = [
            self._line(template, random, end_unix_nano)
            for group in (usual, bursts)
            for template, count in group
            for _ in range(count)
        ]
        return sorted(lines, key=lambda simulated: simulated.line.time_unix_nano)

    def _line(self, template: Template, random: Random, end_unix_nano: int) -> SimulatedLine:
        time = end_unix_nano - 1 - int(random.random() * self._interval_s * 1e9)
        body = VARIABLE.sub(lambda match: VARIABLES[match[1]](random), template.pattern)
        labels = (("log.file.name", f"{template.daemon}.log"), ("process.pid", VARIABLES["pid"](random)))
        return SimulatedLine(LogLine(time, body, template.severity, SEVERITIES[template.severity], labels), template)
