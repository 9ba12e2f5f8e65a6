"""The shapes of real models agree with those of what TensorFlow computed with them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkernel.graph import GraphShapes, load_graph
from opkernel.types import TensorShape

pytestmark = pytest.mark.shared

STRAIGHT = ["mlp", "conv_mix", "mobilenet_v2", "bert_tiny"]
WITH_LOOPS = ["lstm_lowered", "v1_control_flow", "functional_control_flow"]


def infer(folder: Path, *, with_inputs: bool) -> tuple[GraphShapes, dict[str, TensorShape]]:
    """The shapes of a model, and those of its recorded outputs by tensor."""
    with np.load(folder / "case.npz") as case:
        shapes = {name: case[name].shape for name in case.files}
    manifest = json.loads((folder / "manifest.json").read_text())
    inputs: dict[str, Any] = {name: shapes[f"feed:{name}"] for name in manifest["feeds"]}
    graph = load_graph(folder / "graph.pb", allow_unregistered=True)
    outputs = {name: TensorShape(shapes[f"fetch:{name}"]) for name in manifest["fetches"]}
    return graph.infer_shapes(inputs if with_inputs else None), outputs


@pytest.mark.parametrize("with_inputs", [False, True])
@pytest.mark.parametrize("model", [*STRAIGHT, *WITH_LOOPS])
def test_outputs_have_the_shapes_that_were_inferred(
    shared: Path, model: str, with_inputs: bool
) -> None:
    shapes, outputs = infer(shared / "models" / model, with_inputs=with_inputs)
    for name, actual in outputs.items():
        assert shapes[name].is_compatible_with(actual), name


@pytest.mark.parametrize("model", STRAIGHT)
def test_with_the_shapes_of_the_inputs_all_are_known(shared: Path, model: str) -> None:
    shapes, outputs = infer(shared / "models" / model, with_inputs=True)
    assert shapes.num_known > 0.99 * len(shapes)
    for name, actual in outputs.items():
        assert shapes[name].as_list() == actual.as_list()


@pytest.mark.parametrize(
    ("model", "output", "expected"),
    [
        ("v1_control_flow", "y:0", [None, 3]),
        ("lstm_lowered", "Identity:0", [None, 3]),
        ("functional_control_flow", "Identity:0", [None, 4]),
    ],
)
def test_loops_keep_what_they_do_not_change(
    shared: Path, model: str, output: str, expected: list[int | None]
) -> None:
    shapes, _ = infer(shared / "models" / model, with_inputs=False)
    assert shapes[output].as_list() == expected


@pytest.mark.parametrize("model", [*STRAIGHT, *WITH_LOOPS])
def test_every_unknown_shape_has_a_source(shared: Path, model: str) -> None:
    shapes, _ = infer(shared / "models" / model, with_inputs=False)
    for tensor, shape in shapes.items():
        assert bool(shapes.why_unknown(tensor)) == (not shape.is_fully_defined()), tensor
