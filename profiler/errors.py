"""What all floors say to a person: the base of errors that are theirs to mend, and a stop they asked for."""


class BadInput(ValueError):
    """Something given to the program does not fit; the message is one sentence that says what would."""


class Cancelled(Exception):
    """Somebody asked to stop while something slow was being made ready."""
