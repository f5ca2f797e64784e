"""The cache of graphs: who shares one, who waits, what goes, and what a bad input leaves behind."""

import errno
import json
import os
import subprocess
import sys
import textwrap
import threading
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


def test_models_derived_from_one_directory_share_a_graph():
    config = GraphConfig(vocabulary=100, bigrams=1000)
    tied = model()
    # What a derived model changes: Gaussians, weights, codebooks, checksum; not what a graph sees.
    gaussians = {"means": tied.means[:1], "variances": tied.variances[:1], "weights": tied.weights[:, :1]}
    codebooks = np.arange(tied.n_senones, dtype=np.int32)
    other = replace(tied, kind="continuous", senone_codebook=codebooks, checksum="0" * 64, **gaussians)
    assert recipe_of(config, other) == recipe_of(config, tied)
    assert store.key(recipe_of(config, other)) == store.key(recipe_of(config, tied))


@pytest.mark.slow
def test_two_processes_build_one_graph_once(tmp_path, cache):
    recipe = toy_recipe(tmp_path / "toy")
    code = textwrap.dedent("""
        import json, sys
        from pipelines.search.graph import compile as graphs
        from pipelines.search.graph.recipe import Recipe
        steps = []
        path, graph = graphs.obtain(Recipe(**json.loads(sys.argv[1])), lambda s, f: steps.append(s))
        print(path.name, graph.n_arcs, sum(s.startswith("building graph") for s in steps) > 0)
    """)
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, json.dumps(recipe.as_dict())],
            stdout=subprocess.PIPE,
            text=True,
            cwd=os.getcwd(),
        )
        for _ in range(2)
    ]
    said = [child.communicate(timeout=PATIENCE_S)[0].split() for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert said[0][:2] == said[1][:2]
    assert sorted(words[2] for words in said) == ["False", "True"]
    assert [path.name for path in cache.iterdir()] == [said[0][0]]


def test_who_waits_for_another_can_be_cancelled(tmp_path, cache):
    recipe = toy_recipe(tmp_path / "toy")
    target = store.path_of(recipe)
    reported = []
    with store.workplace(target, lambda: None) as place:
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


def test_cancelled_at_every_step_it_leaves_nothing(tmp_path, cache):
    recipe = toy_recipe(tmp_path / "toy")
    for stage in ("composing", "checking"):
        reached = threading.Event()

        def follow(what, fraction, stage=stage, reached=reached):
            if stage in what:
                reached.set()

        with pytest.raises(Cancelled):
            graphs.obtain(recipe, follow, reached.is_set)
        assert reached.is_set()
        assert list(cache.iterdir()) == []


def test_a_mapped_graph_survives_its_eviction(cache, monkeypatch):
    cache.mkdir(parents=True)
    path, other = cache / "a.kept", cache / "b.kept"
    for file in (path, other):
        save(random_graph(3, all_final=False), file)
    graph = load(path)
    before = graph.arcs.copy()
    monkeypatch.setattr(kept, "LIMIT_BYTES", 10)
    kept.evict(keep=other)
    assert [file.name for file in cache.iterdir()] == ["b.kept"]
    np.testing.assert_array_equal(graph.arcs, before)


def test_loading_maps_and_does_not_copy(tmp_path):
    save(random_graph(3, all_final=False), tmp_path / "g.graph")
    graph = load(tmp_path / "g.graph")
    for array in (graph.states, graph.arcs, graph.final):
        base = array
        while isinstance(base.base, np.ndarray):
            base = base.base
        assert isinstance(base, np.memmap)
        assert not array.flags.writeable


def test_bad_inputs_are_one_sentence_and_leave_nothing(tmp_path, cache):
    folder = tmp_path / "toy"
    recipe = toy_recipe(folder)
    lacking = folder / "lacking.dict"
    lacking.write_text("two T UX\nto T UX\nelsewhere EH L S\n")
    alien = folder / "alien.dict"
    alien.write_text("eins AY N S\n")
    empty = folder / "empty.arpa"
    empty.write_text("\\data\\\nngram 1=2\n\n\\1-grams:\n-99 <s>\n-0.1 </s>\n\n\\end\\\n")
    cases = [
        (replace(recipe, dictionary=str(lacking)), "pronounces 'to', 'two' with phones .* 'UX'"),
        (replace(recipe, dictionary=str(alien)), "pronounces no word of the language model"),
        (replace(recipe, language_model=str(empty), order=1), "which lists none"),
        (replace(recipe, grammar=str(folder / "no.gram")), "cannot be read"),
    ]
    for bad, message in cases:
        with pytest.raises(BadInput, match=message) as caught:
            compile_graph(bad, lambda *_: None)
        assert "\n" not in str(caught.value)
    # What the child refuses comes out of the parent in the same words.
    with pytest.raises(GraphError, match=cases[0][1]):
        graphs.obtain(cases[0][0])
    assert list(cache.iterdir()) == []


def test_settings_reach_the_recipe(tmp_path):
    words = tmp_path / "own.dict"
    write_dictionary(restricted(full_dictionary(), TOY_WORDS), words)
    named = {"language_model": str(tmp_path / "own.arpa"), "dictionary": str(words)}
    config = GraphConfig(vocabulary=9, order=3, bigrams=7, trigrams=5, pruning="count", **named)
    recipe = recipe_of(config, model())
    assert (recipe.vocabulary, recipe.order, recipe.bigrams, recipe.trigrams) == (9, 3, 7, 5)
    assert (recipe.pruning, recipe.dictionary) == ("count", str(words))
    assert recipe.language_model == str(tmp_path / "own.arpa")
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
def test_a_cache_of_somebody_else_does_no_harm(tmp_path, cache, damage):
    """What cannot be kept is built and used all the same, and nothing beyond the cache is touched."""
    recipe = toy_recipe(tmp_path / "toy")
    target = store.path_of(recipe)
    aside = tmp_path / "aside"
    aside.mkdir()
    (aside / "precious").write_text("mine")
    if damage == "file":
        cache.parent.mkdir()
        cache.write_text("")
    else:
        cache.mkdir(parents=True)
        if damage == "link":
            target.symlink_to(aside / "precious")
            target.with_name(f".build-{target.stem}").symlink_to(aside)
        else:
            target.mkdir()
            (target / "x").write_text("")
    path, graph = graphs.obtain(recipe)
    assert graph.n_arcs
    assert path.exists() == (damage != "file")
    assert (aside / "precious").read_text() == "mine"


def test_a_full_disk_is_said_with_the_folder(tmp_path, cache, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(graphs.children, "end_with_parent", lambda: None)
    monkeypatch.setattr(graphs.limits, "lower", lambda **_: None)  # this process goes on
    cache.mkdir(parents=True)
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps(toy_recipe(tmp_path / "toy").as_dict()))
    assert graphs.main([str(tmp_path / "made"), str(recipe)], full) == 2
    (line,) = capsys.readouterr().out.splitlines()
    said = json.loads(line)["error"]
    assert said.startswith(f"No space left on device (the cache folder {cache.parent} has ")
    assert "set ASRSCOPE_CACHE" in said
