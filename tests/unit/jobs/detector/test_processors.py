"""Promise 2 on any processor: libraries that choose kernels by it change no bit of the state or of a novelty."""

import os
import subprocess
import sys
from hashlib import blake2b

import numpy as np
import orjson
import pytest

from infra.contract.columnar import to_columns
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import fold

# By name what a library is told of the processor; numpy's groups are those of its version in the lock file.
KERNELS = {
    "as it is": {},
    "OpenBLAS of 2004": {"OPENBLAS_CORETYPE": "Prescott"},
    "OpenBLAS of 2013": {"OPENBLAS_CORETYPE": "Haswell"},
    "numpy without AVX-512": {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"},
    "numpy without AVX": {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR X86_V3"},
}
FIRST, WINDOWS, SIZE = 170_000_000, 160, 10 * 10**9


def records() -> list[bytes]:
    """Two machines of forty series, some of which move together, with a fault at the end."""
    rng, found = np.random.default_rng(8), []
    for window in range(WINDOWS):
        end = (FIRST + window) * SIZE
        span = {"kind": "tumbling", "size_seconds": 10.0, "start_unix_nano": end - SIZE, "end_unix_nano": end}
        for machine in ("vm-1", "vm-2"):
            values = 50.0 + 3.0 * rng.normal(size=40) + 5.0 * rng.normal() * (np.arange(40) % 2)
            values[:9] += 60.0 * (machine == "vm-1" and 140 <= window < 150)
            entries = [
                {"series": f"metric-{at}", "kind": "metric", "count": 1, "mean": float(value)}
                for at, value in enumerate(values)
            ] + [{"series": "opened <num>", "kind": "log", "count": int(rng.poisson(8.0))}]
            found.append(orjson.dumps({"machine": machine, "window": span, "statistics": to_columns(entries)}))
        found.append(orjson.dumps({"watermark_unix_nano": end}))
    return found


def digests() -> dict[str, str]:
    """Of the state, of the novelties, and of what the libraries themselves compute."""
    state, novelties = fold(None, records(), DetectorSettings())
    x = np.random.default_rng(1).lognormal(0.0, 3.0, (300, 300))
    parts = {
        "state": b"".join(name.encode() + part for name, part in state.items()),
        "novelties": orjson.dumps(novelties),
        "product": (x @ x).tobytes(),
        "logarithms": np.log(x).tobytes(),
    }
    found = {name: blake2b(part, digest_size=8).hexdigest() for name, part in parts.items()}
    return found | {"alerts": str(sum(one["phase"] == "start" for one in novelties))}


def elsewhere(kernel: str) -> dict[str, str]:
    """The digests of a process that is told this of its processor."""
    environment = os.environ | KERNELS[kernel]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", __name__], env=environment, capture_output=True, check=True
    )
    found: dict[str, str] = orjson.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, str]]:
    return {kernel: elsewhere(kernel) for kernel in KERNELS}


def test_any_kernel_gives_the_same_state_and_the_same_novelties(found: dict[str, dict[str, str]]) -> None:
    assert int(found["as it is"]["alerts"]) > 0
    for name in ("state", "novelties"):
        assert len({one[name] for one in found.values()}) == 1, {kernel: one[name] for kernel, one in found.items()}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the names of kernels are those of x86")
def test_the_kernels_really_differ(found: dict[str, dict[str, str]]) -> None:
    assert len({one["product"] for one in found.values()}) > 1


if __name__ == "__main__":
    sys.stdout.buffer.write(orjson.dumps(digests()))
