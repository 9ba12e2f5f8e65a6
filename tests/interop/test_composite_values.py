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
from opkernel.interop.structured_value import CompositeSpec

FLOATS, INTS = TensorSpec([None], opkernel.float32), TensorSpec([None], opkernel.int64)
SLICES = CompositeSpec("INDEXED_SLICES_SPEC", ("values", "indices"), [FLOATS, INTS])
SPARSE = CompositeSpec("SPARSE_TENSOR_SPEC", ("indices", "values", "dense_shape"), [INTS] * 3)
DEEP = CompositeSpec(
    "RAGGED_TENSOR_SPEC", ("flat_values", "row_splits_0", "row_splits_1"), [FLOATS, INTS, INTS]
)


def test_other_values_are_tuples_with_names() -> None:
    value = SLICES.value(["v", "i"])
    values, indices = value
    assert (values, indices) == (value.values, value.indices)
    assert repr(value) == "<indexed slices values='v', indices='i'>"
    for again in (copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert (again.values, again.indices) == ("v", "i")
    with pytest.raises(AttributeError, match="indexed slices has no 'row', but values, indices"):
        _ = value.row


def test_sparse_and_ragged_values_are_those_of_opkernel() -> None:
    assert SPARSE.value("ivs") == opkernel.sparse.SparseTensor("i", "v", "s")
    ragged = opkernel.ragged.RaggedTensor
    value = DEEP.value(["flat", "outer", "inner"])
    assert value == ragged(ragged("flat", "inner"), "outer")
    assert DEEP.parts(value) == ("flat", "outer", "inner")
    for other in (ragged("flat", "outer"), SPARSE.value("ivs")):
        assert DEEP.parts(other) is None


def test_results_are_taken_as_inputs(sample: Callable[..., Path]) -> None:
    model: Any = opkernel.load(sample("composite"))
    rows = model.double((np.array([1, 2, 3], np.float32), np.array([0, 2, 3], np.int64)))
    assert (rows.values.tolist(), rows.row_splits.tolist()) == ([2, 4, 6], [0, 2, 3])
    by_name = SimpleNamespace(flat_values=rows.values, row_splits=rows.row_splits)
    for given in (rows, tuple(rows), by_name):
        assert model.double(given).values.tolist() == [4, 8, 12]


def test_rows_of_rows_are_taken_and_given(sample: Callable[..., Path]) -> None:
    model: Any = opkernel.load(sample("composite"))
    rows = [[[1], []], [[2, 3]]]
    found, outer = model.deep(opkernel.ragged.constant(rows, opkernel.int32))
    assert (found.to_list(), outer.tolist()) == (rows, [0, 2, 3])


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
