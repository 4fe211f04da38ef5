"""Streaming peers, each as its documentation uses it: score the minute, then learn it; of those from `first` on.

river, rrcf and pyod are installed only where quality is measured (requirements-bench.lock).
"""

from collections import deque

import numpy as np

from jobs.detector.model.arrays import Floats


def half_space_trees(values: Floats, first: int) -> Floats:
    """river's HalfSpaceTrees with its defaults, values scaled online to 0..1."""
    from river import anomaly, preprocessing  # type: ignore[import-not-found]

    scaler, trees = preprocessing.MinMaxScaler(), anomaly.HalfSpaceTrees(seed=1)
    scores = np.zeros(len(values))
    for row, x in enumerate(values):
        features = dict(enumerate(x.tolist()))
        scaler.learn_one(features)
        scaled = scaler.transform_one(features)
        scores[row] = trees.score_one(scaled)
        trees.learn_one(scaled)
    return scores[first:]


def random_cut_forest(values: Floats, first: int, trees: int = 3, size: int = 128) -> Floats:
    """rrcf's streaming forest: the mean collusive displacement of the newest point.

    A tree holds the newest `size` points, so it starts that many before the first that is scored. Each tree costs
    0.35 ms a minute of a machine, more than all of the other peers together.
    """
    import rrcf  # type: ignore[import-not-found]

    np.random.seed(1)
    forest = [rrcf.RCTree() for _ in range(trees)]
    scores = np.zeros(len(values))
    for row in range(max(first - size, 0), len(values)):
        for tree in forest:
            if len(tree.leaves) >= size:
                tree.forget_point(row - size)
            tree.insert_point(values[row], index=row)
            scores[row] += tree.codisp(row) / trees
    return scores[first:]


def windowed_gaussian(values: Floats, first: int, window: int = 1440) -> Floats:
    """The largest |z| of the metrics against the mean and deviation of the last day."""
    scores = np.zeros(len(values))
    total, squares = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    past: deque[Floats] = deque()
    for row, x in enumerate(values):
        if past:
            mean = total / len(past)
            deviation = np.sqrt(np.maximum(squares / len(past) - np.square(mean), 1e-8))
            scores[row] = float(np.max(np.abs(x - mean) / deviation))
        past.append(x)
        total, squares = total + x, squares + np.square(x)
        if len(past) > window:
            gone = past.popleft()
            total, squares = total - gone, squares - np.square(gone)
    return scores[first:]


def online_ecod(values: Floats, first: int, refit: int = 1440) -> Floats:
    """pyod's ECOD, fitted anew each day to all that was seen."""
    from pyod.models.ecod import ECOD  # type: ignore[import-not-found]

    scores = np.zeros(len(values))
    for day in range(refit, len(values), refit):
        model = ECOD().fit(values[max(0, day - 5 * refit) : day])
        scores[day : day + refit] = model.decision_function(values[day : day + refit])
    return scores[first:]


PEERS = {
    "half_space_trees": half_space_trees,
    "random_cut_forest": random_cut_forest,
    "windowed_gaussian": windowed_gaussian,
    "online_ecod": online_ecod,
}
