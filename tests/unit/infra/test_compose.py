"""The compose files: what stands there is pinned, bounded and published on loopback only."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

SECRET = re.compile("PASSWORD|TOKEN|SECRET|API_?KEY", re.IGNORECASE)
MEBI = {"m": 1, "g": 1024}
ENVIRONMENT = dict(
    line.split("=", 1) for line in Path(".env").read_text().splitlines() if line and not line.startswith("#")
)


def _services(path):
    return yaml.safe_load(Path(path).read_text())["services"]


def _stack(profile):
    """Core's services that stay, as the profile runs the jobs."""
    core = {name: one for name, one in _services("docker-compose.yml").items() if not one.get("profiles")}
    del core["topics"]  # gone before the jobs start
    return core | {name: one for name, one in _jobs(profile) if not one.get("profiles")}


def _everything():
    job = _services("infra/docker/job.yml")["job"]
    jobs = {f"{p}.{name}": _extended(job, one) for p in ("standard", "small") for name, one in _jobs(p)}
    return _services("docker-compose.yml") | jobs


def _extended(base, service):
    """As compose's `extends` merges: mappings by key, the rest is replaced."""
    merged = {n: base[n] | service[n] for n in base.keys() & service.keys() if isinstance(base[n], dict)}
    return base | service | merged


def _jobs(profile):
    return _services(f"infra/docker/jobs-{profile}.yml").items()


def _mebibytes(limit):
    return int(limit[:-1]) * MEBI[limit[-1]]


@pytest.mark.parametrize(("profile", "gibibytes"), [("standard", 7), ("small", 4)])
def test_core_fits_into_its_memory(profile, gibibytes):
    assert sum(_mebibytes(one["mem_limit"]) for one in _stack(profile).values()) <= gibibytes * 1024


def test_every_image_is_pinned():
    images = {name: value for name, value in ENVIRONMENT.items() if name.endswith("_IMAGE")}
    assert {one["image"] for one in _everything().values()} == {f"${{{name}}}" for name in images}
    assert all(":" in image and not image.endswith(":latest") for image in images.values())


def test_the_image_is_built_by_one_service_for_which_all_others_wait():
    """Compose builds services at the same time, and two of them can't export the same tag."""
    everything = _everything()
    builders = {name: one["build"] for name, one in everything.items() if "build" in one}
    assert builders == {"topics": {"context": ".", "dockerfile": "infra/docker/Dockerfile"}}
    of_a_stack_that_runs = "kappa"  # commands for the operator
    others = {n: one for n, one in everything.items() if one["image"] == "${KAPPA_IMAGE}"}
    del others["topics"], others[of_a_stack_that_runs]
    assert others
    for name, one in others.items():
        assert one["depends_on"]["topics"] == {"condition": "service_completed_successfully"}, name


def test_all_that_the_image_copies_is_in_its_context():
    kept = {line[1:] for line in Path(".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        source
        for line in Path("infra/docker/Dockerfile").read_text().splitlines()
        if line.startswith("COPY") and "--from" not in line
        for source in line.split()[1:-1]
    }
    assert copied and all(Path(source).exists() and source.split("/")[0] in kept for source in copied)


def test_nothing_is_published_beyond_loopback():
    assert ENVIRONMENT["KAPPA_BIND"] == "127.0.0.1"
    ports = [port for one in _everything().values() for port in one.get("ports", ())]
    assert ports and all(port.startswith(("${KAPPA_BIND}:", "127.0.0.1:")) for port in ports)


def test_what_asks_nobody_and_changes_something_stays_on_loopback_whatever_the_setting():
    opened = {name for name, one in _everything().items() if any("KAPPA_BIND" in p for p in one.get("ports", ()))}
    assert opened == {"kafka", "elasticsearch", "prometheus", "grafana"}


def test_grafana_lets_nobody_in_without_the_password_that_was_made_here():
    services = _services("docker-compose.yml")
    grafana, credentials = services["grafana"], services["credentials"]
    environment = grafana["environment"]
    assert environment["GF_AUTH_ANONYMOUS_ENABLED"] == environment["GF_USERS_ALLOW_SIGN_UP"] == "false"
    folder, _, file = environment["GF_SECURITY_ADMIN_PASSWORD__FILE"].rpartition("/")
    assert f"credentials:{folder}:ro" in grafana["volumes"] and file in credentials["command"][0]
    assert grafana["depends_on"]["credentials"] == {"condition": "service_completed_successfully"}
    assert {name for name, one in services.items() if any("credentials:" in v for v in one.get("volumes", ()))} == {
        "grafana",
        "credentials",
    }


def test_the_password_is_made_once_and_is_not_shown(tmp_path):
    (script,) = _services("docker-compose.yml")["credentials"]["command"]
    command = ["sh", "-euc", script.replace("/var/lib/kappa", str(tmp_path))]
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    file = tmp_path / "grafana_admin_password"
    made = []
    for _ in range(2):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert not done.stdout and not done.stderr
        made.append(file.read_text())
    assert made[0] == made[1] and len(made[0].strip()) >= 32
    file.unlink()
    subprocess.run(command, env=environment, check=True)
    assert file.read_text() != made[0]


@pytest.mark.parametrize("path", ["docker-compose.yml", "infra/docker/kibana-secured.yml"])
def test_no_password_or_token_is_given_by_value(path):
    """By a file only: the environment of a container is shown to whoever may inspect it."""
    for name, one in _services(path).items():
        given = {key: value for key, value in one.get("environment", {}).items() if SECRET.search(key)}
        # Without a value it is handed on from the shell.
        assert all(
            key.endswith("_FILE") and (value is None or value.startswith("/run/secrets/"))
            for key, value in given.items()
        ), name


def test_kibana_in_front_of_an_elasticsearch_with_users_has_its_token_from_a_file():
    path = "infra/docker/kibana-secured.yml"
    secrets = yaml.safe_load(Path(path).read_text())["secrets"]
    kibana, objects = _services(path)["kibana"], _services(path)["kibana-objects"]
    assert "serviceAccountToken --stdin < /run/secrets/service_account_token" in kibana["entrypoint"][-1]
    assert {*kibana["secrets"], *objects["secrets"]} == secrets.keys()
    assert all(one["file"].endswith(f"/{name}") for name, one in secrets.items())
    assert _services(path).keys() <= _services("docker-compose.yml").keys()


@pytest.mark.parametrize("name", _everything())
def test_a_service_is_bounded_and_may_fail(name):
    service = _everything()[name]
    assert service["mem_limit"] and service["restart"] and service["security_opt"] == ["no-new-privileges:true"]
    if service["image"] == "${KAPPA_IMAGE}":
        assert service["read_only"] is True and service["cap_drop"] == ["ALL"]


def test_the_heap_is_what_spark_asks_for():
    heap = _services("infra/docker/job.yml")["job"]["environment"]["KAPPA_DRIVER_MEMORY"]
    assert _mebibytes(heap) >= 450  # SparkContext refuses less


def test_the_jobs_are_known_by_their_label_and_nothing_else_has_it():
    """By it infra/docker/upgrade finds what it gives another image."""
    labelled = {name for name, one in _everything().items() if one.get("labels") == {"kappa.job": "true"}}
    assert labelled == {f"{profile}.{name}" for profile in ("standard", "small") for name, _ in _jobs(profile)}


@pytest.mark.parametrize("profile", ["standard", "small"])
def test_whatever_reads_checkpoints_or_tables_knows_of_the_object_store(profile):
    services = _services("docker-compose.yml") | dict(_jobs(profile))
    told = {name for name, one in services.items() if "${KAPPA_OBJECT_STORE:-/dev/null}" in one.get("env_file", [])}
    jobs = {"enrichment", "statistics", "detector", "archive", "rules"} if profile == "standard" else {"jobs"}
    assert told == jobs | {"kappa", "maintenance", "savepoints"}
    job = _services("infra/docker/job.yml")["job"]
    places = [(services[name] if name in ("kappa", "maintenance", "savepoints") else job)["tmpfs"] for name in told]
    # Hadoop's client buffers there, and refuses if it can't have 64 MB.
    assert places == [["/tmp:exec,size=256m"]] * len(told)
