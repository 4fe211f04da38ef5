"""The chart: lint, schema, rendered examples against goldens, and what every pod must have."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from charts.readme import readme
from connectors.kafka.security import SECRETS, KafkaSecurity
from infra.contract.topics import load_topics
from jobs.runtime.settings import Settings
from ops.console.settings import ConsoleSettings, load_console_settings
from tests.charts.tools import CHART, EXAMPLES, GOLDEN, KUBERNETES, SCHEMAS, TOOLS, find, helm, render

pytestmark = pytest.mark.skipif(find("helm") is None, reason="helm is not there; `make tools` builds it")

CONTROLLERS = {"Deployment", "StatefulSet", "Job"}
NOT_KUBERNETES = "PodMonitor,PrometheusRule,ScaledObject,TriggerAuthentication"
BUNDLED = {"kafka", "elasticsearch"}  # their images write beside their programs


def _manifests(*arguments):
    return [manifest for manifest in yaml.safe_load_all(render(*arguments)) if manifest]


def _pods(manifests):
    for manifest in manifests:
        if manifest["kind"] in CONTROLLERS:
            yield manifest["spec"]["template"]
        elif manifest["kind"] == "CronJob":
            yield manifest["spec"]["jobTemplate"]["spec"]["template"]
        elif manifest["kind"] == "Pod":
            yield manifest


def _containers(manifests):
    for pod in _pods(manifests):
        yield from pod["spec"].get("initContainers", []) + pod["spec"]["containers"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_linted_and_renders_as_before(example):
    linted = helm("lint", "--strict", CHART, "--values", example)
    assert linted.returncode == 0, linted.stdout
    golden = (GOLDEN / example.name).read_text()
    assert render("--values", example) == golden, "differs from its golden; if you meant it: make chart-goldens"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_manifests_are_kubernetes(example):
    kubeconform = find("kubeconform")
    if kubeconform is None or not SCHEMAS.is_dir():
        pytest.skip("kubeconform or its schemas are not there; `make tools` brings them")
    location = "{{.NormalizedKubernetesVersion}}-standalone{{.StrictSuffix}}/{{.ResourceKind}}{{.KindSuffix}}.json"
    command = [kubeconform, "-strict", "-summary", "-kubernetes-version", KUBERNETES]
    command += ["-schema-location", f"{TOOLS}/{location}", "-skip", NOT_KUBERNETES]
    checked = subprocess.run([*command, GOLDEN / example.name], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("profile=tiny", "profile"),
        ("jobs.detector.replicas=2", "replicas"),
        ("kafka.bootstraps=here:1", "bootstraps"),
        ("kafka.bootstrap=here", "bootstrap"),
        ("image.tag=latest", "tag"),
        ("kafka.image=apache/kafka:latest", "image"),
        ("kafka.image=apache/kafka:4.3.1@sha256:4711", "image"),
        ("generations={v2}", "generations"),
        ("generations[0].name=live,generations[0].jobs={detector}", "generations"),
        ("generations[0].name=v2,generations[0].jobs={incidents}", "jobs"),
        ("generations[0].name=v2,generations[0].jobs={detector}", "storage.existingClaim"),
        ("kafka.enabled=false", "kafka.bootstrap: is missing"),
        ("elasticsearch.enabled=false", "elasticsearch.url: is missing"),
        ("kafka.security.protocol=SASL_SSL", "kafka.security.username: is missing"),
        ("storage.checkpoints=s3a://bucket", "storage.delta: is missing"),
        ("spark.mode=kubernetes", "ReadWriteOnce"),
        ("simulator.faults={nonsense}", "faults"),
        ("jobs.notifier.enabled=true", "notifier.routes: is missing"),
        ("console.auth=basic", "auth"),
        ("console.auth=proxy", "console.publicUrl: is missing"),
        ("console.auth=proxy,console.publicUrl=https://kappa", "console.proxyNetworks: is missing"),
        ("console.auth=oidc", "console.secret: is missing"),
        ("console.ingress.enabled=true", "console.ingress: strangers could act"),
        ("savepoints.enabled=true", "savepoints: each job's checkpoints"),
        ("maintenance.schedule=daily", "schedule"),
        ("metrics.tlsSecret=kappa-metrics-tls", "tlsSecret"),
        ("metrics.tokenSecret.keys=token", "tokenSecret"),
        ("upgrade.mode=blue-green", "mode"),
        ("upgrade.deadline=10 minutes", "deadline"),
        ("upgrade.tolerance=2", "tolerance"),
        ("upgrade.mode=savepoint", "upgrade.mode: savepoint: each job's checkpoints"),
        ("upgrade.mode=generation", "upgrade.mode: generation: generations is empty"),
        ("upgrade.mode=checkpoint,live=false", "upgrade.mode: checkpoint guards the generation live"),
        ("extraVolumes[0].emptyDir.medium=Memory", "extraVolumes"),
    ],
)
def test_a_wrong_value_is_refused_with_a_message_that_names_it(wrong, message):
    with pytest.raises(RuntimeError, match=message):
        render("--set", wrong)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_pods_are_restricted_bounded_and_pinned(example):
    manifests = _manifests("--values", example)
    for pod in _pods(manifests):
        security = pod["spec"]["securityContext"]
        assert security["runAsNonRoot"] and security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["spec"]["enableServiceLinks"] is False
    for container in _containers(manifests):
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False and security["capabilities"] == {"drop": ["ALL"]}
        assert security.get("readOnlyRootFilesystem") or container["name"] in BUNDLED
        assert container["resources"]["limits"]["memory"]
        assert not container["image"].endswith(":latest") and ":" in container["image"]


@pytest.mark.parametrize("tag", ["", ":1.2.3"])
def test_each_image_may_have_a_digest(tag):
    digest = f"sha256:{'0' * 64}"
    image = f"registry.example:5000/some/image{tag}@{digest}"
    values = [f"{name}={image}" for name in ("kafka.image", "elasticsearch.image", "generations[0].image")]
    values += [f"image.digest={digest}", "storage.existingClaim=kappa"]
    values += ["generations[0].name=v2", "generations[0].jobs={detector}"]
    images = {container["image"] for container in _containers(_manifests("--set", ",".join(values)))}
    assert images == {image, f"ghcr.io/kappa/kappa@{digest}"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_variable_is_a_setting(example):
    known = {f"KAPPA_{name.upper()}" for name in {*Settings.model_fields, *KafkaSecurity.model_fields}} | {SECRETS}
    known |= {f"KAPPA_CONSOLE_{name.upper()}" for name in ConsoleSettings.model_fields}
    given = {
        variable["name"]
        for container in _containers(_manifests("--values", example))
        for variable in container.get("env", [])
        if variable["name"].startswith("KAPPA_")
    }
    assert given and given <= known


SECOND = ("--set", "generations[0].name=v2", "--set", "generations[0].jobs={detector,indexer}")
IMAGE = ("--set", "generations[0].image=kappa:next")


def _deployments(*arguments):
    return {m["metadata"]["name"]: m["spec"]["template"]["spec"] for m in _of_kind("Deployment", *arguments)}


def _of_kind(kind, *arguments):
    return [manifest for manifest in _manifests(*arguments) if manifest["kind"] == kind]


def _environment(pod):
    return {variable["name"]: variable.get("value") for variable in pod["containers"][0]["env"]}


def test_a_generation_has_the_planned_jobs_and_its_own_image_and_shares_the_volume():
    pods = _deployments(*SECOND, *IMAGE, "--set", "storage.existingClaim=kappa")
    assert {name for name in pods if "-v2-" in name} == {"kappa-v2-detector", "kappa-v2-indexer"}
    assert _environment(pods["kappa-v2-detector"])["KAPPA_GENERATION"] == "v2"
    images = {name: pod["containers"][0]["image"] for name, pod in pods.items()}
    assert {name for name, image in images.items() if image == "kappa:next"} == {
        "kappa-v2-detector",
        "kappa-v2-indexer",
    }
    for name in ("kappa-detector", "kappa-v2-detector", "kappa-toolbox"):
        home = next(volume for volume in pods[name]["volumes"] if volume["name"] == "home")
        assert home["persistentVolumeClaim"] == {"claimName": "kappa"}


def test_in_the_small_profile_one_pod_runs_what_is_planned():
    pods = _deployments("--set", "profile=small", *SECOND, "--set", "storage.existingClaim=kappa")
    assert {name for name in pods if "-v2-" in name} == {"kappa-v2-jobs"}
    assert pods["kappa-v2-jobs"]["containers"][0]["args"] == ["run", "all"]


def test_the_live_generation_ends_where_it_is_switched_off():
    pods = _deployments(*SECOND, "--set", "storage.existingClaim=kappa", "--set", "live=false")
    assert {*pods} == {"kappa-v2-detector", "kappa-v2-indexer", "kappa-toolbox", "kappa-console"}


def test_a_generation_scales_by_the_topics_that_its_jobs_write():
    keda = ("--set", "keda.enabled=true", "--set", "storage.existingClaim=kappa")
    (_, second) = _of_kind("ScaledObject", *SECOND, *keda)
    topics = {trigger["metadata"]["topic"] for trigger in second["spec"]["triggers"]}
    assert topics == {"events.rejected.v2", "novelties.v2", "incidents.v2"}


@pytest.mark.parametrize(
    ("storage", "shared"),
    [
        ((), "false"),
        (("--set", "storage.existingClaim=kappa"), "true"),
        (("--set", "storage.checkpoints=s3a://b/c,storage.delta=s3a://b/d"), "true"),
    ],
)
def test_the_toolbox_knows_whether_it_reaches_checkpoints_and_tables(storage, shared):
    environment = _environment(_deployments(*storage)["kappa-toolbox"])
    assert environment["KAPPA_STORAGE_SHARED"] == shared and environment["KAPPA_PLATFORM"] == "kubernetes"


def _notifier(*arguments):
    """The container of the notifier, its volumes, and the routes that it gets."""
    manifests = _manifests("--set", "notifier.routes=routes: []", "--set", "notifier.secret=oncall", *arguments)
    (routes,) = [m["data"]["routes.yaml"] for m in manifests if m["metadata"]["name"] == "kappa-routes"]
    pods = {pod["metadata"]["labels"]["app.kubernetes.io/component"]: pod["spec"] for pod in _pods(manifests)}
    pod = pods["all" if "profile=small" in arguments else "notifier"]
    return pod["containers"][0], {volume["name"]: volume for volume in pod["volumes"]}, routes


@pytest.mark.parametrize("arguments", [("--set", "jobs.notifier.enabled=true"), ("--set", "profile=small")])
def test_the_notifier_has_its_routes_and_the_secrets_that_they_name(arguments):
    container, volumes, routes = _notifier(*arguments)
    environment = {variable["name"]: variable.get("value") for variable in container["env"]}
    (mount,) = [one for one in container["volumeMounts"] if one["name"] == "routes"]
    assert environment["KAPPA_NOTIFIER_ROUTES"] == f"{mount['mountPath']}/routes.yaml"
    assert volumes["routes"]["configMap"] == {"name": "kappa-routes"} and routes.strip() == "routes: []"
    assert container["envFrom"] == [{"secretRef": {"name": "oncall"}}]


def test_the_notifier_keeps_nothing_and_needs_no_spark():
    container, volumes, _ = _notifier("--set", "jobs.notifier.enabled=true")
    assert volumes["home"] == {"name": "home", "emptyDir": {}}
    assert not [variable for variable in container["env"] if "SPARK" in variable["name"]]


OIDC = "console.auth=oidc,console.publicUrl=https://kappa.example.org,console.secret=login,console.operators={ada,group:sre}"
PROVIDER = "console.oidc.issuer=https://login:8443/noc,console.oidc.clientId=kappa"
PROXY = "console.auth=proxy,console.publicUrl=https://kappa,console.proxyNetworks={10.0.0.0/8}"


def test_without_authentication_the_console_is_reached_by_a_port_forward_only():
    (container,) = _deployments()["kappa-console"]["containers"]
    environment = {variable["name"]: variable.get("value") for variable in container["env"]}
    assert environment["KAPPA_CONSOLE_AUTH"] == "none" and "KAPPA_CONSOLE_HOST" not in environment
    assert "ports" not in container and container["livenessProbe"]["exec"] == {"command": ["healthy", "8080"]}
    assert "kappa-console" not in {service["metadata"]["name"] for service in _of_kind("Service")}


@pytest.mark.parametrize(
    ("profile", "jobs"),
    [("standard", {"enrichment", "statistics", "detector", "archive", "indexer"}), ("small", {"all"})],
)
def test_the_console_finds_each_job_by_a_service(profile, jobs):
    environment = _environment(_deployments("--set", f"profile={profile}")["kappa-console"])
    services = {
        service["metadata"]["name"]: service["spec"] for service in _of_kind("Service", "--set", f"profile={profile}")
    }
    for job in jobs:
        address = environment["KAPPA_CONSOLE_METRICS_URL"].replace("{application}", job)
        assert services[address.removeprefix("http://").removesuffix(":9400/metrics")]["selector"] == {
            "app.kubernetes.io/name": "kappa",
            "app.kubernetes.io/instance": "kappa",
            "app.kubernetes.io/component": job,
            "kappa/generation": "live",
        }


TLS, BEARER = ("--set", "metrics.tlsSecret.name=served"), ("--set", "metrics.tokenSecret.name=token")
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


@pytest.mark.parametrize("profile", ["standard", "small"])
def test_jobs_with_a_certificate_are_asked_by_https(profile):
    pods = _deployments("--set", f"profile={profile}", *TLS)
    jobs = {name: pod["containers"][0] for name, pod in pods.items() if "startupProbe" in pod["containers"][0]}
    console = jobs.pop("kappa-console")
    assert jobs
    for job in jobs.values():
        assert {job[probe]["httpGet"]["scheme"] for probe in PROBES} == {"HTTPS"}
        environment = {variable["name"]: variable.get("value") for variable in job["env"]}
        assert environment["KAPPA_METRICS_CERTIFICATE"] == "/etc/kappa/metrics/tls.crt"
        assert environment["KAPPA_METRICS_KEY"] == "/etc/kappa/metrics/tls.key"
        assert "KAPPA_METRICS_TOKEN_FILE" not in environment and "KAPPA_METRICS_CA" not in environment
    environment = {variable["name"]: variable.get("value") for variable in console["env"]}
    assert environment["KAPPA_CONSOLE_METRICS_URL"] == "https://kappa-{application}.kappa.svc:9400/metrics"
    assert environment["KAPPA_METRICS_CA"] == "/etc/kappa/metrics/ca.crt"
    assert "KAPPA_METRICS_CERTIFICATE" not in environment


def test_prometheus_is_told_how_to_ask():
    monitored = ("--set", "podMonitor.enabled=true")
    plain, secured = (
        manifests[0]["spec"]["podMetricsEndpoints"][0]
        for manifests in (_of_kind("PodMonitor", *monitored), _of_kind("PodMonitor", *monitored, *TLS, *BEARER))
    )
    assert plain == {"port": "metrics", "interval": "15s", "honorLabels": True}
    assert secured == plain | {
        "scheme": "https",
        "tlsConfig": {"ca": {"secret": {"name": "served", "key": "ca.crt"}}, "serverName": "kappa.kappa.svc"},
        "authorization": {"credentials": {"name": "token", "key": "token"}},
    }


def test_without_a_choice_jobs_have_neither_certificate_nor_token():
    for pod in _deployments().values():
        assert not [name for name in _environment(pod) if name.startswith("KAPPA_METRICS_")]
        assert "metrics" not in {volume["name"] for volume in pod["volumes"]}


def test_the_console_shows_the_generation_that_is_left():
    left = (*SECOND, "--set", "storage.existingClaim=kappa,live=false")
    environment = _environment(_deployments(*left)["kappa-console"])
    assert environment["KAPPA_GENERATION"] == "v2"
    assert environment["KAPPA_CONSOLE_METRICS_URL"] == "http://kappa-v2-{application}:9400/metrics"
    assert "kappa-v2-detector" in {service["metadata"]["name"] for service in _of_kind("Service", *left)}


def test_behind_a_login_the_console_has_an_address_and_the_provider_is_reached():
    arguments = (
        "--set",
        OIDC,
        "--set",
        PROVIDER,
        "--set",
        "console.ingress.enabled=true,console.ingress.tlsSecret=tls",
    )
    (container,) = _deployments(*arguments)["kappa-console"]["containers"]
    environment = {variable["name"]: variable.get("value") for variable in container["env"]}
    assert environment["KAPPA_CONSOLE_OPERATORS"] == "ada,group:sre" and environment["KAPPA_CONSOLE_VIEWERS"] == "*"
    assert container["envFrom"] == [{"secretRef": {"name": "login"}}]
    (ingress,) = _of_kind("Ingress", *arguments)
    assert ingress["spec"]["tls"] == [{"hosts": ["kappa.example.org"], "secretName": "tls"}]
    (rule,) = ingress["spec"]["rules"]
    assert rule["host"] == "kappa.example.org"
    (policy,) = [p for p in _of_kind("NetworkPolicy", *arguments) if p["metadata"]["name"] == "kappa-console"]
    assert {"ports": [{"port": 8080}]} in policy["spec"]["ingress"]
    assert {"ports": [{"port": 8443}]} in policy["spec"]["egress"]


@pytest.mark.parametrize("arguments", [(), ("--set", OIDC, "--set", PROVIDER), ("--set", PROXY)])
def test_the_console_starts_with_what_the_chart_tells_it(arguments, monkeypatch):
    for name, value in _environment(_deployments(*arguments)["kappa-console"]).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KAPPA_CONSOLE_OIDC_CLIENT_SECRET", "of the secret")
    assert load_console_settings().toolbox == "kubectl -n kappa exec deployment/kappa-toolbox -- kappa"


def test_the_proxys_headers_are_believed_from_its_networks():
    environment = _environment(_deployments("--set", PROXY)["kappa-console"])
    assert environment["KAPPA_CONSOLE_PROXY_NETWORKS"] == "10.0.0.0/8"
    assert environment["KAPPA_CONSOLE_HOST"] == "0.0.0.0"


def test_a_job_may_end_its_batch_before_it_is_killed():
    pods = _deployments("--set", "drainSeconds=120", "--set", "toolbox.enabled=false,console.enabled=false")
    assert len(pods) == 5
    for pod in pods.values():
        environment = _environment(pod)
        assert environment["KAPPA_DRAIN_SECONDS"] == "120" and pod["terminationGracePeriodSeconds"] == 150


def test_drivers_may_do_with_pods_what_they_need_and_others_nothing():
    manifests = _manifests("--values", CHART / "examples" / "spark-on-kubernetes.yaml")
    (role,) = [m for m in manifests if m["kind"] == "Role"]
    assert {resource for rule in role["rules"] for resource in rule["resources"]} == {
        "pods",
        "configmaps",
        "persistentvolumeclaims",
    }
    tokens = {pod["metadata"]["labels"]["app.kubernetes.io/component"]: pod["spec"] for pod in _pods(manifests)}
    may = {name for name, pod in tokens.items() if pod["automountServiceAccountToken"]}
    assert may == {"enrichment", "statistics", "detector", "archive"}


VOLUME = "spark.kubernetes.executor.volumes"
URLS = ("--set", "storage.checkpoints=s3a://b/c", "--set", "storage.delta=s3a://b/d")


@pytest.mark.parametrize(
    ("values", "volume"),
    [
        (
            ("--set", "storage.accessMode=ReadWriteMany"),
            {f"{VOLUME}.persistentVolumeClaim.home.options.claimName": "kappa"},
        ),
        (URLS, {}),
    ],
)
def test_executors_can_write_where_they_work(values, volume):
    pods = _deployments("--set", "spark.mode=kubernetes", "--set", "storage.existingClaim=kappa", *values)
    kind = "persistentVolumeClaim" if volume else "emptyDir"
    for job in ("enrichment", "statistics", "detector", "archive"):
        conf = json.loads(_environment(pods[f"kappa-{job}"])["KAPPA_SPARK_CONF"])
        found = {key: value for key, value in conf.items() if key.startswith(VOLUME)}
        assert found == {f"{VOLUME}.{kind}.home.mount.path": "/var/lib/kappa", **volume}


def test_the_readme_is_that_of_the_values():
    assert (CHART / "README.md").read_text() == readme(), "make chart-readme"


def test_the_alerts_are_those_of_the_runbooks():
    rules = yaml.safe_load((CHART / "files" / "rules.yml").read_text())["groups"][0]["rules"]
    sections = {line[3:] for line in Path("docs/how-to/runbooks.md").read_text().splitlines() if line.startswith("## ")}
    assert sections == {rule["alert"] for rule in rules}
    for rule in rules:
        assert rule["annotations"]["runbook_url"].endswith(f"runbooks.md#{rule['alert'].lower()}")


EVERYWHERE = """
affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}
priorityClassName: telco
extraEnv: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
extraVolumes: [{name: truststore, configMap: {name: truststore}}]
extraVolumeMounts: [{name: truststore, mountPath: /etc/ssl/more, readOnly: true}]
"""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_pod_has_what_is_extra(example, tmp_path):
    more = tmp_path / "values.yaml"
    more.write_text(EVERYWHERE)
    pods = list(_pods(_manifests("--values", example, "--values", more)))
    assert len(pods) > 5
    for pod in pods:
        name, spec = pod["metadata"]["labels"]["app.kubernetes.io/component"], pod["spec"]
        assert spec["priorityClassName"] == "telco", name
        assert {"podAffinity", "nodeAffinity"} & spec["affinity"].keys(), name
        for container in spec["containers"]:
            if container["name"] in BUNDLED:
                continue
            environment = {one["name"]: one.get("value") for one in container["env"]}
            assert environment["HTTPS_PROXY"] == "http://proxy:3128", name
            assert {"name": "truststore", "mountPath": "/etc/ssl/more", "readOnly": True} in container["volumeMounts"]
            assert {"name": "truststore", "configMap": {"name": "truststore"}} in spec["volumes"], name


def _cron_jobs(*arguments):
    return {
        m["metadata"]["name"]: m["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        for m in _of_kind("CronJob", *arguments)
    }


def test_the_tables_are_maintained_on_the_volume_and_node_of_their_job():
    ((name, pod),) = _cron_jobs().items()
    assert (name, pod["containers"][0]["args"]) == ("kappa-maintenance", ["archive", "maintain"])
    (home,) = [volume for volume in pod["volumes"] if volume["name"] == "home"]
    assert home["persistentVolumeClaim"] == {"claimName": "kappa-archive"}
    (term,) = pod["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchLabels"]["app.kubernetes.io/component"] == "archive"

    ((_, small),) = _cron_jobs("--set", "profile=small").items()
    (home,) = [volume for volume in small["volumes"] if volume["name"] == "home"]
    assert home["persistentVolumeClaim"] == {"claimName": "kappa-jobs"}


def test_with_shared_storage_each_generation_is_maintained_wherever_it_is_and_saved():
    shared = ("--set", "storage.existingClaim=kappa", "--set", "savepoints.enabled=true", "--set", "savepoints.keep=3")
    whole = ("--set", "generations[0].name=v2", "--set", "generations[0].jobs={enrichment,statistics,detector,archive}")
    found = _cron_jobs(*shared, *whole)
    assert {*found} == {"kappa-maintenance", "kappa-savepoints", "kappa-v2-maintenance", "kappa-v2-savepoints"}
    assert found["kappa-v2-savepoints"]["containers"][0]["args"] == [
        "savepoint",
        "create",
        "nightly",
        "--all",
        "--keep=3",
    ]
    assert _environment(found["kappa-v2-maintenance"])["KAPPA_GENERATION"] == "v2"
    assert not [name for name, pod in found.items() if "affinity" in pod]
    without = _cron_jobs(*shared, "--set", "jobs.archive.enabled=false", "--set", "savepoints.enabled=false")
    assert without == {}


def _hooks(*arguments):
    """The guards of an upgrade: by name, when they run, and their container."""
    jobs = [one for one in _of_kind("Job", *arguments) if "-upgrade-" in one["metadata"]["name"]]
    for one in jobs:
        assert one["spec"]["backoffLimit"] == 0 and one["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    return {
        one["metadata"]["name"]: (
            one["metadata"]["annotations"]["helm.sh/hook"],
            one["spec"]["template"]["spec"]["containers"][0],
        )
        for one in jobs
    }


def test_an_upgrade_is_guarded_only_where_it_is_wanted():
    assert _hooks() == {}


def test_before_an_upgrade_the_running_jobs_are_noted_and_after_it_they_are_watched():
    without = ("--set", "jobs.archive.enabled=false")
    hooks = _hooks("--set", "upgrade.mode=checkpoint", "--set", "upgrade.deadline=5m", *without)
    (begins, begin), (watches, watch) = hooks["kappa-upgrade-begin"], hooks["kappa-upgrade-watch"]
    assert (begins, watches) == ("pre-upgrade", "post-upgrade")
    jobs = [f"--job={job}" for job in ("detector", "enrichment", "indexer", "statistics")]
    assert begin["args"] == ["upgrade", "begin", "--mode=checkpoint", *jobs]
    assert watch["args"] == ["upgrade", "watch", "--deadline=5m"]
    # What it needs of the chain is in Kafka.
    assert "KAPPA_CHECKPOINTS" not in {one["name"] for one in begin["env"]}


def test_in_the_small_profile_all_jobs_are_noted():
    hooks = _hooks("--set", "upgrade.mode=checkpoint", "--set", "profile=small")
    assert hooks["kappa-upgrade-begin"][1]["args"] == ["upgrade", "begin", "--mode=checkpoint"]


def test_with_savepoints_the_guards_reach_what_the_jobs_keep():
    shared = ("--set", "storage.checkpoints=s3a://b/c,storage.delta=s3a://b/d", "--set", "jobs.rules.enabled=true")
    hooks = _hooks("--set", "upgrade.mode=savepoint", *shared)
    when, container = hooks["kappa-upgrade-back"]
    jobs = [f"--deployment=kappa-{job}" for job in ("archive", "detector", "enrichment", "rules", "statistics")]
    assert (when, container["args"], len(hooks)) == ("pre-rollback", ["upgrade", "back", *jobs], 3)
    for _, container in hooks.values():
        environment = {one["name"]: one.get("value") for one in container["env"]}
        assert environment["KAPPA_CHECKPOINTS"] == "s3a://b/c" and environment["KAPPA_OPTIONAL_JOBS"] == "rules"

    claimed = ("--set", "upgrade.mode=savepoint", "--set", "storage.existingClaim=kappa")
    pods = [pod["spec"] for pod in _pods(_manifests(*claimed))]
    guards = [pod for pod in pods if pod["containers"][0].get("args", [""])[0] == "upgrade"]
    assert len(guards) == 3
    for pod in guards:
        home = next(volume for volume in pod["volumes"] if volume["name"] == "home")
        assert home["persistentVolumeClaim"] == {"claimName": "kappa"}


def test_only_the_way_back_to_a_savepoint_may_stop_the_jobs_and_only_while_it_runs():
    manifests = _manifests("--set", "upgrade.mode=savepoint", "--set", "storage.existingClaim=kappa,profile=small")
    own = [one for one in manifests if one["metadata"]["name"] == "kappa-upgrade-back"]
    assert sorted(one["kind"] for one in own) == ["Job", "Role", "RoleBinding", "ServiceAccount"]
    role = next(one for one in own if one["kind"] == "Role")
    assert role["rules"] == [
        {
            "apiGroups": ["apps"],
            "resources": ["deployments/scale"],
            "resourceNames": ["kappa-jobs"],
            "verbs": ["get", "patch"],
        },
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    ]
    for one in own:
        hook = {key.removeprefix("helm.sh/hook"): value for key, value in one["metadata"]["annotations"].items()}
        assert hook[""] == "pre-rollback"
        if one["kind"] != "Job":
            # Before the Job, and gone with it.
            assert int(hook["-weight"]) < -3 and "hook-succeeded" in hook["-delete-policy"]
    asking = [pod["spec"] for pod in _pods(manifests) if pod["spec"].get("automountServiceAccountToken")]
    assert [pod["serviceAccountName"] for pod in asking] == ["kappa-upgrade-back"]
    for mode in ("unguarded", "checkpoint"):
        others = _manifests("--set", f"upgrade.mode={mode}")
        assert not [one for one in others if one["metadata"]["name"] == "kappa-upgrade-back"]


def test_the_last_generation_is_promoted_within_the_tolerance():
    planned = (*SECOND, "--set", "generations[1].name=v3", "--set", "generations[1].jobs={detector,indexer}")
    hooks = _hooks(*planned, "--set", "storage.existingClaim=kappa", "--set", "upgrade.mode=generation",
                   "--set", "upgrade.tolerance=0.005")  # fmt: skip
    ((when, container),) = hooks.values()
    assert when == "post-upgrade"
    assert container["args"] == ["replay", "promote", "v3", "--tolerance=0.005", "--deadline=10m"]


SECURED = (
    "--set", "kafka.enabled=false", "--set", "kafka.bootstrap=k:9093", "--set", "kafka.security.protocol=SASL_SSL",
    "--set", "kafka.security.username=kappa-indexer", "--set", "kafka.security.passwordSecret.name=pw",
    "--set", "kafka.security.caSecret.name=ca", "--set", "kafka.security.clientSecret.name=own",
)  # fmt: skip


def test_keda_asks_as_the_indexer_does_for_all_of_its_topics():
    keda = ("--set", "keda.enabled=true")
    (scaled,) = _of_kind("ScaledObject", *SECURED, *keda)
    triggers = scaled["spec"]["triggers"]
    assert {one["metadata"]["topic"] for one in triggers} == {topic.name for topic in load_topics().indexed}
    for one in triggers:
        assert (one["metadata"]["sasl"], one["metadata"]["tls"]) == ("scram_sha512", "enable")
        assert one["authenticationRef"] == {"name": "kappa-kafka"}
    (identity,) = _of_kind("TriggerAuthentication", *SECURED, *keda)
    secrets = {one["parameter"]: (one["name"], one["key"]) for one in identity["spec"]["secretTargetRef"]}
    assert secrets == {
        "password": ("pw", "password"),
        "ca": ("ca", "ca.crt"),
        "cert": ("own", "user.crt"),
        "key": ("own", "user.key"),
    }
    environment = _environment(_deployments(*SECURED)["kappa-indexer"])
    assert {one["name"] for one in identity["spec"]["env"]} <= environment.keys()
    assert _of_kind("TriggerAuthentication", *keda) == []


def test_the_dashboard_is_where_grafanas_sidecar_looks():
    (found,) = [
        one
        for one in _of_kind("ConfigMap", "--set", "grafanaDashboards.enabled=true")
        if one["metadata"]["labels"].get("grafana_dashboard") == "1"
    ]
    board = (CHART / "files" / "dashboards" / "chain.json").read_text()
    assert json.loads(found["data"]["kappa-chain.json"]) == json.loads(board)


def test_the_alert_of_pending_pods_is_about_the_releases_own():
    (rules,) = _of_kind("PrometheusRule", "--set", "prometheusRule.enabled=true", "--set", "fullnameOverride=telco")
    (pending,) = [one for one in rules["spec"]["groups"][0]["rules"] if one["alert"] == "KappaPodPending"]
    assert 'namespace="kappa", pod=~"telco-.*"' in pending["expr"]
