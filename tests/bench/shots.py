"""Pictures of the desk and of every view, light and dark, at two sizes: for the README, and for looking at.

    python -m tests.bench.shots --folder build/shots [--scale 2]

Decodes the bundled voices as the demo does, flipping the toggles on the way, so that there is something to see. Every
picture is checked for texts that collide or are cut (`tests.app.text_geometry`); with one, the end is an error.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from app.model.playhead import Playhead
from app.model.recent import Memory
from app.model.time_axis import TimeAxis
from app.pictures.request import PictureRequest
from app.pictures.session import SessionPictures
from app.pictures.writers import settle
from app.style.theme import set_theme
from app.views import PICTURES, create
from app.views.view import View
from app.window.lab.page import LabPage
from app.window.main_window import MainWindow
from pipelines import config
from pipelines.audio import collecting
from pipelines.audio import loading as audio
from pipelines.config import presets
from pipelines.labs import running
from pipelines.run import playlist
from pipelines.run.control import Control
from pipelines.run.session_run import Request, execute
from profiler.files.paths import SESSIONS_VARIABLE
from tests.app.text_geometry import cut_short, faults
from tests.bench._rounds import command_line

SIZES = ((1280, 800), (1920, 1200), (2560, 1440))
"""A small laptop, a desktop and a large one, in points: with `--scale 2` each has two pixels."""
SWITCHES = ((0.15, "frames.skip", 2), (0.35, "frames.skip", 1), (0.75, "gmm.selection.enabled", True))
"""Share of the files after which a setting changes."""
LAB, OTHER_LAB = "exp-cost", "call-costs"  # The lab with a picture of its page, and another that was run before
BEHIND = ("work", "roofline", "utterances", "session")
LAB_S = 3.0  # measuring time of a lab
SHOWN_MS = 50


def record(session: Path) -> None:
    """Decode the bundled voices into `session`, flipping the toggles on the way."""
    chosen = config.assign(presets.load("demo").config, {"pace": 0.0, "loop": False})
    paths, transcripts = playlist.bundled_speech()
    total = sum(audio.load(path).duration_s for path in collecting.collect(paths)) * 100
    left = list(SWITCHES)

    class Script(Control):
        """Sets the next switch once the decode loop has come far enough."""

        @property
        def stopping(self) -> bool:
            while left and self.frame >= left[0][0] * total:
                self.ask(*left.pop(0)[1:])
            return super().stopping

    request = Request(chosen, "demo", tuple(paths), transcripts, session, replace=True)
    execute(request, Script(), lambda stage, fraction: None)


def try_labs(sessions: Path) -> None:
    """Run some labs into a folder of sessions without others: the user's own runs are no part of a picture."""
    for left in sessions.glob("*.asrs"):
        left.unlink()
    for name in (LAB, OTHER_LAB):
        path = sessions / f"2026-01-31-120000-lab-{name}.asrs"
        outcome = running.execute(running.Request(name, {"seconds": LAB_S}, path))
        assert outcome.state == "closed", outcome.problem


@contextmanager
def opened_window(folder: Path, theme: str, size: tuple[int, int]) -> Iterator[MainWindow]:
    """A window of that theme and size, which remembers its settings in `folder`."""
    window = MainWindow(memory=Memory(folder / "settings.ini"))
    window.choose_theme(theme)
    window.resize(*size)
    window.show()
    yield window
    window.close()
    window.deleteLater()


def look_at_desk(session: Path, folder: Path, theme: str, size: tuple[int, int]) -> list[str]:
    """Pictures of the window at the end, in a replay, with a selection, zoomed in, and with other views in front."""
    problems, end = [], f"{theme}-{size[0]}x{size[1]}.png"
    with opened_window(folder, theme, size) as window:
        window.playhead.open(session)
        window.show_desk()
        window.resize(*size)
        playhead, axis = window.playhead, window.axis
        states: dict[str, Callable[[], object]] = {
            "end": playhead.go_live,
            "replay": lambda: (playhead.seek(playhead.n_frames * 0.6), axis.follow_window()),
            "selection": lambda: (axis.fit(), axis.select(axis.end * 0.4, axis.end * 0.5)),
            "near": lambda: (axis.clear(), axis.set_visible(axis.end * 0.4, axis.end * 0.4 + 0.2)),
            **{view: partial(window.actions_.trigger, f"go.{view}") for view in BEHIND},
        }
        for name, enter in states.items():
            enter()
            QTest.qWait(300)
            problems += checked(window, folder / f"desk-{name}-{end}")
    return problems


def look_at_lab(folder: Path, theme: str, size: tuple[int, int]) -> list[str]:
    problems, end = [], f"{theme}-{size[0]}x{size[1]}.png"
    with opened_window(folder, theme, size) as window:
        window.show_lab()
        page = window.findChild(LabPage)
        assert page is not None
        for name in ("all", LAB):
            page.show_gallery() if name == "all" else page.show_lab(name)
            QTest.qWait(SHOWN_MS)
            while page._to_read:
                QTest.qWait(SHOWN_MS)
            problems += checked(window, folder / f"lab-{name}-{end}")
    return problems


def look_at_view(session: Path, folder: Path, view_id: str, theme: str, size: tuple[int, int]) -> list[str]:
    set_theme(theme)
    playhead = Playhead(TimeAxis())
    view = create(view_id, playhead.axis)
    playhead.changed.connect(view.update_snapshot)
    view.resize(*size)
    view.show()
    playhead.open(session)
    problems, end = [], f"{theme}-{size[0]}x{size[1]}.png"
    for name in ("chart", "table"):
        view.show_table(name == "table")
        problems += checked(view, folder / f"{view_id}-{name}-{end}")
    playhead.close()
    view.close()
    view.deleteLater()
    return problems


def checked(widget: QWidget, path: Path) -> list[str]:
    """Write a picture of a widget as it is on the screen; return the faults of its texts, with the picture's name."""
    settle()
    for view in [widget] if isinstance(widget, View) else widget.findChildren(View):
        view.settle()
    settle()
    widget.grab().save(str(path))
    return [f"{path.name}: {fault}" for fault in (*faults(widget), *cut_short(widget))]


def main() -> int:
    parser = command_line("shots", __doc__)
    parser.add_argument("--folder", type=Path, default=Path("build/shots"))
    parser.add_argument("--session", type=Path, help="pictures of this one; none is recorded")
    parser.add_argument("--scale", type=int, default=1, help="pixels per point")
    arguments = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    if arguments.scale != 1:
        os.environ["QT_SCALE_FACTOR"] = str(arguments.scale)
    folder: Path = arguments.folder
    sessions = folder.absolute() / "sessions"
    sessions.mkdir(parents=True, exist_ok=True)
    os.environ[SESSIONS_VARIABLE] = str(sessions)
    session: Path = arguments.session or folder / "shots.asrs"
    if arguments.session is None:
        record(session)
    try_labs(sessions)
    problems: list[str] = []
    for theme in ("dark", "light"):
        with closing(SessionPictures(session)) as pictures:
            pictures.write(PictureRequest(theme=theme), folder / f"export-{theme}.png")
        for size in SIZES:
            problems += look_at_desk(session, folder, theme, size)
            problems += look_at_lab(folder, theme, size)
            for view in PICTURES:
                problems += look_at_view(session, folder, view, theme, size)
    made = f"{len(list(folder.glob('*.png')))} pictures in {folder}"
    print(made, *problems, f"{len(problems)} texts collide or are cut", sep="\n", file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    raise SystemExit(main())
