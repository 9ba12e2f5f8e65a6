"""Ragged and sparse tensors that functions and signatures of models take and give."""

import copy
import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import TensorSpec
from opkernel.interop.structured_value import CompositeSpec, CompositeValue

FLOATS, INTS = TensorSpec([None], opkernel.float32), TensorSpec([None], opkernel.int64)
SPARSE = CompositeSpec("SPARSE_TENSOR_SPEC", ("indices", "values", "dense_shape"), [INTS] * 3)
DEEP = CompositeSpec(
    "RAGGED_TENSOR_SPEC", ("flat_values", "row_splits_0", "row_splits_1"), [FLOATS, INTS, INTS]
)


def test_sparse_values_are_tuples_with_names() -> None:
    value = CompositeValue(SPARSE, ["i", "v", "s"])
    indices, values, shape = value
    assert (indices, values, shape) == (value.indices, value.values, value.dense_shape)
    assert repr(value) == "<sparse tensor indices='i', values='v', dense_shape='s'>"
    for again in (copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert (again.values, again.dense_shape) == ("v", "s")
    with pytest.raises(AttributeError, match="sparse tensor has no 'row', but indices, values"):
        _ = value.row


def test_ragged_values_have_tensorflows_names() -> None:
    value = CompositeValue(DEEP, ["flat", "outer", "inner"])
    assert (value.flat_values, value.row_splits) == ("flat", "outer")
    assert value.nested_row_splits == ("outer", "inner")
    assert (value.values.values, value.values.row_splits) == ("flat", "inner")


def test_results_are_taken_as_inputs(sample: Callable[..., Path]) -> None:
    model: Any = opkernel.load(sample("composite"))
    rows = model.double((np.array([1, 2, 3], np.float32), np.array([0, 2, 3], np.int64)))
    assert (rows.values.tolist(), rows.row_splits.tolist()) == ([2, 4, 6], [0, 2, 3])
    by_name = SimpleNamespace(flat_values=rows.values, row_splits=rows.row_splits)
    for given in (rows, tuple(rows), by_name):
        assert model.double(given).values.tolist() == [4, 8, 12]


def test_arrays_keep_their_type_where_no_input_signature_was_saved(
    sample: Callable[..., Path],
) -> None:
    model: Any = opkernel.load(sample("polymorphic"))
    expected = model.f(np.array([1, 2], np.float32), 2, "plain").tolist()
    assert model.f([1.0, 2.0], 2, "plain").tolist() == expected
    for other in (
        np.array([1, 2], np.float64),
        np.array([1, 2], np.int64),
        np.array([True, False]),
    ):
        with pytest.raises(ValueError, match="saved for other arguments than"):
            model.f(other, 2, "plain")


class _Plain(opkernel.Module):
    def __call__(self, x: Any) -> Any:
        return x


class _Traced(opkernel.Module):
    @opkernel.function
    def __call__(self, x: Any) -> Any:
        return x * 2.0


class _WithSignature(opkernel.Module):
    @opkernel.function(input_signature=[FLOATS])
    def __call__(self, x: Any) -> Any:
        return x * 2.0


def test_input_signatures_are_saved(tmp_path: Path) -> None:
    opkernel.save(_WithSignature(), tmp_path / "model")
    model: Any = opkernel.load(tmp_path / "model")
    assert model(np.array([1, 2], np.int64)).tolist() == [2, 4]
    with pytest.raises(TypeError, match=r"no input 'y'; its inputs are: x: float32\[\?\]"):
        model.signatures["serving_default"](y=1)
    writer = model.meta_graph.meta_info_def.tensorflow_git_version
    assert writer == f"opkernel {opkernel.__version__}"
    assert "<td>x</td><td>float32</td><td>[?]</td>" in model._repr_html_()


@pytest.mark.parametrize(
    ("module", "why"),
    [
        (_Plain(), "_Plain.__call__ is not saved, and the model has no signature: it is a plain"),
        (_Traced(), "it has no input signature and was never called. Decorate it with"),
        (_WithSignature(), ""),
    ],
)
def test_a_lost_call_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, module: opkernel.Module, why: str
) -> None:
    with caplog.at_level(logging.WARNING, "opkernel"):
        opkernel.save(module, tmp_path / "model")
    assert why in caplog.text
    assert bool(caplog.messages) is bool(why)
