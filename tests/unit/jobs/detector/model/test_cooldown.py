import numpy as np

from jobs.detector.model.cooldown import COOLDOWN_WINDOWS, Cooldown

ROW = np.zeros(1, np.int64)


def test_after_a_surprise_only_a_louder_one_of_single_windows_is_alerted() -> None:
    cooldown = Cooldown.of(1)
    yes = np.ones(1, bool)

    def alerts(scale: int, score: float, window: int) -> bool:
        return bool(cooldown.suppress(scale, ROW, np.array([score]), yes, np.array([window]))[0])

    assert alerts(0, 20.0, 1)
    assert not alerts(0, 19.0, 2)
    assert not alerts(1, 50.0, 3)
    assert alerts(0, 21.0, 4)
    assert alerts(1, 15.0, 4 + COOLDOWN_WINDOWS + 1)
