"""Whichever passes run, results stay the same beyond rounding: the models, and random graphs."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.optimization.optimizing import check_same
from tests.optimization.random_graph import RandomGraph

import opkernel
from opkernel.optimization import optimization_passes, optimize_functions, optimize_graph

NAMES = sorted(one.name for one in optimization_passes())
MODELS = [
    "bert_tiny",
    "conv_mix",
    "functional_control_flow",
    "lstm_lowered",
    "mlp",
    "mobilenet_v2",
    "v1_control_flow",
]
CHOICES = [
    *({name} for name in NAMES),
    *(set(NAMES) - {name} for name in NAMES),
    set(NAMES),
]


@pytest.mark.shared
@pytest.mark.parametrize("name", MODELS)
def test_models_give_the_same_with_each_pass_alone_each_off_and_all(name, shared):
    folder = shared / "models" / name
    manifest = json.loads((folder / "manifest.json").read_text())
    with np.load(folder / "case.npz") as case:
        feeds = {feed: case[f"feed:{feed}"] for feed in manifest["feeds"]}
    graph = opkernel.load_graph(folder / "graph.pb")
    with opkernel.Session(graph, optimize=False) as session:
        expected = session.run(manifest["fetches"], feeds)
    for passes in CHOICES:
        with opkernel.Session(graph, optimize=passes) as session:
            for value, want in zip(session.run(manifest["fetches"], feeds), expected, strict=True):
                np.testing.assert_allclose(value, want, rtol=1e-3, atol=1e-5, err_msg=str(passes))


@given(st.data())
@settings(max_examples=60)
def test_random_graphs_give_the_same_with_all_passes_and_with_some(data):
    random = RandomGraph(data)
    for _ in range(data.draw(st.integers(2, 12))):
        random.grow()
    fetches = list(dict.fromkeys([random.made[-1], random.pick(random.made)]))
    x = np.random.default_rng(len(random.made)).normal(size=(2, 3, 3)).astype("f4")
    feeds = {random.x: x, random.p: random.pick([True, False])}
    for passes in (set(NAMES), *data.draw(st.lists(st.sampled_from(CHOICES), max_size=4))):
        check_same(random.b, fetches, feeds, *passes, rtol=1e-4)
    check_written(random.b.graph, fetches, feeds)


def check_written(graph, fetches, feeds):
    """No pass fails, and the graph that is written with its functions gives the same, too."""
    result = optimize_functions(optimize_graph(graph, fetches, list(feeds)))
    written = opkernel.Graph()
    with written.as_default():
        opkernel.import_graph_def(result.as_graph_def(), name="")
    named = {tensor.name: value for tensor, value in feeds.items()}
    with opkernel.Session(graph, optimize=False) as session:
        expected = session.run(fetches, feeds)
    with opkernel.Session(written, optimize=False) as session:
        found = session.run([tensor.name for tensor in fetches], named)
    for value, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-4, atol=1e-4)
