"""The audit in the window: what a configuration costs in scores and words, and what work it saves."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from command_line import here
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.window.main_window import MainWindow
from app.window.tasks.audit import AuditPage

TREE = {
    "frames": 500, "score_error_near": 0.1234, "near_nat": 20.0, "same_best_senone": 0.973,
    "wer": 0.25, "cer": None, "wer_exact": 0.2, "wer_change": 0.05, "wer_change_ci95": [-0.01, 0.11], "wer_words": 20,
    "shares": {"gaussians": 0.25, "senones": 1.0, "exponentials": 1.5}, "frames_copied": 0.0, "notes": ["A note."],
    "approximations": {"gmm.selection.enabled": True, "gmm.selection.method": "top-n"},
    "utterances": [
        {"id": "as-good", "hypothesis": "so", "exact": "so", "reference": "so", "errors": 0, "exact_errors": 0},
        {"id": "worse", "hypothesis": "yes", "exact": "no", "reference": "no", "errors": 1, "exact_errors": 0},
    ],
}  # fmt: skip


def dialog_of(qtbot: QtBot, parent: QWidget, tree: dict) -> tuple[AuditPage, str]:
    made = AuditPage(Path("one.asrs"), parent, (sys.executable, "-c", f"print({json.dumps(json.dumps(tree))})"))
    made.show()
    qtbot.waitUntil(lambda: not made.working)
    made.copy.click()
    return made, QGuiApplication.clipboard().text()


def test_costs_and_savings_are_dialog_of(qtbot: QtBot, parent: QWidget) -> None:
    made, copied = dialog_of(qtbot, parent, TREE)
    assert "gmm.selection.method=top-n · 2 utterances · 500 frames" in made.state.text()
    assert "0.123 nat off on average, within 20 nat of the best senone, which is the exact one in 97.3 %" in copied
    assert "WER 20.0 % exact → 25.0 %: +5.0 points, 95 % interval -1.0 … +11.0, over 20 words." in copied
    assert "in 1 of 2 utterances" in copied
    assert "A note." in copied
    assert copied.index("worse\t0\t1\tno\tno\tyes") < copied.index("as-good\t0\t0\tso\tso\tso")
    assert made.chart is not None
    assert made.chart.accessibleDescription() == "Gaussians 25.0 %, Senones 100.0 %, Exponentials 150.0 %."
    made.chart.grab()
    made.close()
    made, copied = dialog_of(qtbot, parent, TREE | {"cer": 0.25})
    assert "CER 20.0 % exact → 25.0 %: +5.0 points, 95 % interval -1.0 … +11.0, over 20 characters." in copied
    made.close()


def test_without_transcripts_the_words_are_compared_alone(qtbot: QtBot, parent: QWidget) -> None:
    nothing = dict.fromkeys(("wer", "wer_exact", "wer_change", "wer_change_ci95"))
    rows = [row | {"reference": None, "errors": None, "exact_errors": None} for row in TREE["utterances"]]
    made, copied = dialog_of(qtbot, parent, TREE | nothing | {"utterances": rows, "shares": {}, "frames": 0})
    assert "Without transcripts the word errors are not known." in copied
    assert "WER" not in copied
    assert made.chart is None
    made.close()


@pytest.fixture(scope="module")
def recorded(bundled_speech: Path, tmp_path_factory: pytest.TempPathFactory, short_runs: None) -> dict[str, Path]:
    """Sessions that skip every other frame, with their audio and without it, and one that was scored exactly."""
    folder = tmp_path_factory.mktemp("audit")
    paths = {name: folder / f"{name}.asrs" for name in ("skipping", "gone", "exact")}
    for name, path in paths.items():
        said = folder / f"{name}.flac"
        shutil.copy(bundled_speech / "08-kal16-short.flac", said)
        (folder / "t.tsv").write_text(f"file\ttranscript\n{said.name}\tyes of course\n")
        words = ("--transcripts", folder / "t.tsv", "--set", f"frames.skip={1 if name == 'exact' else 2}")
        done = here("run", "--preset", "gmm-quick", "--audio", said, *words, "--out", path)
        assert done.returncode == 0, done.stderr
    (folder / "gone.flac").unlink()
    return paths


def audited(qtbot: QtBot, path: Path) -> tuple[MainWindow, AuditPage]:
    window = MainWindow()
    qtbot.addWidget(window)
    window.show()
    window.open_session(path)
    window.actions_["run.audit"].trigger()
    (made,) = window.findChildren(AuditPage)
    qtbot.waitUntil(lambda: not made.working)
    return window, made


@pytest.mark.slow
def test_the_session_shown_is_audited(recorded: dict[str, Path], qtbot: QtBot) -> None:
    files = sorted(recorded["skipping"].parent.iterdir())
    tree = json.loads(here("audit", "--session", recorded["skipping"], "--json").stdout)
    assert tree["approximations"] == {"frames.skip": 2}
    assert tree["wer_words"] == 3, "its transcript comes with the session"
    window, made = audited(qtbot, recorded["skipping"])
    assert made.state.text() == f"frames.skip=2 · 1 utterance · {tree['frames']} frames"
    assert f"{tree['score_error_near']:.3g} nat off" in made.sentences[0].text()
    assert made.sentences[1].text().startswith(f"WER {100 * tree['wer_exact']:.1f} % exact →")
    (table,) = made.tables
    row = [str(table.model().index(0, column).data()) for column in range(6)]
    assert row[0] == "skipping"
    assert row[3:] == ["yes of course", tree["utterances"][0]["exact"], tree["utterances"][0]["hypothesis"]]
    assert made.chart is not None
    share = f"{100 * tree['shares']['senones']:.1f} %"
    assert f"Senones {share}" in made.chart.accessibleDescription()
    assert sorted(recorded["skipping"].parent.iterdir()) == files
    made.close()
    window.close()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "says"), [("gone", "is not here"), ("exact", "was scored exactly")])
def test_what_cannot_be_audited_is_one_sentence(recorded: dict[str, Path], qtbot: QtBot, name: str, says: str) -> None:
    window, made = audited(qtbot, recorded[name])
    assert says in made.state.text()
    assert str(recorded[name]) in made.state.text()
    assert not made.tables
    made.close()
    window.close()
