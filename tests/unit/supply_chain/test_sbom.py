"""The bill of materials: valid, and of all that the lock files name."""

import json
import zipfile

import pytest

from infra import jars
from infra.jars import fetch
from infra.version import version
from tests.supply_chain import sbom
from tests.supply_chain.lock import LOCK, packages


@pytest.fixture(scope="module")
def bill():
    return sbom.bill(jars=[fetch("spark")])


def _components(bill, kind):
    return {one["bom-ref"]: one for one in bill["components"] if one["bom-ref"].endswith(".jar") == (kind == "jar")}


def test_it_is_valid_and_of_this_version(bill):
    assert sbom.fault(json.dumps(bill)) is None
    assert (bill["metadata"]["component"]["name"], bill["metadata"]["component"]["version"]) == ("kappa", version())


def test_it_has_each_package_of_the_lock_with_its_hashes(bill):
    lock = LOCK.read_text()
    found = _components(bill, "package")
    assert len(found) == sum(1 for line in lock.splitlines() if "==" in line.split(" ;")[0] and line[0].isalnum())
    hashes = [one["content"] for component in found.values() for one in component["hashes"]]
    assert len(hashes) == lock.count("--hash=sha256:") and all(digest in lock for digest in hashes)
    assert "pkg:pypi/pyspark@4.2.0" in found


def test_it_has_each_jar_that_is_shipped_with_its_hash(bill):
    found = _components(bill, "jar")
    for name, digest in jars._checksums("spark").items():
        assert found[f"spark/{name}"]["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert found["spark/kafka-clients-3.9.2.jar"]["purl"] == "pkg:maven/org.apache.kafka/kafka-clients@3.9.2"
    assert {ref for ref, one in found.items() if "purl" not in one} == {"spark/kappa.jar"}
    assert found["spark/kappa.jar"]["version"] == version()
    assert len([ref for ref in found if ref.startswith("jars/")]) == len([*sbom.SPARK_JARS.glob("*.jar")])


def test_it_says_who_needs_what(bill):
    needs = {one["ref"]: one["dependsOn"] for one in bill["dependencies"]}
    known = {one["bom-ref"] for one in bill["components"]} | {"kappa"}
    assert needs.keys() == known and all(ref in known for on in needs.values() for ref in on)
    assert {"pkg:pypi/pyspark@4.2.0", "spark/kappa.jar"} <= {*needs["kappa"]}
    (py4j,) = [ref for ref in known if ref.startswith("pkg:pypi/py4j@")]
    assert py4j in needs["pkg:pypi/pyspark@4.2.0"]
    needed = {"kappa"}
    while more := {ref for one in needed for ref in needs[one]} - needed:
        needed |= more
    assert needed == known


def test_a_package_of_some_platforms_only_is_optional(bill):
    found = _components(bill, "package").values()
    marked = {package.name for package in packages() if package.marker}
    assert marked and {one["name"] for one in found if one.get("scope") == "optional"} >= marked


def test_a_jar_says_what_is_packed_into_it(tmp_path):
    path = tmp_path / "outer-1.0-shaded.jar"
    with zipfile.ZipFile(path, "w") as jar:
        for group, artifact, number in (("org.a", "outer", "1.0"), ("org.b", "inner", "2.0")):
            pom = f"#made\r\ngroupId={group}\r\nartifactId={artifact}\r\nversion={number}\r\n"
            jar.writestr(f"META-INF/maven/{group}/{artifact}/pom.properties", pom)
    component = sbom._jar(path)
    assert component["purl"] == "pkg:maven/org.a/outer@1.0"
    assert [one["purl"] for one in component["components"]] == ["pkg:maven/org.b/inner@2.0"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda bill: bill["components"][0].update(type="libary"), "'libary' is not one of"),
        (lambda bill: bill.update(specVersion="0.1"), "no bill of CycloneDX"),
        (lambda bill: bill.pop("specVersion"), "no bill of CycloneDX: 'specVersion'"),
    ],
)
def test_one_that_is_not_valid_is_found(bill, tmp_path, capsys, change, said):
    wrong = json.loads(json.dumps(bill))
    change(wrong)
    path = tmp_path / "bill.json"
    path.write_text(json.dumps(wrong))
    assert sbom.main(["--check", str(path)]) == 1
    assert said in capsys.readouterr().err
    path.write_text(json.dumps(bill))
    assert sbom.main(["--check", str(path)]) == 0
