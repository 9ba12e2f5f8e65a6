"""Random programs, and models, give on any tasks what they give in one process."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from tests.distributed.cluster.random_placement import place_at_random
from tests.runtime.effects.random_programs import seeded

import opkernel
from opkernel.distributed import LocalCluster

MODELS = Path(__file__).resolve().parents[4] / "shared" / "models"


@pytest.mark.parametrize("tasks", [1, 2, 4])
@pytest.mark.parametrize("seed", range(8))
def test_programs_with_state(seed: int, tasks: int) -> None:
    rng, program = random.Random(seed), seeded(seed, 30)
    expected = program.run(False, "DATAFLOW")
    with LocalCluster({"worker": tasks}) as cluster:
        place_at_random(program.b.graph, cluster.spec.tasks, rng)
        for optimize in (False, True):
            assert program.run(optimize, target=cluster) == expected
            cluster.reset()


def test_programs_are_put_on_several_tasks() -> None:
    """What is compared is worth it."""
    count = 0
    for seed in range(8):
        program = seeded(seed, 30)
        with LocalCluster({"worker": 4}) as cluster:
            count += place_at_random(program.b.graph, cluster.spec.tasks, random.Random(seed))
    assert count > 200


@pytest.mark.shared
@pytest.mark.parametrize("tasks", [1, 2, 4])
@pytest.mark.parametrize(
    "name",
    [
        "mlp",
        "conv_mix",
        "bert_tiny",
        "mobilenet_v2",
        "lstm_lowered",
        "v1_control_flow",
        "functional_control_flow",
    ],
)
def test_models(name: str, tasks: int) -> None:
    """Within 1e-4 of TensorFlow's values, as the models' own page says."""
    manifest = json.loads((MODELS / name / "manifest.json").read_text())
    case = np.load(MODELS / name / "case.npz")
    graph = opkernel.load_graph(MODELS / name / "graph.pb")
    feeds = {key.removeprefix("feed:"): case[key] for key in case if key.startswith("feed:")}
    fetches = [key.removeprefix("fetch:") for key in case if key.startswith("fetch:")]
    assert manifest["kind"] == "graph"
    with LocalCluster({"worker": tasks}) as cluster:
        placed = place_at_random(graph, cluster.spec.tasks, random.Random(tasks))
        assert placed
        with opkernel.Session(graph, target=cluster) as session:
            found = session.run(fetches, feeds)
    for fetch, value in zip(fetches, found, strict=True):
        expected = case[f"fetch:{fetch}"]
        assert value.shape == expected.shape
        bound = 1e-4 * np.maximum(np.abs(expected), 0.1)
        assert (np.abs(value - expected) <= bound).all(), fetch
