"""A step over the frames of micro-batches that Spark plans once, not for each of them."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from connectors.java_class import java_class

Step = Callable[[DataFrame], DataFrame]


class Prepared:
    """A step from a frame to a frame, as a step: its plan is made for the first frame and kept.

    What `step` gives may depend on nothing but its frame's rows, their number of partitions aside; other frames in it
    stay as they are at its first call. A frame with other columns gets a plan of its own. What comes out has been
    planned, so what follows can't be optimised together with it.
    """

    def __init__(self, step: Step) -> None:
        self._step = step
        self._plan: Any = None  # the JVM's kappa.PreparedPlan

    def __call__(self, frame: DataFrame) -> DataFrame:
        """What the step gives of this frame. Nothing is computed yet, but what the step broadcasts."""
        if self._plan is None or not self._plan.fits(frame._jdf):
            self._plan = self._planned(frame)
        return DataFrame(self._plan.over(frame._jdf), frame.sparkSession)

    def _planned(self, frame: DataFrame) -> Any:
        plan = java_class(frame.sparkSession, "kappa.PreparedPlan")
        nothing = DataFrame(plan.withoutRows(frame._jdf), frame.sparkSession)
        return plan(nothing._jdf, self._step(nothing)._jdf)
