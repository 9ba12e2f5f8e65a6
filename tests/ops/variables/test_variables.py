"""Resource variables: values over several runs, who shares memory with whom, TensorFlow's errors."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from opkernel import Graph, Session, raw_ops
from opkernel.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
)
from opkernel.kernel import ANONYMOUS_NAME
from opkernel.ops.variables.var import Var
from opkernel.runtime import execute
from opkernel.types import (
    DataType,
    PartialTensorShape,
    bool_,
    float32,
    float64,
    int32,
    int64,
    string,
)

_names = itertools.count()


def floats(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def ints(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


def handle(dtype: DataType = float32, name: str | None = None) -> Any:
    name = f"test_variables_{next(_names)}" if name is None else name
    return raw_ops.VarHandleOp(dtype=dtype, shape=PartialTensorShape(), shared_name=name)


def variable(value: Any, dtype: DataType = float32) -> Any:
    made = handle(dtype)
    raw_ops.AssignVariableOp(resource=made, value=value)
    return made


def read(resource: Any, dtype: DataType = float32) -> Any:
    return raw_ops.ReadVariableOp(resource=resource, dtype=dtype)


@pytest.fixture
def graph() -> Iterator[Graph]:
    with Graph().as_default() as made:
        yield made


# Values


def test_a_value_is_kept_from_run_to_run_and_from_session_to_session(graph: Graph) -> None:
    v = handle(name="v")
    x = raw_ops.Placeholder(dtype=float32, shape=[2], name="x")
    assign = raw_ops.AssignVariableOp(resource=v, value=x)
    add = raw_ops.AssignAddVariableOp(resource=v, value=x)
    value = read(v)
    is_there = raw_ops.VarIsInitializedOp(resource=v)
    with Session(graph) as first, Session(graph) as second:
        first.run(assign, {"x:0": [1, 2]})
        first.run(add, {"x:0": [10, 10]})
        assert first.run([value, is_there])[0].tolist() == [11, 12]
        assert not second.run(is_there)
        with pytest.raises(FailedPreconditionError, match="Could not find variable v"):
            second.run(value)


def test_nodes_without_a_shared_name_share_one_variable(graph: Graph) -> None:
    first, second = handle(name=""), handle(name="")
    assign = raw_ops.AssignVariableOp(resource=first, value=floats(1))
    value = read(second)
    with Session(graph) as session:
        session.run(assign)
        assert session.run(value).tolist() == [1]


def test_an_anonymous_variable_belongs_to_its_handle() -> None:
    first, second = handle(name=ANONYMOUS_NAME), handle(name=ANONYMOUS_NAME)
    assert not raw_ops.VarIsInitializedOp(resource=first)
    raw_ops.AssignVariableOp(resource=first, value=floats(1, 2))
    assert read(first).tolist() == [1, 2]
    assert read(second).shape == (0,)
    raw_ops.DestroyResourceOp(resource=first, ignore_lookup_error=False)
    assert read(first).tolist() == [1, 2]


def test_what_a_step_read_stays_as_it_was(graph: Graph) -> None:
    v = handle(name="v")
    assign = raw_ops.AssignVariableOp(resource=v, value=floats(1, 2))
    before = read(v)
    with graph.control_dependencies([before.op]):
        add = raw_ops.AssignAddVariableOp(resource=v, value=floats(1, 1))
    with graph.control_dependencies([add]):
        after = read(v)
    with Session(graph) as session:
        session.run(assign)
        values = session.run([before, after])
    assert [value.tolist() for value in values] == [[1, 2], [2, 3]]


def test_arrays_of_the_user_are_not_the_variables(graph: Graph) -> None:
    v = handle(name="v")
    x = raw_ops.Placeholder(dtype=float32, shape=[2], name="x")
    square = raw_ops.Mul(x=x, y=x)
    assign_fed = raw_ops.AssignVariableOp(resource=v, value=x)
    assign_computed = raw_ops.AssignVariableOp(resource=v, value=square)
    value = read(v)
    with Session(graph) as session:
        fed = floats(1, 2)
        session.run(assign_fed, {"x:0": fed})
        fed[:] = 7
        session.run(value)[:] = 8
        assert session.run(value).tolist() == [1, 2]
        _, fetched = session.run([assign_computed, square], {"x:0": [3, 4]})
        fetched[:] = 9
        assert session.run(value).tolist() == [9, 16]


def test_eager_calls_share_no_memory_with_the_variable() -> None:
    given = floats(1, 2)
    v = variable(given)
    given[:] = 7
    read(v)[:] = 8
    assert read(v).tolist() == [1, 2]


def address(session: Session) -> int:
    with session._devices.client_device.resource_manager.lookup("localhost", "v", Var) as found:
        return int(found.tensor_ref.tensor.ctypes.data)


def test_changes_are_made_in_place_while_nobody_else_has_the_array(graph: Graph) -> None:
    v = handle(name="v")
    assign = raw_ops.AssignVariableOp(resource=v, value=floats(1, 2))
    value = read(v)
    total = raw_ops.Sum(input=value, axis=ints(0))
    with graph.control_dependencies([total.op]):
        add = raw_ops.AssignAddVariableOp(resource=v, value=floats(1, 1))
    with Session(graph) as session:
        session.run(assign)
        first = address(session)
        session.run(add)
        assert address(session) == first
        session.run([value, add])
        assert address(session) != first


def test_tensors_of_all_kinds_are_kept() -> None:
    text = np.array([b"a", b"b"], object)
    assert read(variable(text, string), string).tolist() == [b"a", b"b"]
    assert read(variable(np.float32(3))) == 3
    assert read(variable(np.array([True]), bool_), bool_).tolist() == [True]


def test_the_shape_is_that_of_the_value() -> None:
    v = variable(np.zeros((2, 3), np.float32))
    assert raw_ops.VariableShape(input=v).tolist() == [2, 3]
    raw_ops.AssignVariableOp(resource=v, value=floats(1))
    assert raw_ops.VariableShape(input=v, out_type=int64).dtype == np.int64
    with pytest.raises(InvalidArgumentError, match=r"Expected \[1\] got \[2\]"):
        raw_ops.AssignVariableOp(resource=v, value=floats(1, 2), validate_shape=True)


def test_counting_ends_at_the_limit() -> None:
    v = variable(np.int32(2), int32)
    assert raw_ops.ResourceCountUpTo(resource=v, limit=3, T=int32) == 2
    with pytest.raises(OutOfRangeError, match="Reached limit of 3"):
        raw_ops.ResourceCountUpTo(resource=v, limit=3, T=int32)
    assert read(v, int32) == 3


def test_handles_and_values_of_several_variables() -> None:
    names = [f"test_variables_{next(_names)}" for _ in range(2)]
    attrs = {"containers": ["", ""], "shared_names": names, "N": 2}
    types = {"dtypes": [float32, int32], "shapes": [[2], []]}
    first, second = execute("_VarHandlesOp", {}, {**attrs, **types})
    raw_ops.AssignVariableOp(resource=first, value=floats(1, 2))
    call = {"resources": [first, second]}, {"dtypes": [float32, int32]}
    with pytest.raises(FailedPreconditionError, match=f"uninitialized: {names[1]}"):
        execute("_ReadVariablesOp", *call)
    raw_ops.AssignVariableOp(resource=second, value=np.int32(3))
    values = execute("_ReadVariablesOp", *call)
    assert [value.tolist() for value in values] == [[1, 2], 3]


# Errors


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda v: read(v), FailedPreconditionError, "Could not find variable"),
        (
            lambda v: raw_ops.DisableCopyOnRead(resource=v),
            FailedPreconditionError,
            "Could not find variable",
        ),
        (lambda v: raw_ops.VariableShape(input=v), NotFoundError, "does not exist"),
        (
            lambda v: raw_ops.AssignAddVariableOp(resource=v, value=floats(1)),
            NotFoundError,
            "does not exist",
        ),
        (
            lambda v: raw_ops.ResourceGather(resource=v, indices=ints(0), dtype=float32),
            NotFoundError,
            "does not exist",
        ),
        (
            lambda v: raw_ops.DestroyResourceOp(resource=v, ignore_lookup_error=False),
            NotFoundError,
            "does not exist",
        ),
    ],
)
def test_a_variable_that_does_not_exist(
    call: Callable[[Any], Any], error: type[OpError], text: str
) -> None:
    with pytest.raises(error, match=text):
        call(handle())


def test_destroying_what_is_not_there_may_be_ignored() -> None:
    v = variable(floats(1))
    raw_ops.DestroyResourceOp(resource=v)
    raw_ops.DestroyResourceOp(resource=v)
    assert not raw_ops.VarIsInitializedOp(resource=v)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda v: read(v, int32), "Expected int32 got float"),
        (
            lambda v: raw_ops.AssignVariableOp(resource=v, value=ints(1)),
            "Expected float got int32",
        ),
        (
            lambda v: raw_ops.AssignSubVariableOp(resource=v, value=ints(1)),
            "DType of variable handle and value does not match",
        ),
        (
            lambda v: raw_ops.AssignAddVariableOp(resource=v, value=floats(1, 2)),
            r"variable with shape \[3\] using a Tensor with shape \[2\]",
        ),
        (
            lambda v: raw_ops.ResourceScatterAdd(resource=v, indices=ints(0), updates=np.int32(1)),
            "DType of scatter resource and updates does not match",
        ),
        (
            lambda v: raw_ops.ResourceScatterAdd(
                resource=v, indices=ints(0), updates=floats([1.0])
            ),
            "Must have updates.shape",
        ),
        (
            lambda v: raw_ops.ResourceScatterAdd(resource=v, indices=ints(0, 1), updates=floats(1)),
            "must be a prefix",
        ),
        (
            lambda v: raw_ops.ResourceGather(resource=v, indices=ints(3), dtype=float32),
            r"indices\[0\] = 3 is not in \[0, 3\)",
        ),
        (
            lambda v: raw_ops.ResourceGather(
                resource=v, indices=ints(0), batch_dims=1, dtype=float32
            ),
            "batch_dims",
        ),
        (
            lambda v: raw_ops.ResourceStridedSliceAssign(
                ref=v, begin=ints(0), end=ints(2), strides=ints(1), value=floats(1, 2, 3)
            ),
            "Cannot broadcast",
        ),
        (
            lambda v: raw_ops.ResourceCountUpTo(resource=v, limit=3, T=int32),
            "wrong dtype",
        ),
    ],
)
def test_what_does_not_fit_the_variable(call: Callable[[Any], Any], text: str) -> None:
    v = variable(floats(1, 2, 3))
    with pytest.raises(InvalidArgumentError, match=text):
        call(v)
    assert read(v).tolist() == [1, 2, 3]


def test_a_handle_of_something_else() -> None:
    stack = raw_ops.StackV2(max_size=1, elem_type=float32)
    with pytest.raises(InvalidArgumentError, match="wrong type"):
        raw_ops.VariableShape(input=stack)
    assert not raw_ops.VarIsInitializedOp(resource=stack)


# Parts of variables


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("Add", [[8, 9], [3, 4], [7, 8]]),
        ("Sub", [[-6, -5], [3, 4], [3, 4]]),
        ("Mul", [[12, 24], [3, 4], [10, 12]]),
        ("Min", [[1, 2], [3, 4], [2, 2]]),
        ("Max", [[4, 4], [3, 4], [5, 6]]),
        ("Update", [[4, 4], [3, 4], [2, 2]]),
    ],
)
@pytest.mark.parametrize("dtype", [float32, float64, int32, int64])
def test_scatter(change: str, expected: list[Any], dtype: DataType) -> None:
    kind = dtype.numpy_dtype
    v = variable(np.array([[1, 2], [3, 4], [5, 6]], kind), dtype)
    updates = np.array([[3, 3], [2, 2], [4, 4]], kind)
    execute(
        f"ResourceScatter{change}",
        {"resource": v, "indices": ints(0, 2, 0), "updates": updates},
        {},
    )
    assert read(v, dtype).tolist() == expected


def test_scatter_divides_integers_towards_zero() -> None:
    v = variable(ints(-7, 7, 9, -(2**31)), int32)
    raw_ops.ResourceScatterDiv(resource=v, indices=ints(0, 1, 1, 3), updates=ints(2, -2, 2, -1))
    assert read(v, int32).tolist() == [-3, -1, 9, -(2**31)]
    with pytest.raises(InvalidArgumentError, match="division by zero"):
        raw_ops.ResourceScatterDiv(resource=v, indices=ints(0), updates=ints(0))


def test_scatter_takes_one_scalar_for_all_and_numbers_before_nan() -> None:
    v = variable(floats(np.nan, 1, 2))
    raw_ops.ResourceScatterMax(resource=v, indices=ints(0, 1, 2), updates=floats(1, np.nan, 5))
    np.testing.assert_array_equal(read(v), floats(np.nan, 1, 5))
    raw_ops.ResourceScatterSub(resource=v, indices=ints(1, 1), updates=np.float32(2))
    assert read(v)[1] == -3


def test_a_bad_index_leaves_what_stands_before_it_done() -> None:
    v = variable(floats(1, 2))
    with pytest.raises(InvalidArgumentError, match=r"indices\[1\] = 9 is not in \[0, 2\)"):
        raw_ops.ResourceScatterAdd(resource=v, indices=ints(0, 9, 1), updates=floats(1, 1, 1))
    assert read(v).tolist() == [2, 2]
    with pytest.raises(InvalidArgumentError, match="does not index into shape"):
        raw_ops.ResourceScatterNdAdd(ref=v, indices=ints([0], [9], [1]), updates=floats(1, 1, 1))
    assert read(v).tolist() == [3, 2]
    raw_ops.ResourceScatterNdAdd(
        ref=v,
        indices=ints([0], [9], [1]),
        updates=floats(1, 1, 1),
        bad_indices_policy="IGNORE",
    )
    assert read(v).tolist() == [4, 3]


def test_longer_rows() -> None:
    v = variable(floats([1, 2], [3, 4]))
    raw_ops.ResourceScatterAdd(resource=v, indices=ints(0), updates=floats([1, 1, 1]))
    assert read(v).tolist() == [[2, 3], [3, 4]]
    raw_ops.ResourceScatterUpdate(resource=v, indices=ints(0), updates=floats([7, 8, 9]))
    assert read(v).tolist() == [[7, 8], [9, 4]]
    raw_ops.ResourceScatterUpdate(resource=v, indices=ints(1), updates=floats([7, 8, 9]))
    assert read(v).tolist() == [[7, 8], [7, 8]]
    with pytest.raises(InvalidArgumentError, match="cannot update rows"):
        raw_ops.ResourceScatterAdd(resource=v, indices=ints(0), updates=floats([1]))


def test_truth_values_subtract_to_where_they_differ() -> None:
    v = variable(np.array([True, True]), bool_)
    raw_ops.ResourceScatterNdSub(ref=v, indices=ints([0], [1]), updates=np.array([True, False]))
    assert read(v, bool_).tolist() == [False, True]


def test_gather() -> None:
    v = variable(floats([1, 2, 3], [4, 5, 6]))
    gather = raw_ops.ResourceGather
    assert gather(resource=v, indices=np.int32(1), dtype=float32).tolist() == [4, 5, 6]
    batched = gather(resource=v, indices=ints([2, 0], [1, 1]), batch_dims=1, dtype=float32)
    assert batched.tolist() == [[3, 1], [5, 5]]
    nd = raw_ops.ResourceGatherNd(resource=v, indices=ints([0, 1], [1, 2]), dtype=float32)
    assert nd.tolist() == [2, 6]


def test_a_slice_is_assigned() -> None:
    v = variable(floats(1, 2, 3))
    raw_ops.ResourceStridedSliceAssign(
        ref=v, begin=ints(0), end=ints(3), strides=ints(2), value=np.float32(9)
    )
    assert read(v).tolist() == [9, 2, 9]
