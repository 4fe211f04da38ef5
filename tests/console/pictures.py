"""Screenshots: whether there is something on them, and as files that are small enough for the documentation."""

from io import BytesIO
from itertools import groupby
from pathlib import Path

from PIL import Image

FOLDER = Path("build/console")
LEAST_PAINTED = 0.01  # of the pixels; a heading and a line of text have more
LARGEST_GAP = 0.75  # of the window's height that nothing is painted in, above the last thing that is


def emptiness(png: bytes, window: int) -> list[str]:
    """What is wrong with a picture of a page: nothing on it, or a gap of most of a window's height within it."""
    picture = Image.open(BytesIO(png)).convert("L")
    ground = max(picture.getcolors(256), key=lambda one: one[0])[1]
    painted = picture.point(lambda value: 255 if abs(value - ground) > 6 else 0)
    share = painted.histogram()[255] / (picture.width * picture.height)
    faults = [] if share >= LEAST_PAINTED else [f"only {share:.2%} of the picture is painted"]
    rows = painted.resize((1, picture.height), Image.Resampling.BOX).tobytes()
    gap = _longest_gap([value > 0 for value in rows])
    return faults if gap <= LARGEST_GAP * window else [*faults, f"{gap} pixels high, nothing is painted"]


def _longest_gap(rows: list[bool]) -> int:
    """The longest run of rows with nothing, what follows the last painted one left out."""
    last = max((at for at, is_painted in enumerate(rows) if is_painted), default=0)
    return max((len(list(run)) for is_painted, run in groupby(rows[:last]) if not is_painted), default=0)


def save(png: bytes, name: str, colours: int = 256) -> Path:
    """Write a picture with a palette, in which pages lose nothing that one would see."""
    path = FOLDER / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.open(BytesIO(png)).convert("RGB")
    picture.quantize(colours, dither=Image.Dither.NONE).save(path, optimize=True)
    return path
