"""Java's classes are found by their whole names, once for all sessions of a JVM."""

import pytest
from py4j.protocol import Py4JError

from connectors.java_class import java_class


def test_a_class_is_the_same_for_each_session(spark):
    found = java_class(spark, "java.lang.Math")
    assert found.max(1, 2) == 2
    assert java_class(spark.newSession(), "java.lang.Math") is found


def test_one_that_is_not_there_fails_when_it_is_used(spark):
    with pytest.raises((Py4JError, TypeError)):
        java_class(spark, "kappa.Nothing")()
