"""The cache of graphs: who shares one, who waits, what goes, and what a bad input leaves behind."""

import errno
import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from language_models import restricted, write_dictionary
from search_graphs import TOY_WORDS, full_dictionary, model, random_graph, toy_recipe

from pipelines.config import Graph as GraphConfig
from pipelines.search.graph import cache as store
from pipelines.search.graph import compile as graphs
from pipelines.search.graph import wfst
from pipelines.search.graph.build import compile_graph
from pipelines.search.graph.recipe import recipe_of
from pipelines.search.graph.wfst import GraphError, load, save
from profiler.errors import BadInput, Cancelled
from profiler.files import cache as kept
from tests.waiting import PATIENCE_S


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "graphs"


@pytest.fixture
def recipe(tmp_path):
    return toy_recipe(tmp_path / "toy")


def test_models_derived_from_one_directory_share_a_graph():
    config, tied = GraphConfig(vocabulary=100, bigrams=1000), model()
    # What a derived model changes: Gaussians, weights, codebooks, checksum; not what a graph sees.
    gaussians = {"means": tied.means[:1], "variances": tied.variances[:1], "weights": tied.weights[:, :1]}
    codebooks = np.arange(tied.n_senones, dtype=np.int32)
    other = replace(tied, kind="continuous", senone_codebook=codebooks, checksum="0" * 64, **gaussians)
    assert recipe_of(config, other) == recipe_of(config, tied)


BUILD = """
import json, sys
from pipelines.search.graph import compile as graphs
from pipelines.search.graph.recipe import Recipe
steps = []
path, graph = graphs.obtain(Recipe(**json.loads(sys.argv[1])), lambda s, f: steps.append(s))
print(path.name, graph.n_arcs, sum(s.startswith("building graph") for s in steps) > 0)
"""


@pytest.mark.slow
def test_two_processes_build_one_graph_once(recipe, cache):
    command = [sys.executable, "-c", BUILD, json.dumps(recipe.as_dict())]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [child.communicate(timeout=PATIENCE_S)[0].split() for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert said[0][:2] == said[1][:2]
    assert sorted(words[2] for words in said) == ["False", "True"]
    assert [path.name for path in cache.iterdir()] == [said[0][0]]


def test_who_waits_for_another_can_be_cancelled(recipe, cache):
    reported = []
    with store.workplace(store.path_of(recipe), lambda: None) as place:
        with pytest.raises(Cancelled):
            graphs.obtain(recipe, lambda stage, fraction: reported.append(stage), lambda: bool(reported))
        assert reported == ["waiting for another program that builds this graph"]
        assert place.exists()
    assert list(cache.iterdir()) == []


def test_what_a_killed_build_left_does_no_harm(tmp_path):
    target = tmp_path / "x.graph"
    left = tmp_path / ".build-x"
    (left / "asrscope-x").mkdir(parents=True)
    (left / "graph").write_bytes(b"half")
    with store.workplace(target, lambda: pytest.fail("nobody is building")) as place:
        assert list(place.iterdir()) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stage", ["composing", "checking"])
def test_cancelled_at_a_step_it_leaves_nothing(recipe, cache, stage):
    steps = []
    with pytest.raises(Cancelled):
        graphs.obtain(recipe, lambda what, fraction: steps.append(what), lambda: stage in "".join(steps))
    assert list(cache.iterdir()) == []


def test_a_mapped_graph_survives_its_eviction(cache, monkeypatch):
    cache.mkdir(parents=True)
    path, other = cache / "a.kept", cache / "b.kept"
    for file in (path, other):
        save(random_graph(3, all_final=False), file)
    graph = load(path)
    before = graph.arcs.copy()
    for array in (graph.states, graph.arcs, graph.final):
        base = array
        while isinstance(base.base, np.ndarray):
            base = base.base
        assert isinstance(base, np.memmap)
        assert not array.flags.writeable
    monkeypatch.setattr(kept, "LIMIT_BYTES", 10)
    kept.evict(keep=other)
    assert [file.name for file in cache.iterdir()] == ["b.kept"]
    np.testing.assert_array_equal(graph.arcs, before)


def test_bad_inputs_are_one_sentence_and_leave_nothing(recipe, tmp_path, cache):
    def written(name, text):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    lacking = replace(recipe, dictionary=written("lacking.dict", "two T UX\nto T UX\nelsewhere EH L S\n"))
    empty = "\\data\\\nngram 1=2\n\n\\1-grams:\n-99 <s>\n-0.1 </s>\n\n\\end\\\n"
    cases = [
        (lacking, "pronounces 'to', 'two' with phones .* 'UX'"),
        (replace(recipe, dictionary=written("alien.dict", "eins AY N S\n")), "no word of the language model"),
        (replace(recipe, language_model=written("empty.arpa", empty), order=1), "which lists none"),
        (replace(recipe, grammar=str(tmp_path / "no.gram")), "cannot be read"),
    ]
    for bad, message in cases:
        with pytest.raises(BadInput, match=message) as caught:
            compile_graph(bad, lambda *_: None)
        assert "\n" not in str(caught.value)
    # What the child refuses comes out of the parent in the same words.
    with pytest.raises(GraphError, match=cases[0][1]):
        graphs.obtain(lacking)
    assert list(cache.iterdir()) == []


def test_settings_reach_the_recipe(tmp_path):
    words = tmp_path / "own.dict"
    write_dictionary(restricted(full_dictionary(), TOY_WORDS), words)
    chosen = {"vocabulary": 9, "order": 3, "bigrams": 7, "trigrams": 5, "pruning": "count", "dictionary": str(words)}
    chosen["language_model"] = str(tmp_path / "own.arpa")
    assert chosen.items() <= recipe_of(GraphConfig(**chosen), model()).as_dict().items()
    bigram = recipe_of(GraphConfig(vocabulary=9, bigrams=7, trigrams=5), model())
    assert bigram == recipe_of(GraphConfig(vocabulary=9, bigrams=7, trigrams=6), model())


def test_a_graph_of_another_layout_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "g"
    monkeypatch.setattr(wfst, "VERSION", 1)
    save(random_graph(3, all_final=False), path)
    monkeypatch.undo()
    with pytest.raises(GraphError, match="graph version 1"):
        load(path)
    reported = []
    assert graphs._cached(path, lambda stage, fraction: reported.append(stage)) is None
    assert reported == ["replacing a damaged graph in the cache"]


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["file", "link", "folder"])
def test_a_cache_of_somebody_else_does_no_harm(recipe, tmp_path, cache, damage):
    """What cannot be kept is built and used all the same, and nothing beyond the cache is touched."""
    target, aside = store.path_of(recipe), tmp_path / "aside"
    aside.mkdir()
    (aside / "precious").write_text("mine")
    (cache.parent if damage == "file" else cache).mkdir(parents=True)
    if damage == "file":
        cache.write_text("")
    elif damage == "link":
        target.symlink_to(aside / "precious")
        target.with_name(f".build-{target.stem}").symlink_to(aside)
    else:
        target.mkdir()
        (target / "x").write_text("")
    path, graph = graphs.obtain(recipe)
    assert graph.n_arcs
    assert path.exists() == (damage != "file")
    assert (aside / "precious").read_text() == "mine"


def test_a_full_disk_is_said_with_the_folder(recipe, tmp_path, cache, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(graphs.children, "end_with_parent", lambda: None)
    monkeypatch.setattr(graphs.limits, "lower", lambda **_: None)  # this process goes on
    cache.mkdir(parents=True)
    given = tmp_path / "recipe.json"
    given.write_text(json.dumps(recipe.as_dict()))
    assert graphs.main([str(tmp_path / "made"), str(given)], full) == 2
    (line,) = capsys.readouterr().out.splitlines()
    said = json.loads(line)["error"]
    assert said.startswith(f"No space left on device (the cache folder {cache.parent} has ")
    assert "set ASRSCOPE_CACHE" in said


@pytest.mark.slow
def test_the_second_time_comes_from_the_cache(recipe, cache):
    steps, again = [], []
    path, _ = graphs.obtain(recipe, lambda *step: steps.append(step))
    assert [p.name for p in cache.iterdir()] == [path.name]
    stages, fractions = zip(*steps, strict=True)
    assert len(steps) > 8
    assert list(fractions) == sorted(fractions)
    assert stages[0].startswith("building graph: ")
    assert graphs.obtain(recipe, lambda *step: again.append(step))[0] == path
    assert again == []
    for change in ({"bigrams": 5}, {"transition_scale": 0.9}):
        assert store.key(replace(recipe, **change)) != store.key(recipe)
    with open(recipe.dictionary, "a") as more:
        more.write("yes Y EH S\n")
    assert store.key(recipe) not in path.name


def test_the_child_ends_with_its_parent(recipe, tmp_path):
    given, out = tmp_path / "recipe.json", tmp_path / "out"
    given.write_text(json.dumps(recipe.as_dict()))
    command = [sys.executable, "-m", "pipelines.search.graph.compile", str(out), str(given)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        # As if the parent had been killed: its end of the pipe closes.
        child.stdin.close()
        assert child.wait(timeout=PATIENCE_S) == 3
    assert not out.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="no limit on memory")
def test_a_graph_too_large_to_compile_is_refused_with_what_it_may_take(recipe, cache, monkeypatch):
    code = (
        "import psutil, pipelines.search.graph.compile as c;"
        "c.MEMORY_BYTES = psutil.Process().memory_info().vms + (12 << 20); raise SystemExit(c.main())"
    )
    started = graphs.children.python
    monkeypatch.setattr(graphs.children, "python", lambda _m, _name, *words: started("-c", code, *words))
    with pytest.raises(GraphError, match=r"over 4\.3 GB to compile; fewer words \(graph"):
        graphs.obtain(recipe)
    assert list(cache.iterdir()) == []


def test_old_build_folders_are_swept(recipe, cache):
    cache.mkdir(parents=True)
    old, new = cache / ".build-old", cache / ".build-new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "graph").write_bytes(b"half")
    ago = time.time() - 2 * kept.STALE_S
    os.utime(old, (ago, ago))
    graphs.obtain(recipe)
    assert not old.exists()
    assert new.exists()
