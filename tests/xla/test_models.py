"""Whole models as programs, against the answers that TensorFlow recorded."""

import json

import numpy as np
import pytest

import opkernel
from opkernel.types import as_dtype
from opkernel.xla import XlaArgument, XlaCompiler

pytestmark = [pytest.mark.jax, pytest.mark.shared]


def compiled_model(folder):
    """The program of a frozen graph, with its feeds as parameters; their values, and the answers.

    Integers are known at compile time: one says how long a TensorArray is.
    """
    manifest = json.loads((folder / "manifest.json").read_text())
    with np.load(folder / "case.npz") as stored:
        given = [stored[f"feed:{name}"] for name in manifest["feeds"]]
        wanted = [stored[f"fetch:{name}"] for name in manifest["fetches"]]
    graph = opkernel.load_graph(folder / "graph.pb")
    feeds, fetches = (
        [graph.get_tensor_by_name(name) for name in manifest[which]]
        for which in ("feeds", "fetches")
    )
    arguments = [
        XlaArgument.of_constant(one)
        if one.dtype.kind == "i"
        else XlaArgument.parameter(as_dtype(one.dtype), one.shape)
        for one in given
    ]
    program = XlaCompiler().compile_graph(graph, feeds, fetches, arguments)
    return program, given, wanted


MODELS = ["bert_tiny", "conv_mix", "functional_control_flow", "lstm_lowered", "mlp", "mobilenet_v2"]


@pytest.mark.parametrize("name", [*MODELS, "v1_control_flow"])
def test_a_model_gives_the_answers_of_tensorflow(shared, name):
    program, given, wanted = compiled_model(shared / "models" / name)
    found, _ = program.run(given)
    for value, answer in zip(found, wanted, strict=True):
        assert value.dtype == answer.dtype
        atol = 1e-4 * max(np.abs(answer).max(), 0.1)
        np.testing.assert_allclose(value, answer, rtol=0, atol=atol)
