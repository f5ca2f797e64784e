"""Ids of utterances, and what is said of transcripts, as `run` tells them and other commands take them."""

import shutil

import pytest
from command_line import answer, here, printed, refused

QUICK = ["--preset", "gmm-quick"]
SAID = "yes of course"


@pytest.fixture
def corpus(bundled_speech, tmp_path):
    """Three files of one speaker each, two of the same name."""
    for name in ("spk1/001.flac", "spk2/001.flac", "spk2/cafe\u0301.flac"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(bundled_speech / "08-kal16-short.flac", tmp_path / name)
    return tmp_path


def test_ids_are_distinct_and_can_be_selected(corpus, short_runs):
    table, out = corpus / "t.csv", corpus / "run.asrs"
    rows = ("spk1/001.flac", "spk2/caf\u00e9.flac", "gone.flac")
    table.write_text("".join(["path,sentence\n", *(f'{row},"{SAID}"\n' for row in rows)]))
    audio = (corpus / "spk1", corpus / "spk2")
    tree = answer("run", *QUICK, "--audio", *audio, "--transcripts", table, "--out", out)
    ids = ["spk1/001", "spk2/001", "caf\u00e9"]
    assert [u["id"] for u in tree["utterances"]] == ids
    assert [u["reference"] for u in tree["utterances"]] == [SAID, None, SAID]
    assert (tree["wer_errors"], tree["wer_words"]) == (0, 6)
    assert tree["transcribed"] == {"utterances": 2, "of": 3}
    note = "1 row of the transcripts names no file that is decoded: gone.flac"
    assert tree["notes"] == [note]
    text = here("show", out).stdout
    assert "0 errors in 6 words; 2 of 3 utterances have a transcript" in text
    assert f"note: {note}" in text
    picture = ("export", out, "--svg", corpus / "p.svg", "--view", "words", "--select")
    for name in ids:
        printed(*picture, name)
        assert name in refused(*picture, "001")


def test_a_reference_without_spaces_has_a_character_error_rate(corpus, short_runs):
    table = corpus / "t.tsv"
    table.write_text(f"file\ttranscript\nspk1/001.flac\t\u662f\u7684\u5f53\u7136\nspk2/001.flac\t{SAID}\n")
    out = corpus / "run.asrs"
    tree = answer("run", *QUICK, "--transcripts", table, "--out", out)
    letters = len(SAID.replace(" ", ""))
    keys = ("wer_errors", "wer_words", "cer_errors", "cer_characters")
    assert [tree[key] for key in keys] == [letters, 7, letters, 4]
    assert tree["cer"] == letters / 4
    assert [u["cer_characters"] for u in tree["utterances"]] == [4, None]
    text = here("show", out).stdout
    assert f"{letters} errors in 7 words and characters (4 of them, where the reference has no spaces" in text
    one = here("show", out, "--select", tree["utterances"][0]["id"]).stdout
    assert f"CER 275.0%: {letters} errors in 4 characters (the reference has no spaces between words)" in one


def test_parts_of_a_file_are_utterances(corpus):
    (corpus / "wav.scp").write_text("rec spk1/001.flac\n")
    (corpus / "segments").write_text("u1 rec 0 -1\n")
    (corpus / "text").write_text(f"u1 {SAID}\nu2 no\n")
    tree = answer("run", *QUICK, "--no-profile", "--transcripts", corpus / "text")
    (row,) = tree["utterances"]
    assert (row["id"], row["wer"], row["reference"]) == ("u1", 0.0, SAID)
    assert tree["notes"] == ["1 row of the transcripts names no file that is decoded: u2"]
