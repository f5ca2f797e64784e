"""Decoder options in a model folder become defaults, the same on the command line, in a file and in the window."""

import argparse
import subprocess
from pathlib import Path

import pytest

from app.cli import _pipeline
from app.model import provenance
from app.model.pipeline import Pipeline
from pipelines import config as settings
from pipelines.config import Config, ConfigError, presets, recommended
from profiler.process import children
from tests.waiting import PATIENCE_S

MODEL_CONF = """--min-active=200
--max-active=3000   # tokens
--beam=10.0
--lattice-beam=2.0
--acoustic-scale=1.0
--frame-subsampling-factor=3
--endpoint.silence-phones=1:2:3
--endpoint.rule2.min-trailing-silence=0.7
--determinize-lattice=true
"""
RECOMMENDED = {
    "search.min_active": 200,
    "search.max_active": 3000,
    "search.beam": 10.0,
    "search.lattice_beam": 2.0,
    "search.acoustic_scale": 1.0,
    "search.insertion_penalty": 0.0,
    "block": 24,
    "stream.rule2_silence_s": 0.7,
}


@pytest.fixture
def vosk(tmp_path: Path) -> Path:
    folder = tmp_path / "vosk"
    (folder / "am").mkdir(parents=True)
    (folder / "conf").mkdir()
    (folder / "am/final.mdl").write_bytes(b"\0B")
    (folder / "conf/model.conf").write_text(MODEL_CONF)
    return folder


def test_options_of_a_vosk_folder_are_settings(vosk):
    found = recommended.read(str(vosk))
    assert found.settings == RECOMMENDED
    assert (found.subsampling, found.chunk, found.silence) == (3, 24, (1, 2, 3))
    assert found.notes == ("conf/model.conf: left out are --determinize-lattice",)
    (vosk / "conf/model.conf").write_text(
        MODEL_CONF + "--frames-per-chunk=20\n--endpoint.rule5.min-utterance-length=9\n"
    )
    assert recommended.read(str(vosk)).settings == RECOMMENDED | {"block": 20, "stream.rule5_length_s": 9.0}
    assert recommended.read(str(vosk)).chunk == 21


def test_an_old_vosk_folder_gets_what_vosk_takes(tmp_path):
    (tmp_path / "final.mdl").write_bytes(b"")
    assert recommended.read(str(tmp_path)) == recommended.Recommended({})
    (tmp_path / "ivector").mkdir()
    (tmp_path / "ivector/final.ie").write_bytes(b"")
    found = recommended.read(str(tmp_path))
    assert found.subsampling == 3
    assert {"search.max_active": 7000, "search.beam": 13.0, "search.min_active": 200}.items() <= found.settings.items()


def test_settings_of_other_nets_and_graphs_do_nothing(vosk):
    def idle(**changes: settings.Value) -> list[str]:
        chosen = {"model_directory": str(vosk), **{key.replace("__", "."): value for key, value in changes.items()}}
        config = settings.assign_with_folder(Config(), chosen)
        return [key for key in (*net, "graph.vocabulary") if settings.unavailable_reason(config, key)]

    net = ["dnn.net", "dnn.shrink"]
    mixtures = settings.unavailable_reason(settings.replace(Config(), "model_directory", str(vosk)), "dnn.net")
    assert "acts only with" in (mixtures or "")
    assert idle(model="dnn") == []
    (vosk / "am/final.mdl").write_bytes(b"\0B<Nnet3>")
    assert idle(dnn__shrink="low-rank") == net
    shrunk = settings.replace(Config(), "dnn.shrink", "low-rank")
    assert settings.with_folder(shrunk, str(vosk), shrunk).dnn.shrink == "none"
    (vosk / "graph").mkdir()
    (vosk / "graph/HCLr.fst").write_bytes(b"")
    assert idle() == net
    (vosk / "graph/Gr.fst").write_bytes(b"")
    assert idle() == [*net, "graph.vocabulary"]
    assert idle(graph__grammar="digits") == [*net, "graph.vocabulary"]  # words of the grammar
    assert idle(graph__dictionary="mine.dict") == net
    here = settings.assign_with_folder(Config(), {"model_directory": str(vosk)})
    assert "the model folder has its own graph" in settings.unavailable_reason(here, "graph.vocabulary")


def test_what_model_conf_does_not_name_has_kaldis_defaults(vosk):
    (vosk / "conf/model.conf").write_text("--max-active=5000\n--acoustic-scale=1.0\n")
    expected = RECOMMENDED | {"search.beam": 16.0, "search.lattice_beam": 10.0, "search.max_active": 5000}
    del expected["stream.rule2_silence_s"]
    assert recommended.read(str(vosk)).settings == expected


def test_kaldis_files_are_read_and_name_what_does_not_fit(tmp_path):
    (tmp_path / "final.mdl").write_bytes(b"")
    (tmp_path / "frame_subsampling_factor").write_text("3\n")
    found = recommended.read(str(tmp_path))
    assert (found.subsampling, found.settings) == (3, {"search.acoustic_scale": 1.0, "search.insertion_penalty": 0.0})
    (tmp_path / "decode.conf").write_text("beam=100\nlattice_beam=8.0\n# a comment\n")
    found = recommended.read(str(tmp_path))
    assert found.settings["search.lattice_beam"] == 8.0
    assert "search.beam" not in found.settings
    assert found.notes == ("decode.conf: --beam is left out: search.beam is a number from 1 to 40, not '100'",)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("conf/model.conf", "<html>", "is an HTML page|expected an option such as --beam=13"),
        ("conf/model.conf", "--beam 13", "expected an option such as --beam=13, found '--beam'"),
        ("conf/model.conf", "--frame-subsampling-factor=0", "whole number from 1 to 16, not '0'"),
        ("conf/model.conf", "--endpoint.silence-phones=1:x", "numbers of phones such as 1:2:3, not '1:x'"),
        ("conf/model.conf", "--x=1\n" * 20_000, "conf"),
        ("frame_subsampling_factor", "9999999999999999999", "whole number from 1 to 16"),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_sentence(vosk, name, text, sentence):
    (vosk / name).write_text(text)
    if name.endswith("factor"):
        (vosk / "conf/model.conf").unlink()
    with pytest.raises(ConfigError, match=sentence) as refused:
        recommended.read(str(vosk))
    assert "\n" not in str(refused.value)


def on_the_command_line(*arguments: str) -> Config:
    parser = argparse.ArgumentParser()
    _pipeline.add_arguments(parser)
    return _pipeline.preset(parser.parse_args(arguments)).config


def values(config: Config) -> dict[str, settings.Value]:
    return {key: settings.get(config, key) for key in RECOMMENDED}


def test_command_line_file_and_window_agree_and_explicit_settings_win(vosk, tmp_path):
    folder = f"model_directory={vosk}"
    config = on_the_command_line("--set", folder)
    assert values(config) == RECOMMENDED
    assert config.search.lattice is False
    for order in (("--set", "search.beam=12", "--set", folder), ("--set", folder, "--set", "search.beam=12")):
        assert values(on_the_command_line(*order)) == RECOMMENDED | {"search.beam": 12.0}

    file = tmp_path / "mine.toml"
    default = Config().search.beam
    file.write_text(f'title = "mine"\n[config]\nmodel_directory = "{vosk}"\nsearch.beam = {default}\n')
    assert values(presets.from_file(file).config) == RECOMMENDED | {"search.beam": default}

    pipeline = Pipeline()
    assert pipeline.set("model_directory", str(vosk))
    assert settings.replace(pipeline.next, "loop", False) == settings.replace(config, "loop", False)
    sent = settings.from_dict(settings.to_dict(pipeline.next))
    assert sent == pipeline.next


def test_in_the_window_what_a_person_set_stays_and_the_rest_goes_back(vosk):
    pipeline = Pipeline()
    before = pipeline.next
    pipeline.set("search.max_active", 4000)
    seen: dict[str, settings.Value] = {}
    pipeline.changed.connect(seen.__setitem__)
    pipeline.set("model_directory", str(vosk))
    assert values(pipeline.next) == RECOMMENDED | {"search.max_active": 4000}
    assert {key: seen[key] for key in RECOMMENDED if key in seen} == {
        key: value for key, value in RECOMMENDED.items() if key != "search.max_active"
    }
    pipeline.set("search.beam", 11.0)
    pipeline.set("model_directory", "")
    expected = settings.assign(before, {"search.max_active": 4000, "search.beam": 11.0})
    assert pipeline.next == expected
    (vosk / "conf/model.conf").write_text("what")
    sentences: list[str] = []
    pipeline.refused.connect(lambda key, sentence: sentences.append(sentence))
    assert not pipeline.set("model_directory", str(vosk))
    assert "expected an option such as --beam=13, found 'what'" in sentences[0]


def test_the_command_of_a_session_says_what_equals_the_preset_but_not_the_folder(vosk):
    base = presets.load("gmm").config
    config = settings.with_folder(base, str(vosk), base)
    beam = base.search.beam
    again = provenance.differing(settings.replace(config, "search.beam", beam), "gmm")
    assert f"search.beam={settings.value_text(beam)}" in again
    arguments = [word for text in again for word in ("--set", text)]
    made = on_the_command_line("--preset", "gmm", *arguments)
    assert values(made) == values(config) | {"search.beam": beam}


def test_the_settings_of_a_folder_need_neither_numba_nor_torch(vosk):
    code = (
        "import sys; from pipelines.config import recommended\n"
        f"assert recommended.read({str(vosk)!r}).subsampling == 3\n"
        "assert not {'numba', 'torch', 'numpy'} & set(sys.modules)"
    )
    subprocess.run(children.python("-c", code), check=True, timeout=PATIENCE_S)


def test_a_net_scores_by_itself(vosk):
    assert "model" not in recommended.read(str(vosk)).settings
    (vosk / "am/final.mdl").write_bytes(b"\0B<TransitionModel> </TransitionModel> <Nnet3> ")
    assert recommended.read(str(vosk)).settings == RECOMMENDED | recommended.ITS_NET
    chosen = settings.with_folder(Config(), str(vosk), Config())
    assert chosen.model == "dnn"
    assert settings.with_folder(chosen, "", Config()).model == Config().model
