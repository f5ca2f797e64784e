"""What people read: the field's terms, and "1 word"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import app
import pipelines
from app.model.desk_snapshot import DeskSnapshot
from app.model.pipeline import Pipeline
from app.model.report_lines import _words_with, defects
from app.model.scope import Scope
from app.model.time_axis import TimeAxis
from app.window.actions.actions import Registry
from app.window.actions.selection import SCOPES
from pipelines import config as settings
from pipelines.audio.word_errors import ErrorCount, Transcribed
from pipelines.config import presets
from profiler import analysis

SOURCES = sorted(
    file
    for package in (app, analysis)  # verdicts come from the analysis
    for file in Path(package.__file__).parent.rglob("*.py")
)

#: Words that were ours alone -> what the field says.
OURS = {
    r"\b(said|heard)\b": "reference, hypothesis",
    r"\bidle \{|\{0\} idle": "not used here",
    r"\b(most|fewest) tokens\b": "max active, min active",
    r"\b(held|hold|wished) real-time factor\b|\bgovernor\b": "adaptive beam, target RTF",
    r"\bkeep alternatives\b|\bword sequences\b": "lattice, N-best",
    r"\bmade smaller\b": "compression",
    r"\bproducts by\b": "kernel",
    r"\b(bi|tri)grams kept\b": "LM bigrams",
    r"\bshown so far\b": "start to cursor",
    r"\bpale: before\b|\brelative to before\b": "baseline",
    r"\b(least|min) to (greatest|max)\b|\bgreatest\b": "min-max",
    r"\bsystem theme\b|\btheme of the system\b": "follow the system",
    r", changed$": "(modified)",
    r"^asked\b|\basked for\b|\bsenones asked\b": "active",
    r"\bexamined takes\b": "each token examined",
}


def shown_texts() -> Iterator[tuple[str, str]]:
    """Every text of window and analysis, what a worker says it is doing, and all texts of settings and presets.

    Each has its place with it. Many come to `tr` by way of a table or a loop.
    """
    for file in SOURCES:
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and id(node) not in documents:
                yield f"{file.name}:{node.lineno}", text
    for file in sorted(Path(pipelines.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "progress":
                for part in ast.walk(node.args[0]):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield f"{file.name}:{node.lineno}", part.value
    for option in settings.options():
        yield option.key, option.title
        yield option.key, option.help
        yield from ((option.key, str(choice)) for choice in option.choices)
    for preset_name in presets.names():
        preset = presets.load(preset_name)
        yield preset_name, preset.title
        yield preset_name, preset.description


@pytest.fixture(scope="module")
def texts() -> list[tuple[str, str]]:
    return list(shown_texts())


@pytest.mark.parametrize("pattern", OURS)
def test_texts_use_the_terms_of_the_field(pattern: str, texts: list[tuple[str, str]]) -> None:
    # What may be *said* is the field's word where speech is spoken, as in a grammar's help.
    spoken = ("may be said", "said in any")
    of_processors = ("governor", "frequency governor")
    wrong = [
        (place, text)
        for place, text in texts
        if re.search(pattern, text, re.IGNORECASE) and not any(s in text for s in spoken) and text not in of_processors
    ]
    assert wrong == [], f"the field says: {OURS[pattern]}"


def test_reports_count_one_error_in_one_word() -> None:
    row = {"wer": 1.0, "wer_errors": 1, "wer_words": 1, "set": {}}
    assert _words_with(row) == "  100.0%: 1 error in 1 word with the settings at the start"


def test_reports_name_the_stage_that_is_faster_than_its_roofs() -> None:
    stages = [{"name": "score.exp", "defect": "It ran in less."}, {"name": "a", "defect": None}]
    assert defects({"stages": stages}) == ["flagged as a defect of the tool: score.exp. It ran in less."]


def test_the_top_bar_counts_one_word(qtbot) -> None:
    from PySide6.QtWidgets import QWidget

    from app.window.actions.actions import Action
    from app.window.bars.topbar import TopBar

    widget = QWidget()
    qtbot.addWidget(widget)
    registry = Registry(widget)
    for action_id in ("run.start", "run.stop", *SCOPES):
        registry.add(Action(action_id, action_id, lambda: None, "Run"))
    bar = TopBar(Pipeline(), registry, TimeAxis())
    qtbot.addWidget(bar)
    words = ErrorCount(1, 1), Transcribed(1, 2)
    bar.show_desk(DeskSnapshot(Scope("whole", 0, 9, 9), {}, {}, (), (), 1.0, 1.0, 0.1, 0.1, *words))
    assert bar.wer.accessibleName() == "WER 100.0 % 1 error in\n1 word *"
    assert "1 error in 1 word of" in bar.wer.toolTip()


def test_numbers_that_explain_nothing_are_said_in_words(qtbot) -> None:
    from app.window.form.form import PipelineForm

    pipeline = Pipeline()
    form = PipelineForm(pipeline)
    qtbot.addWidget(form)
    pace, skip = form.fields["pace"].editor, form.fields["frames.skip"].editor
    assert (pace.text(), skip.text()) == ("full speed", "off")
    pipeline.set("pace", 1.0)
    pipeline.set("frames.skip", 2)
    assert (pace.text(), skip.text()) == ("real time", "every 2nd")
    pipeline.set("pace", 2.5)
    assert pace.text() == "2.5 ×"
    for box, key in ((pace, "pace"), (skip, "frames.skip")):
        box.interpretText()
        assert box.value() == pipeline.value(key)
    pace.selectAll()
    qtbot.keyClicks(pace, "0")
    pace.interpretText()
    assert pace.text() == "full speed"
    assert pipeline.value("pace") == 0.0
    block = form.fields["block"].editor
    pipeline.set("block", 1)
    assert block.text() == "1 frame"
