"""The process behind a run control, for tests that kill it or tell it from another."""

from app.model.processes.run_control import RunControl


def process_id(control: RunControl) -> int:
    """Of the worker; 0 when there is none."""
    return 0 if control._process is None else int(control._process.processId())
