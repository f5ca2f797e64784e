"""Show the breakdown of a session: where its time went, and what was recognised.

asrscope show run.asrs
asrscope show run.asrs --json
asrscope show run.asrs --select 10..20 --select scoring

`--select` takes a stretch of time, an utterance or a bookmark, whose figures are shown, and a stage or a group, whose
rows are shown. The key `selection` of the JSON object says which.

Two keys of the JSON object say what the run took of the machine; what was not measured is null:

    memory   resident_bytes, peak_bytes, peak_at_load_bytes, growth_bytes_per_audio_hour (likely, low, high), components
             (used_bytes and most_bytes are resident, reserved_bytes, growth as above) and mappings (bytes by library)
    cost     core_s_per_audio_hour, joules_per_audio_hour beyond the idle machine, package_watts, idle_watts, energy
             (the source, or why there is none)
"""

import argparse

from app.cli import _output, _recorded
from app.model import report_lines
from app.model.report import report


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="a session file (.asrs)")
    _recorded.add_select(parser)
    _output.report_flags(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print the report of the session."""
    from pipelines.labs import record
    from profiler.session.reader import Session

    with Session.open(arguments.session) as session:
        tree = report(session, selected=_recorded.selected(arguments, session))
        run_of = record.read(session.meta)
    if run_of is not None:
        tree["lab"] = record.row(run_of)
        if not arguments.json:
            print(_output.page([*record.lines(run_of), ""]))
    _output.print_report(tree, arguments, report_lines.document)
