"""Numbers as people read them."""


def size(count: float) -> str:
    """A number of bytes in one unit, with three digits."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} PB"
