"""What people read: the field's terms, and "1 word"."""

from PySide6.QtWidgets import QWidget

from app.model.desk_snapshot import DeskSnapshot
from app.model.pipeline import Pipeline
from app.model.scope import Scope
from app.model.time_axis import TimeAxis
from app.window.actions.actions import Action, Registry
from app.window.actions.commands import SCOPES
from app.window.bars.topbar import TopBar
from app.window.form.form import PipelineForm
from pipelines.audio.word_errors import ErrorCount, Transcribed


def test_the_top_bar_counts_one_word(qtbot) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    registry = Registry(widget)
    for action_id in ("run.start", "run.stop", *SCOPES):
        registry.add(Action("Run", action_id, action_id, lambda: None))
    bar = TopBar(Pipeline(), registry, TimeAxis())
    qtbot.addWidget(bar)
    words = ErrorCount(1, 1), Transcribed(1, 2)
    bar.show_desk(DeskSnapshot(Scope("whole", 0, 9, 9), {}, {}, (), (), 1.0, 1.0, 0.1, 0.1, *words))
    assert bar.wer.accessibleName() == "WER 100.0 % 1 error in\n1 word *"
    assert "1 error in 1 word of" in bar.wer.toolTip()


def test_numbers_that_explain_nothing_are_said_in_words(qtbot) -> None:
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
