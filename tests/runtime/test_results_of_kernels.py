"""Results of all kernels are the caller's own; those that are his already are not copied."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.runtime.array_owners import (
    Call,
    X,
    check_apart,
    check_equal,
    own,
    write_over,
)
from tests.testing.test_catalogue import LEAVES_OUTPUTS, as_array, recorded
from tests.testing.test_catalogue import session as catalogue

import opkernel
from opkernel import raw_ops
from opkernel.graph import Graph, Operation
from opkernel.graph.tracing.nested_structure import flatten
from opkernel.kernel import is_recycled
from opkernel.opdef import unknown_shape
from opkernel.ops.catalogue import MODULE_OF_OP
from opkernel.runtime.calls.eager import execute
from opkernel.types import DataType, tensor_to_proto


def test_what_a_graph_was_made_of_may_be_changed() -> None:
    value = own(X)

    @opkernel.function
    def function() -> Any:
        return raw_ops.Identity(input=value)

    traced = function()
    with Graph().as_default() as graph:
        tensor = opkernel.constant(value)
    at_once = opkernel.constant(value)
    write_over([value, traced])
    assert at_once.flags.writeable
    with opkernel.Session(graph) as session:
        check_equal([session.run(tensor), function(), at_once], [X] * 3, "a constant")


class _GivesNew(opkernel.OpKernel):
    addresses: ClassVar[list[int]] = []

    def compute(self, ctx: opkernel.OpKernelContext) -> None:
        new = np.ones(_SIZE, np.float32)
        self.addresses.append(address(new))
        ctx.set_output(0, new if self.name.startswith("whole") else new.reshape(4, -1))


_SIZE = 4 << 20


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("executor_type", ["", "DATAFLOW"])
@pytest.mark.parametrize("name", ["whole", "view"])
def test_new_results_are_not_copied(name: str, executor_type: str) -> None:
    op = opkernel.register_op(
        "GivesNew", outputs=["y: float"], shape_fn=unknown_shape, is_stateful=True
    )
    opkernel.register_kernel(op, device="CPU")(_GivesNew)
    with Graph().as_default() as graph:
        tensors = [raw_ops.GivesNew(name=f"{name}{i}") for i in range(2)]  # type: ignore[attr-defined]  # of this test
    with opkernel.Session(graph, executor_type=executor_type) as session:
        for run in (lambda: session.run(tensors), session.make_callable(tensors)):
            _GivesNew.addresses.clear()
            found = run()
            assert sorted(map(address, found)) == sorted(_GivesNew.addresses)


def test_the_memory_of_large_results_is_given_out_again_once_they_are_dead() -> None:
    function = opkernel.function(lambda x: raw_ops.Exp(x=raw_ops.Neg(x=raw_ops.Tanh(x=x * 2)) + 1))
    x = np.zeros(9 << 20, np.float32)
    found = function(x)
    assert is_recycled(found)  # it was not copied
    function(x + 1)
    np.testing.assert_allclose(found, np.float32(np.e), rtol=1e-6)


@pytest.mark.parametrize("way", ["eager", "session"])
@pytest.mark.parametrize("name", sorted({*MODULE_OF_OP} - LEAVES_OUTPUTS))
def test_results_of_recorded_calls_are_the_callers_own(name: str, way: str) -> None:
    """The values themselves are compared with TensorFlow's elsewhere."""
    for op in recorded().get(name, ()):
        has_functions = any("func" in attr.type for attr in op.op_def.attr)
        if (way == "eager" and has_functions) or any(t.is_ref for t in op.input_types):
            continue
        call = eager_call(op) if way == "eager" else fed_call(op)
        given = list(map(as_array, catalogue().run(list(op.inputs))))
        before = bytes_of(given, op.input_types)
        first = call(given)
        check_apart(first, given)
        held = bytes_of(first, op.output_types)
        write_over(first)
        assert bytes_of(given, op.input_types) == before, "a result was written over"
        second = call(given)
        write_over([value for value in given if value.dtype != object])
        if not op.op_def.is_stateful:
            assert bytes_of(second, op.output_types) == held


def bytes_of(values: Sequence[Any], dtypes: Sequence[DataType]) -> list[bytes]:
    """What files would have of some values, variants among them."""
    pairs = zip(values, dtypes, strict=True)
    return [tensor_to_proto(v, t).SerializeToString(deterministic=True) for v, t in pairs]


def fed_call(op: Operation) -> Call:
    tensors = list(dict.fromkeys(op.inputs))
    call = catalogue().make_callable(list(op.outputs), tensors)
    return lambda given: call(*[given[op.inputs.index(tensor)] for tensor in tensors])


def eager_call(op: Operation) -> Call:
    """The op on arrays; the results flat."""
    attrs = {attr.name: op.get_attr(attr.name) for attr in op.op_def.attr}
    counts = [
        (arg, len(attrs[arg.type_list_attr]) if arg.type_list_attr else attrs.get(arg.number_attr))
        for arg in op.op_def.input_arg
    ]

    def call(given: Sequence[Any]) -> list[Any]:
        left = iter(given)
        inputs = {
            arg.name: next(left) if count is None else list(islice(left, count))
            for arg, count in counts
        }
        return [v for v in flatten(execute(op.type, inputs, attrs)) if v is not None]

    return call
