"""The settings tree: what is written once must come out the same everywhere."""

import datetime
import functools
import itertools
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli import main
from pipelines import config as settings
from pipelines.config import Config, ConfigError, fitting, presets
from pipelines.config.presets import Preset
from pipelines.run.control import Control
from profiler.plain import printable
from profiler.session.reader import Session
from tests.each import each
from tests.pipelines.refusing import refusal


@each("option", settings.options())
def test_every_setting_explains_itself(option):
    assert option.title
    assert option.help.endswith(".")
    assert option.layer
    if option.type in ("int", "float"):
        assert option.minimum <= option.default <= option.maximum
    if option.type == "choice":
        assert option.default in option.choices
    if option.switched_by:
        assert settings.option(option.switched_by).type == "bool"
    assert set(option.choices_when) <= {str(choice) for choice in option.choices}
    for condition in (option.when, *itertools.chain(*option.choices_when.values())):
        for key, wanted in condition.items():
            for value in wanted:
                settings.replace(Config(), key, value)


def values(option: settings.Option) -> st.SearchStrategy[settings.Value]:
    if option.type == "bool":
        return st.booleans()
    if option.type == "choice":
        return st.sampled_from(option.choices)
    if option.type == "text":
        return st.text("abc/._-", max_size=8)
    if option.type == "int":
        return st.integers(int(option.minimum), int(option.maximum))
    return st.floats(option.minimum, option.maximum)


@given(st.data())
def test_a_configuration_survives_text_and_storage(data):
    config = Config()
    for option in settings.options():
        value = data.draw(values(option), label=option.key)
        config = settings.replace(config, option.key, value)
        assert settings.get(config, option.key) == value
        text = f"{option.key}={value}"
        assert settings.parse_assignment(text) == (option.key, value)
    assert settings.from_dict(settings.to_dict(config)) == config


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("search.bean=3", "did you mean search.beam?"),
        ("graph.lm=my.lm", "did you mean graph.language_model?"),
        ("lm=my.lm", "did you mean graph.language_model?"),
        ("search.grammar=x", "did you mean graph.grammar?"),
        ("nonsense", "key=value"),
        ("=3", "key=value"),
        ("search.beam=fast", "a number from 1 to 40"),
        ("search.beam=nan", "a number from 1 to 40"),
        ("frames.skip=5", "a whole number from 1 to 4"),
        ("gmm.selection.enabled=perhaps", "true or false"),
        ("gmm.selection.method=magic", "vq-table or clusters"),
        ("gmm.selection=on", "no setting called"),
    ],
)
def test_a_bad_assignment_is_refused_in_one_sentence(text, says):
    with pytest.raises(ConfigError) as refusal:
        settings.parse_assignment(text)
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_choosing_a_method_turns_its_switch_on():
    assert settings.assign(Config(), {"gmm.selection.top_n": 8}).gmm.selection.enabled
    off = settings.assign(Config(), {"gmm.selection.top_n": 8, "gmm.selection.enabled": False})
    assert not off.gmm.selection.enabled
    assert not settings.assign(Config(), {"gmm.selection.method": "none"}).gmm.selection.enabled


def test_a_preset_says_only_what_differs():
    """A default that changes must not be held back by a preset that repeats the old one."""
    for name in presets.names():
        tree = tomllib.loads(presets.assets.path("presets", f"{name}.toml").read_text())
        for key, value in settings.flatten(tree["config"]):
            if key != "model":
                assert settings.option(key).default != value


def test_what_cannot_act_with_the_others_says_why():
    assert "gmm.senones = ci" in settings.unavailable_reason(Config(), "gmm.ci_cap")
    assert settings.unavailable_reason(settings.replace(Config(), "gmm.senones", "ci"), "gmm.ci_cap") is None


PUMPED = {"manual": {"fuel": ("oil",)}, "electric": ({"fuel": ("oil",)}, {"size": ("small",), "place": ("dry",)})}


class Engine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fuel: Annotated[Literal["coal", "oil"], settings.setting("Fuel", "What burns.")] = "coal"
    size: Annotated[Literal["small", "big"], settings.setting("Size", "How big.")] = "big"
    place: Annotated[Literal["dry", "wet"], settings.setting("Place", "Where.")] = "wet"
    pump: Annotated[
        Literal["none", "manual", "electric"], settings.setting("Pump", "What pumps.", choices_when=PUMPED)
    ] = "electric"


def test_a_choice_that_cannot_act_is_refused_and_of_several_conditions_one_is_enough():
    for sound in (Engine(fuel="oil"), Engine(size="small", place="dry"), Engine(pump="none")):
        assert settings.check(sound) is sound
    refusal("pump=manual acts only with fuel = oil", settings.check, Engine(pump="manual"))
    said = refusal("pump=electric", settings.check, Engine(size="small"))
    assert said == "pump=electric acts only with fuel = oil (fuel), or with place = dry (place)."


def deep(levels: int) -> list[Any]:
    return functools.reduce(lambda inner, _: [inner], range(levels), [])


STRANGE: list[Any] = [
    *(None, True, False, 0, -1, 2, 10**20, 10**400),
    *(1.5, 3.0, -0.0, 1e308, float("nan"), float("inf"), float("-inf")),
    *("", "x", "true", "none", "3", "9" * 6000, "\0", "a\0b", "\udcff", "\x1b[31m", "x" * 5000, "²", "1_000"),
    *([], [1], ["vq"], {}, {"a": 1}, {"a": {"b": [{}]}}, {"": {"": None}}, b"bytes"),
    *(datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29), datetime.time(1)),
]
UNSHOWN: list[Any] = [-(10**6000), deep(5000)]  # what Python cannot write down


def nodes(tree: dict[str, Any], place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in tree.items():
        yield (*place, name)
        if isinstance(value, dict):
            yield from nodes(value, (*place, name))


def with_node(tree: dict[str, Any], place: tuple[str, ...], value: Any) -> dict[str, Any]:
    head, *rest = place
    return {**tree, head: with_node(tree[head], tuple(rest), value) if rest else value}


def reads_or_refuses(tree: Any) -> Config | None:
    """The configuration, all of its values of their types, or None where one short sentence refused it."""
    try:
        config = settings.from_dict(tree, "here")
    except ConfigError as refusal:
        said = str(refusal)
        assert len(said) < 400
        assert printable(said) == said
        assert said.startswith("here: ")
        assert said.endswith(".")
        return None
    assert msgspec.convert(settings.to_dict(config), Config) == config
    return config


@each("place", list(nodes(settings.to_dict(Config()))))
def test_any_node_of_any_other_type_is_read_or_refused_in_a_sentence(place):
    whole = settings.to_dict(Config())
    key = ".".join(place)
    for value in STRANGE + UNSHOWN:
        config = reads_or_refuses(with_node(whole, place, value))
        if config is not None and any(option.key == key for option in settings.options()):
            assert type(value) in (str, bool, int, float)
            assert type(settings.get(config, key)) is type(settings.get(Config(), key))


def test_any_tree_is_read_or_refused_in_a_sentence():
    for tree in (*STRANGE, *UNSHOWN, {"gmm.senones": "ci"}, {"a.b": {"c.d": 1}}, {"search": {"gmm": {}}}):
        reads_or_refuses(tree)


@each(
    "content, says",
    [
        ("[config]\nbeam = 3", "no setting called 'beam'"),
        ("[config.search]\nbeam = 300.0", "search.beam must be"),
        ("config = 3", "a table [config]"),
        ("colour = 1", "colour"),
        ("[config", "this is not TOML"),
        (b"\xff\xfe\x00", "not UTF-16"),
        ("a = " + "[" * 5000 + "]" * 5000, "nested more than"),
        ("[config]\nblock = " + "9" * 6000, "not TOML"),
        ("[config]\nblock = " + "9" * 400, "bits"),
        ("[config]\nblock = [1]", "block must be a whole number from 1 to 256, not a list."),
        ("[config.graph]\ndictionary = 'a'\ngrammar = \"a\\u0000b\"", "none of them NUL"),
        ("title = 3\n[config]", "title must be a text"),
        ('step = "first"\n[config]', "step must be"),
        (f"'{'x' * 3000}' = 1", "expected title"),
        ("[config]\n'" + "y" * 100_000 + "' = 1", "no setting called"),
    ],
)
def test_a_bad_preset_file_is_refused_in_a_short_sentence(tmp_path, content, says):
    file = tmp_path / "mine.toml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError) as refusal:
        presets.from_file(file)
    assert says in str(refusal.value)
    assert str(file) in str(refusal.value)
    assert len(str(refusal.value)) < 600


LADDER, SMALLER = "The ladder", "Compressed nets"


def differing(preset: Preset) -> list[settings.Option]:
    before = presets.load(preset.after).config
    return [o for o in settings.options() if settings.get(preset.config, o.key) != settings.get(before, o.key)]


def test_groups_come_after_what_stands_alone_and_by_their_steps():
    alone = presets.names("")
    assert alone == ["demo", presets.DEFAULT, "gmm-selected", "gmm-continuous", "dnn", "ctc"]
    assert presets.names() == [*alone, *(name for group in presets.groups() for name in presets.names(group))]
    for group in presets.groups():
        steps = [presets.load(name).step for name in presets.names(group)]
        assert steps == list(range(1, len(steps) + 1))
    assert presets.groups() == ["More mixtures", "Words and grammars", "CTC nets", SMALLER, LADDER]
    assert len(presets.names(LADDER)) == 7


@each("name", presets.names(LADDER) + presets.names(SMALLER))
def test_a_step_can_be_run_and_says_what_it_changes(name):
    preset = presets.load(name)
    assert settings.check(preset.config) is preset.config
    if preset.after:
        changed = differing(preset)
        assert changed
        # A change that does nothing beside the other settings is no step.
        assert all(settings.unavailable_reason(preset.config, option.key) is None for option in changed)


def test_each_rung_of_the_ladder_is_one_switch_thrown_while_running():
    rungs = [presets.load(name) for name in presets.names(LADDER) if name.startswith("ladder-")]
    assert [rung.name.split("-")[1] for rung in rungs] == list("1234567")
    assert rungs[0].after == ""
    for before, rung in itertools.pairwise(rungs):
        assert rung.after == before.name
        (changed,) = differing(rung)
        assert changed.live


def test_a_file_of_ones_own_may_belong_to_a_group(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('group = "Mine"\nstep = 2\nafter = "gmm"\n[config]\nblock = 4\n')
    preset = presets.from_file(file)
    assert (preset.group, preset.step, preset.after) == ("Mine", 2, "gmm")
    assert preset.config.block == 4
    assert "mine" not in presets.names()


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
    leaves = fitting.named_now(settings.flatten(old))
    now = dict(settings.flatten(settings.to_dict(config)))
    assert now.keys() - leaves.keys() == ADDED
    assert leaves == {key: now[key] for key in leaves}
    assert main.main(["show", str(OLD), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == 1
