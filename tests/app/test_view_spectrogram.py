"""The spectrogram under the waveform: tones at their frequency and time, and why there is none."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from PySide6.QtCore import QPointF
from rendered import views_of
from sample_session import Sample
from views_desk import pixels, settle, view_on

from app.model import spectrum
from app.model.spectrum import ABSENT_DB, BANDS, SILENT_DB, TOP_HZ, Spectra, chunks_of, spectra
from app.pictures.request import PictureRequest
from app.views.words import LONGEST_S, WordsView
from app.window.actions.exporting import open_picture
from profiler.session.reader import Session
from tests.each import each

RATE = 16000
FRAMES = 512
TONES = {0: 1000.0, 1: 3000.0}  # Hz in the first and the second half


def band_of(hertz: float) -> int:
    return int(hertz / TOP_HZ * BANDS)


def tone(hertz: float, seconds: float, rate: int = RATE) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate).astype(np.float32)


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A session of 5.12 s whose sound is one tone, then another."""
    sound = tmp_path / "tones.wav"
    half = FRAMES * 0.01 / 2
    soundfile.write(sound, np.concatenate([tone(hz, half) for hz in TONES.values()]) * 0.5, RATE)
    sample = Sample(tmp_path / "a.asrs", frames=FRAMES, utterance_frames=FRAMES)
    utterance = sample.writer.utterance
    monkeypatch.setattr(sample.writer, "utterance", lambda name, _path, *rest: utterance(name, str(sound), *rest))
    sample.write()
    return sample.close()


@each("rate", [8000, 16000, 44100])
def test_a_sine_of_full_scale_is_0_db_in_its_band(rate):
    levels = spectra(tone(1031.0, 1.0, rate), rate, 97)
    assert levels.shape == (97, BANDS)
    assert set(levels.argmax(axis=1)) == {band_of(1031.0)}
    assert levels.max(axis=1) == pytest.approx(np.zeros(97), abs=2)
    assert levels[:, band_of(3500)].max() < -50
    if rate == 8000:
        assert (levels[:, band_of(4001) :] == SILENT_DB).all()
    assert (spectra(np.zeros(100, np.float32), rate, 3) == SILENT_DB).all(), "after the end of the samples"


def read(known: Spectra, chunks: list) -> None:
    deque(known.read(chunks), maxlen=0)


def test_only_the_chunks_in_view_are_read_and_the_last_used_are_kept(path, monkeypatch):
    monkeypatch.setattr(spectrum, "CHUNK_FRAMES", 100)
    monkeypatch.setattr(spectrum, "KEPT", 2)
    known = Spectra()
    with Session.open(path) as session:
        chunks = list(chunks_of(session.utterances, 150, 350))
        assert [(one.begin, one.end) for one in chunks] == [(100, 200), (200, 300), (300, 400)]
        read(known, chunks)
        assert [one.begin for one in known.missing(chunks)] == [100]
        levels = known.levels(chunks, np.array([150.0, 200.0, 250.0, 260.0, 260.5, 350.0]))
    assert (levels[0] == ABSENT_DB).all()
    assert [int(row.argmax()) for row in levels[[1, 3, 4]]] == [band_of(hz) for hz in (1000, 3000, 3000)]


@each("part", [{"begin_s": float("nan")}, {"begin_s": "noon"}, {"begin_s": -1e30}])
def test_a_session_that_says_no_place_in_the_file_is_said_so(path, part):
    with Session.open(path) as session:
        (one,) = session.utterances
        chunks = list(chunks_of([replace(one, part=part)], 0, FRAMES))
        known = Spectra()
        read(known, chunks)
    assert known.reason(chunks).startswith((f"The session does not say where in {one.path}", one.path))


def test_it_is_shown_on_request(path, qapp, qtbot):
    with view_on(WordsView, path, qtbot, (800, 400)) as (view, _):
        without = pixels(view)
        assert view.spectrogram.area.isEmpty()
        view.set_spectrogram(True)
        view.settle()
        area, item = view.spectrogram.area, view.spectrogram
        rows = item.draw_pixels(BANDS, 1, slice(None))
        for half, hertz in TONES.items():
            column = rows[:, round(rows.shape[1] * (0.25 + 0.5 * half))] & 0xFF
            assert BANDS - 1 - int(column.argmax()) == band_of(hertz)
        assert area.height() > 100
        assert item.frequency_at(area.bottom() - area.height() / 4) == pytest.approx(2000)
        view.plot.mouse = QPointF(100, area.center().y())
        assert view.remark.text == ""
        assert ("frequency", "4.0 kHz") in [(line.name, line.value) for line in view.readout(view.model(), 1.0)]
        assert (pixels(view) != without).any()
        view.set_spectrogram(False)
        settle()
        assert (pixels(view) == without).all()


def test_why_there_is_none_is_one_sentence(path, qapp, qtbot):
    (path.parent / "tones.wav").unlink()
    with view_on(WordsView, path, qtbot) as (view, playhead):
        view.set_spectrogram(True)
        view.settle()
        assert view.remark.text == f"{path.parent / 'tones.wav'} is not there any more."
        assert view.spectrogram.area.isEmpty()
        model = view.reduce(view.snapshot, 100, (0.0, LONGEST_S + 1))
        view.show_model(replace(model, last_s=LONGEST_S + 1))
        assert view.remark.text == "The spectrogram is shown when at most 2 minutes are in view."
        playhead.close()
        assert view.remark.text == ""


@each("views", [("words",), ()])
def test_a_picture_has_all_of_it(path, qapp, monkeypatch, views):
    monkeypatch.setattr(spectrum, "CHUNK_FRAMES", 8)  # more than are read while nobody waits
    wanted = PictureRequest(views, (1000, 900), 1.0, spectrogram=True)
    view = views_of(path, wanted, monkeypatch)["words"]
    assert not view.spectrogram.area.isEmpty()
    columns = view.spectrogram.draw_pixels(BANDS, 1, slice(None))[::-1] & 0xFF
    halves = np.array_split(columns.argmax(axis=0), 2)
    for half, hertz in zip(halves, TONES.values(), strict=True):
        # The loudest of all is a band at most beside that of the tone; at the end no window is whole.
        assert np.abs(half[10:-10] - band_of(hertz)).max() <= 1
    assert wanted.command("a.asrs", "png").endswith(" --theme dark --spectrogram")


def test_a_picture_of_the_window_has_what_the_window_shows_and_remembers(qtbot, window, path):
    w = window()
    w.open_session(path)
    for on in (False, True):
        assert w.desk.views["words"].with_spectrogram is on
        dialog = open_picture(w)
        assert dialog.choices.wanted().spectrogram is on
        assert dialog.command.full.endswith(" --spectrogram") is on
        dialog.choices.views["words"].setChecked(False)
        assert not dialog.choices.wanted().spectrogram
        dialog.close()
        if not on:
            w.actions_.trigger("speech.spectrogram")
    w.close()
    assert window().desk.views["words"].with_spectrogram
