import math

import numpy as np

from jobs.detector.model.elementary import ln, ln1p


def test_logarithms_are_those_of_the_c_library() -> None:
    x = np.random.default_rng(1).lognormal(0.0, 5.0, 10_000)
    assert ln(x).tolist() == [math.log(one) for one in x.tolist()]
    np.testing.assert_allclose(ln1p(x), [math.log1p(one) for one in x.tolist()], rtol=1e-15)
