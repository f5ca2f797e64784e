"""Errors shown to the user: the base of errors that the user can fix, and a requested stop."""


class BadInput(ValueError):
    """Something given to the program does not fit; the message is one sentence that says what would."""


class Cancelled(Exception):
    """The user requested a stop during a slow preparation."""
