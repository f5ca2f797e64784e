"""Old names of settings mean what they meant, wherever a setting or a session comes in."""

import json
from pathlib import Path

from app.cli import main
from pipelines import config as settings
from pipelines.config import Config, fitting, presets
from pipelines.config.fitting import named_now
from pipelines.run.control import Control
from profiler.session.reader import Session
from tests.each import each

OLD = Path(__file__).parents[1] / "data" / "sessions" / "v1-old-names.asrs"
"""Recorded before the names changed, with each old key and several old values."""
ADDED = {
    *("replay", "repeat_on_change", "gmm.selection.prepare", "placement.graphs"),
    *("audio.channel", "audio.raw", "dnn.context", "ctc.dtype"),
    *("graph.parts", "graph.topology", "graph.alternative_cost", "search.blank_skipping"),
    *(option.key for option in settings.options() if option.key.startswith("stream.")),
}
"""Settings that came after it was recorded."""
GIVEN = {"search.wished_rtf": 0.5, "model.folder": "a-model"}
MEANT = [
    *((old, GIVEN.get(old, True), now, None) for old, now in fitting.KEYS.items()),
    *((key, old, key, now) for key, values in fitting.VALUES.items() for old, now in values.items()),
]


@each("key, value, key_now, value_now", MEANT)
def test_an_old_name_means_the_new_one(key, value, key_now, value_now, tmp_path):
    expected = value if value_now is None else value_now
    assert settings.get(Config(), key_now) != expected, "a default would hide a name not read"
    assert value_now is None or value not in settings.option(key).choices
    text = f"{key}={str(value).lower() if isinstance(value, bool) else value}"
    assert settings.parse_assignment(text) == (key_now, expected)
    assert settings.get(settings.assign(Config(), {key: value}), key_now) == expected
    branch, _, leaf = key.rpartition(".")
    file = tmp_path / "mine.toml"
    file.write_text(f"[config.{branch}]\n{leaf} = {json.dumps(value)}\n")
    assert settings.get(presets.from_file(file).config, key_now) == expected
    control = Control()
    control.config = settings.replace(Config(), "model", "dnn" if branch == "dnn" else "ptm")
    if value != "heads" and settings.option(key_now).live:
        control.ask(key, value)
        (change,) = control.take()
        assert (change.key, change.value) == (key_now, expected)


def test_an_old_switch_stays_off_next_to_what_it_switches():
    both = {"search.governor": False, "search.wished_rtf": 0.2}
    config = settings.assign(Config(), both)
    assert (config.search.adaptive_beam, config.search.target_rtf) == (False, 0.2)


def test_an_old_session_and_one_by_new_names_differ_in_nothing(capsys):
    with Session.open(OLD) as session:
        old = session.configs[-1].tree
    assert (old["search"]["wished_rtf"], old["gmm"]["senones"]) == (0.2, "asked-ci")
    config = settings.from_dict(old)
    assert (config.search.adaptive_beam, config.search.target_rtf) == (True, 0.2)
    assert (config.gmm.senones, config.dnn.senones) == ("active-ci", "active-ahead")
    leaves = named_now(settings.flatten(old))
    now = dict(settings.flatten(settings.to_dict(config)))
    assert now.keys() - leaves.keys() == ADDED
    assert leaves == {key: now[key] for key in leaves}
    assert main.main(["show", str(OLD), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == 1
