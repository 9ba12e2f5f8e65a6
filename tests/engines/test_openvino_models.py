"""Models that OpenVINO computes as far as it takes their operations, against the answers that TensorFlow recorded."""

import json

import numpy as np
import pytest
from tests.engines.clusters import run_in_clusters

import opkernel
from opkernel.engines.openvino import OpenVinoEngine
from opkernel.optimization import optimize_graph

pytest.importorskip("openvino")
pytestmark = pytest.mark.shared

FEWEST = {"mlp": 14, "mobilenet_v2": 700, "conv_mix": 50, "bert_tiny": 100}
"""The operations that clusters have at least, before the graph is optimised."""


@pytest.mark.parametrize("is_optimised", [False, True])
@pytest.mark.parametrize("name", FEWEST)
def test_a_model_gives_the_answers_of_tensorflow(shared, name, is_optimised):
    folder = shared / "models" / name
    manifest = json.loads((folder / "manifest.json").read_text())
    graph = opkernel.load_graph(folder / "graph.pb")
    feeds, fetches = (
        [graph.get_tensor_by_name(one) for one in manifest[which]] for which in ("feeds", "fetches")
    )
    if is_optimised:
        optimised = optimize_graph(graph, fetches, feeds)
        feeds, fetches = optimised.feeds, optimised.fetches
    with np.load(folder / "case.npz") as stored:
        given = [stored[f"feed:{one}"] for one in manifest["feeds"]]
        wanted = [stored[f"fetch:{one}"] for one in manifest["fetches"]]
    values = dict(zip(feeds, given, strict=True))
    found, sizes = run_in_clusters(OpenVinoEngine(), fetches, values)
    assert is_optimised or sum(sizes) >= FEWEST[name]
    for value, answer in zip(found, wanted, strict=True):
        assert value.dtype == answer.dtype
        atol = 1e-4 * max(np.abs(answer).max(), 0.1)
        np.testing.assert_allclose(value, answer, rtol=0, atol=atol)
