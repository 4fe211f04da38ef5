"""What the chart's pods may reach, may do and may see."""

import json

import pytest
import yaml

from ops.acl.principals import principals
from tests.charts.network import OUTSIDE, Endpoint, Network, selects
from tests.charts.test_chart import EXAMPLES, _containers, _manifests, _pods, pytestmark  # noqa: F401
from tests.charts.tools import CHART

LOCAL, PRODUCTION, ON_KUBERNETES = (
    ("--values", CHART / "examples" / f"{name}.yaml") for name in ("local", "production", "spark-on-kubernetes")
)
STANDARD = ("--set", "profile=standard")
DNS = Endpoint({"k8s-app": "kube-dns"}, "kube-system")
PROMETHEUS = Endpoint({"app": "prometheus"}, "monitoring")
STRANGER = Endpoint({"app": "stranger"}, "default")
KAFKA, ELASTICSEARCH = Endpoint({"strimzi.io/name": "telemetry"}, "kafka"), Endpoint({"common": "es"}, "elastic")
EXECUTORS = ("executor",)


@pytest.fixture
def network():
    """The network of a release, and its pods by component."""

    def of(*arguments):
        manifests = _manifests(*arguments)
        pods = {}
        for pod in [*_pods(manifests), *_templates(manifests)]:
            labels = pod["metadata"]["labels"]
            pods[labels["app.kubernetes.io/component"]] = Endpoint(labels)
        return Network(manifests), pods

    return of


def _templates(manifests):
    """The pods that Spark makes."""
    for manifest in manifests:
        if "executor.yaml" in (manifest.get("data") or {}):
            yield yaml.safe_load(manifest["data"]["executor.yaml"])


def reach(network, pods, target, port):
    return {name for name, pod in pods.items() if network.allows(pod, target, port)}


def test_the_bundled_servers_are_for_those_who_use_them(network):
    rules, pods = network(*LOCAL, *STANDARD)
    jobs = {"enrichment", "statistics", "detector", "archive", "indexer"}
    others = {"toolbox", "topics", "simulator", "console", "maintenance", "test"}
    assert reach(rules, pods, pods["kafka"], 9092) == jobs | others
    assert reach(rules, pods, pods["elasticsearch"], 9200) == {"indexer", "toolbox", "console", "test"}
    for server, port in (("kafka", 9092), ("elasticsearch", 9200)):
        assert not rules.allows(STRANGER, pods[server], port)
        assert not rules.allows(OUTSIDE, pods[server], port)
        assert not rules.allows(pods[server], OUTSIDE, 443) and not rules.allows(pods[server], DNS, 53, "UDP")


def test_in_the_small_profile_the_one_pod_reaches_both(network):
    rules, pods = network(*LOCAL)
    assert rules.allows(pods["all"], pods["kafka"], 9092) and rules.allows(pods["all"], pods["elasticsearch"], 9200)
    assert not rules.allows(pods["simulator"], pods["elasticsearch"], 9200)


def test_no_pod_reaches_another_without_a_reason(network):
    rules, pods = network(*LOCAL, *STANDARD)
    jobs = ("enrichment", "statistics", "detector", "archive", "indexer", "toolbox", "simulator")
    for source in jobs:
        for target in jobs:
            for port in (22, 7078, 7079, 8080, 9092, 9400):
                # Metrics are for every pod of the cluster by default, of this release too; egress says no.
                assert not rules.allows(pods[source], pods[target], port)


def test_metrics_are_for_whoever_scrapes(network):
    rules, pods = network(*PRODUCTION)
    assert rules.allows(PROMETHEUS, pods["detector"], 9400)
    assert not rules.allows(STRANGER, pods["detector"], 9400)
    assert not rules.allows(PROMETHEUS, pods["detector"], 7078)
    rules, pods = network()
    assert rules.allows(STRANGER, pods["detector"], 9400) and not rules.allows(OUTSIDE, pods["detector"], 9400)


def test_in_production_jobs_reach_their_servers_and_no_others(network):
    rules, pods = network(*PRODUCTION)
    for name in ("enrichment", "detector", "indexer", "toolbox", "topics"):
        assert rules.allows(pods[name], DNS, 53, "UDP")
        assert rules.allows(pods[name], KAFKA, 9093)
        assert not rules.allows(pods[name], STRANGER, 9093) and not rules.allows(pods[name], OUTSIDE, 9093)
        assert not rules.allows(pods[name], OUTSIDE, 443)
    assert reach(rules, pods, ELASTICSEARCH, 9200) == {"indexer", "toolbox", "console", "test"}


def test_the_guards_of_an_upgrade_reach_what_they_ask_and_no_more(network):
    rules, pods = network(*PRODUCTION, "--set", "upgrade.mode=checkpoint")
    assert rules.allows(pods["upgrade"], KAFKA, 9093) and not rules.allows(pods["upgrade"], ELASTICSEARCH, 9200)
    assert _secrets_of_component("upgrade", *PRODUCTION, "--set", "upgrade.mode=checkpoint") == {
        "kappa-administrator", "telemetry-cluster-ca-cert",
    }  # fmt: skip
    rules, pods = network(*ON_KUBERNETES, "--set", "upgrade.mode=savepoint")
    assert rules.allows(pods["upgrade"], OUTSIDE, 9000)  # the example's object store
    assert rules.allows(pods["upgrade"], OUTSIDE, 6443)  # the API server, to stop the jobs
    planned = ("--set", "generations[0].name=v2,upgrade.mode=generation", "--set", "generations[0].jobs={detector}")
    rules, pods = network(*ON_KUBERNETES, *planned)
    assert rules.allows(pods["promotion"], OUTSIDE, 9000) and rules.allows(pods["promotion"], ELASTICSEARCH, 9200)


def _secrets_of_component(name, *arguments):
    return {
        secret
        for pod in _pods(_manifests(*arguments))
        if pod["metadata"]["labels"]["app.kubernetes.io/component"] == name
        for secret in _secrets_of(pod)
    }


def test_only_the_notifier_reaches_people(network):
    rules, pods = network(*PRODUCTION, "--set", "jobs.notifier.enabled=true", "--set", "notifier.routes=routes: []")
    assert reach(rules, pods, OUTSIDE, 587) == {"notifier"}
    assert reach(rules, pods, OUTSIDE, 443) == {"notifier", "console"}  # which asks the example's OpenID provider


def test_the_console_asks_the_jobs_and_people_reach_it_where_it_asks_who_they_are(network):
    rules, pods = network(*LOCAL, *STANDARD)
    assert rules.allows(pods["console"], pods["detector"], 9400) and not rules.allows(pods["console"], OUTSIDE, 443)
    assert not rules.allows(STRANGER, pods["console"], 8080)
    rules, pods = network(*PRODUCTION)
    assert rules.allows(pods["console"], pods["detector"], 9400) and not rules.allows(STRANGER, pods["detector"], 9400)
    assert rules.allows(STRANGER, pods["console"], 8080) and not rules.allows(STRANGER, pods["console"], 9400)


def test_drivers_and_executors_speak_with_each_other_and_drivers_with_the_api(network):
    rules, pods = network(*ON_KUBERNETES)
    drivers = {"enrichment", "statistics", "detector", "archive"}
    assert reach(rules, pods, pods["executor"], 7079) == drivers | {"executor"}
    assert reach(rules, pods, pods["detector"], 7078) == {"executor"}
    assert reach(rules, pods, OUTSIDE, 6443) == drivers
    storage = {*drivers, "executor", "toolbox", "maintenance"}
    assert reach(rules, pods, OUTSIDE, 9000) == storage  # the example's object store
    assert not rules.allows(pods["executor"], pods["executor"], 22)


def test_whoever_is_named_may_use_a_bundled_server(network):
    peer = "[{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}}]"
    rules, pods = network("--set-json", f"networkPolicy.kafkaFrom={json.dumps(yaml.safe_load(peer))}")
    assert rules.allows(STRANGER, pods["kafka"], 9092) and not rules.allows(STRANGER, pods["elasticsearch"], 9200)


def test_the_evaluator_knows_selectors():
    labels = {"a": "1", "b": "2"}
    assert selects({}, labels) and selects({"matchLabels": {"a": "1"}}, labels)
    for operator, values, found in (
        ("In", ["1"], True), ("In", ["2"], False), ("NotIn", ["1"], False), ("Exists", [], True),
        ("DoesNotExist", [], False),
    ):  # fmt: skip
        assert selects({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]}, labels) is found


# Secrets


def _secrets_of(pod):
    """The keys of secrets that a pod sees, by secret."""
    found = {}
    for volume in pod["spec"].get("volumes", []):
        for source in volume.get("projected", {}).get("sources", []):
            found.setdefault(source["secret"]["name"], set()).update(item["path"] for item in source["secret"]["items"])
        if "secret" in volume:
            found[volume["secret"]["secretName"]] = {"*"}
    return found


def test_each_job_has_its_own_password_and_who_needs_none_of_elasticsearch_has_none():
    pods = {}
    for pod in _pods(_manifests(*PRODUCTION)):
        if pod["metadata"]["labels"].get("kappa/generation", "live") == "live":
            pods[pod["metadata"]["labels"]["app.kubernetes.io/component"]] = _secrets_of(pod)
    password, key = {"kappa_kafka_sasl_password"}, {"kappa_elasticsearch_api_key"}
    kafka_ca, elastic_ca = "telemetry-cluster-ca-cert", "novelties-es-http-certs-public"
    served = {"kappa-metrics-tls": {"tls.crt", "tls.key"}, "kappa-metrics-token": {"token"}}
    assert pods["detector"] == {"kappa-detector": password, kafka_ca: {"*"}, **served}
    assert pods["indexer"] == {
        "kappa-indexer": password, "kappa-es-indexer": key, kafka_ca: {"*"}, elastic_ca: {"*"}, **served,
    }  # fmt: skip
    assert {name for name, secrets in pods.items() if "tls.key" in secrets.get("kappa-metrics-tls", ())} == {
        "enrichment", "statistics", "detector", "archive", "indexer",
    }  # fmt: skip
    assert pods["console"]["kappa-metrics-tls"] == {"ca.crt"} and pods["console"]["kappa-metrics-token"] == {"token"}
    assert pods["topics"] == {"kappa-administrator": password, kafka_ca: {"*"}}
    assert {name for name, secrets in pods.items() if "kappa-es-administrator" in secrets} == {"toolbox", "test"}


def test_the_users_are_those_of_kappa_acl():
    from infra.contract.topics import load_topics
    from jobs.table import JOBS

    known = {f"kappa-{name}" for name in principals({"live": (JOBS.enabled(), load_topics())}, trial=True)}
    used = {
        variable["value"]
        for container in _containers(_manifests(*PRODUCTION, "--set", "simulator.enabled=true"))
        for variable in container["env"]
        if variable["name"] == "KAPPA_KAFKA_SASL_USERNAME"
    }
    assert used and used <= known


# Of an object store, by reference: its clients look in the environment, and executors need it for state and tables.
STORE_KEY = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_no_secret_is_in_an_environment_a_command_line_or_an_executor(example):
    manifests = _manifests("--values", example, "--set", "kafka.security.protocol=SASL_SSL", "--set",
                           "kafka.security.userPrefix=kappa-")  # fmt: skip
    for container in _containers(manifests):
        by_reference = {one["name"] for one in container.get("env", []) if "secretKeyRef" in one.get("valueFrom", {})}
        assert by_reference <= STORE_KEY
        words = json.dumps([container.get("args"), container.get("command"), container.get("env")])
        assert "PASSWORD" not in words and "API_KEY" not in words
    for pod in _templates(manifests):
        assert _secrets_of(pod) == {} and "env" not in pod["spec"]["containers"][0]


# Pods, by the restricted Pod Security Standard


VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}


def violations(pod):
    """What the restricted standard forbids of a pod."""
    spec, found = pod["spec"], []
    found += [name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    security = spec.get("securityContext", {})
    for container in spec.get("initContainers", []) + spec["containers"]:
        own = {**security, **container.get("securityContext", {})}
        found += [] if own.get("runAsNonRoot") is True and own.get("runAsUser") != 0 else ["runAsNonRoot"]
        found += [] if own.get("allowPrivilegeEscalation") is False else ["allowPrivilegeEscalation"]
        found += ["privileged"] if own.get("privileged") else []
        kept = own.get("capabilities", {})
        found += [] if kept.get("drop") == ["ALL"] and not {*kept.get("add", [])} - {"NET_BIND_SERVICE"} else ["caps"]
        found += [] if own.get("seccompProfile", {}).get("type") in ("RuntimeDefault", "Localhost") else ["seccomp"]
        found += ["hostPort"] if any("hostPort" in port for port in container.get("ports", [])) else []
    found += ["volume" for volume in spec.get("volumes", []) if not {*volume} & VOLUMES]
    return found


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_pods_meet_the_restricted_standard(example):
    manifests = _manifests("--values", example)
    checked = [*_pods(manifests), *_templates(manifests)]
    assert checked and [violations(pod) for pod in checked] == [[]] * len(checked)
    assert violations({"spec": {"containers": [{}]}}) == ["runAsNonRoot", "allowPrivilegeEscalation", "caps", "seccomp"]


# Spark


def _spark(component="detector"):
    for pod in _pods(_manifests(*ON_KUBERNETES)):
        if pod["metadata"]["labels"]["app.kubernetes.io/component"] == component:
            (conf,) = [v["value"] for v in pod["spec"]["containers"][0]["env"] if v["name"] == "KAPPA_SPARK_CONF"]
            return json.loads(conf)
    return None


def test_driver_and_executors_know_each_other_and_encrypt_what_they_say():
    conf = _spark()
    assert conf["spark.authenticate"] == conf["spark.network.crypto.enabled"] == "true"
    assert conf["spark.network.crypto.cipher"] == "AES/GCM/NoPadding"
    assert conf["spark.io.encryption.enabled"] == "true"
    by_reference = "spark.kubernetes.executor.secretKeyRef."
    secrets = {name.removeprefix(by_reference) for name in conf if "secret" in name.lower()}
    assert secrets == STORE_KEY  # by reference; that of `spark.authenticate` Spark makes for each start
    assert conf[f"{by_reference}AWS_SECRET_ACCESS_KEY"] == "kappa-s3:secret-access-key"


def test_executors_may_ask_nothing_of_the_api():
    manifests = _manifests(*ON_KUBERNETES)
    (pod,) = _templates(manifests)
    assert (
        pod["spec"]["serviceAccountName"]
        == _spark()["spark.kubernetes.authenticate.executor.serviceAccountName"]
        == "kappa-executor"
    )
    assert pod["spec"]["automountServiceAccountToken"] is False
    bound = [subject["name"] for m in manifests if m["kind"] == "RoleBinding" for subject in m["subjects"]]
    assert bound == ["kappa"]
