"""The JUnit tests of connectors/jvm, run by Maven as `mvn -f connectors/jvm/pom.xml test` does."""

import re
from xml.etree import ElementTree

from infra.jars import JVM
from infra.jdk import MAVEN_JAVA, find_jdk, find_maven
from infra.processes import run


def test_the_java_classes(tmp_path):
    command = [find_maven(), "-q", "-B", "-f", JVM / "pom.xml", "test", f"-Dtarget={tmp_path}"]
    code, output = run(command, {"JAVA_HOME": str(find_jdk(MAVEN_JAVA, "Maven"))})
    assert code == 0, re.sub(r"\n\tat .*", "", output)
    reports = [ElementTree.parse(file).getroot() for file in (tmp_path / "surefire-reports").glob("TEST-*.xml")]
    ran = {report.get("name") for report in reports if int(report.get("tests", "0"))}
    assert ran == {f"kappa.{source.stem}" for source in JVM.rglob("*Test.java")}
    assert not any(int(report.get("skipped", "0")) for report in reports)
