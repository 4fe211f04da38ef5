"""The error for what a user can fix."""


class UserError(Exception):
    """Wrong input: the message names field, value and fix. The command line prints it and exits with code 2."""
