"""The one error that a user can mend."""


class UserError(Exception):
    """Bad input: the message names the field, the value and the fix. The command line prints it and exits with 2."""
