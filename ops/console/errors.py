"""What a view can't show."""


class NotThere(Exception):
    """What a page should show doesn't exist."""
