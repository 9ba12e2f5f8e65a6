"""Functions of modules and of loaded models become graphs with constants."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.interop.saved_modules import Dense, Many, X

import opkernel
from opkernel import Session, TensorSpec, freeze_function
from opkernel.errors import FailedPreconditionError, UnimplementedError

load: Any = opkernel.load


def answers(traced: Any, path: Path, *arguments: Any) -> Any:
    """What the frozen function gives when it is read from a file."""
    opkernel.save_graph(freeze_function(traced), path / "frozen.pb")
    graph = opkernel.load_graph(path / "frozen.pb")
    assert {"VarHandleOp", "ReadVariableOp"}.isdisjoint(op.type for op in graph.get_operations())
    feeds = dict(zip([f"{one.op.name}:0" for one in traced.inputs], arguments, strict=False))
    with Session(graph) as session:
        return session.run([one.name for one in traced.outputs], feeds)


def test_a_signature_of_a_loaded_model_is_frozen(tmp_path: Path) -> None:
    opkernel.save(Dense(), tmp_path / "model")
    model = load(tmp_path / "model")
    model.bias.assign([1, 2])
    signature = model.signatures["serving_default"]
    traced = opkernel.function(signature).get_concrete_function(**signature.inputs)
    assert answers(traced, tmp_path, X)[0].tolist() == [[4, 5], [13, 14]]


def test_a_function_with_branches_and_loops_is_frozen(tmp_path: Path) -> None:
    module = Many().traced()
    traced = module.control.get_concrete_function(
        TensorSpec([None, 3], opkernel.float32, "x"), TensorSpec([], opkernel.int32, "turns")
    )
    expected = module.control(X, np.int32(3))
    module.layers[0].kernel.assign(np.zeros((3, 3), np.float32))
    now = module.control(X, np.int32(3))
    assert not np.array_equal(now, expected)
    np.testing.assert_array_equal(answers(traced, tmp_path, X, np.int32(3))[0], now)


def test_a_function_that_changes_a_variable_is_refused() -> None:
    step = Many().step.get_concrete_function()
    with pytest.raises(FailedPreconditionError, match="count"):
        freeze_function(step)


@pytest.mark.tensorflow
def test_a_function_that_takes_a_table_is_refused(tf: Any, tmp_path: Path) -> None:
    model = tf.Module()
    model.table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a"], [1]), default_value=-1
    )
    model.look_up = tf.function(
        lambda key: model.table.lookup(key), [tf.TensorSpec([None], tf.string)]
    )
    tf.saved_model.save(model, str(tmp_path / "model"))
    look_up = load(tmp_path / "model").look_up.concrete_functions[0]
    with pytest.raises(UnimplementedError, match="a table or another resource"):
        freeze_function(look_up)
