"""Every use of a session in this process: the verbs that only read, and the models of the window.

For tests that have less time than the campaign, and for hypothesis. A session that does not work is an exception here.
"""

import contextlib
import io
import json
from pathlib import Path
from typing import Final

from app.cli.main import main
from app.export import formats
from app.model import configurations, latency, provenance
from app.model.desk_snapshot import desk_snapshot
from app.model.scope import scope_of
from app.views.cost_model import cost_model
from app.views.roofline_model import points
from app.views.words_model import words_model
from app.views.work import work_model
from pipelines import config as settings
from pipelines.experiments import rerun
from profiler.analysis.breakdown import breakdown
from profiler.analysis.own_cost import recorder_cost
from profiler.analysis.track import CostTrack
from profiler.errors import BadInput
from profiler.machine.roofs.table import drift_text, drift_warning, sound_drift
from profiler.session.errors import SessionError
from profiler.session.reader import Session
from tests.bench.campaign.attack import no_constant

LONGEST_SENTENCE: Final = 320
USAGE_ERROR: Final = 2
VERBS: Final = (
    *("show {0}", "show {0} --json", "compare {0} {0}", "compare {0} {0} --json", "compare {0} --json"),
    *("whatif {0} --scale scoring=0.5", "whatif {0} --scale memory=0.5 --scale search=0 --json"),
)


class Odd(Exception):
    """Neither a session that works nor one clear sentence."""


def use(path: Path, folder: Path, verbs: bool = True) -> str | None:
    """Use a session in every way; None if it opened, else the sentence. Files are written into `folder`. Anything but
    SessionError goes up, and so does a sentence of bad form."""
    with contextlib.ExitStack() as opened:
        try:
            session = opened.enter_context(Session.open(path))
            session.refresh()
        except SessionError as error:
            return check_sentence(str(error), path)
        look(session, folder)
        live = session.state == "recording"
    if verbs and not live:  # one that another process is taken to record may change meanwhile
        for words in VERBS:
            say([word.format(path) for word in words.split()])
    return None


def look(session: Session, folder: Path) -> None:
    """Read every attribute of an open session, analyse it, make every model of the window, export it."""
    for name in dir(type(session)):
        if not name.startswith("_"):
            getattr(session, name)
    for name in session.sample_names:
        session.samples(name)
    track = CostTrack()
    track.update(session)
    breakdown(session, 3, 20, track=track)
    points(breakdown(session, track=track).stages)
    frames, seconds = track.n_frames, max(track.n_frames, 1) * 0.01
    for model in (cost_model, words_model, work_model):
        model(session, track, frames, (0.0, seconds), 300)
        model(session, track, frames // 2, (0.1, 0.1 + seconds / 3), 40)
    for selected in (None, (1, 7)):
        desk_snapshot(session, track, scope_of(session, frames, None, selected)).reasons.values()
    recorder_cost(session, track)
    for end in (frames, frames // 2):
        if (waits := latency.of_session(session, track, end)) is not None:
            latency.texts(waits.as_dict())[0]
            tree = configurations.settings_before(session, end).tree
            latency.of_settings(settings.Config(), waits, tree, chosen=False)
    provenance.caption(provenance.provenance_of(session))
    for text_of in (drift_text, drift_warning):
        text_of(sound_drift(session.meta.get("drift")))
    with contextlib.suppress(BadInput):
        rerun.settings_of(session.configs, frames)
    for form in formats():
        form.write(session, folder / "export")
        if form.mime == "application/json":
            json.loads((folder / "export").read_bytes(), parse_constant=no_constant)


def say(words: list[str]) -> None:
    """Give `words` to the command line; Odd unless it succeeds, or refuses in a sentence."""
    out, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
        status = main(words)
    if status == USAGE_ERROR:
        if not said.getvalue().startswith("asrscope: ") or said.getvalue().count("\n") != 1:
            raise Odd(said.getvalue()[:300])
    elif status:
        raise Odd(f"{words[0]} ends with {status}: {said.getvalue()[:300]}")
    elif "--json" in words:
        json.loads(out.getvalue(), parse_constant=no_constant)


def check_sentence(text: str, path: Path) -> str:
    """Return a sentence without its path; Odd if it is not one printable line of decent length that names it."""
    shown = text.replace(str(path), "FILE")
    if "FILE" not in shown or not shown.isprintable() or len(shown) > LONGEST_SENTENCE:
        raise Odd(shown)
    return shown
