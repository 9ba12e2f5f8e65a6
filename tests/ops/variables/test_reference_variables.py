"""Variables of TensorFlow 1; expected values and errors are TensorFlow's."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from opkernel import Graph, Session, raw_ops
from opkernel.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
)
from opkernel.types import DataType, PartialTensorShape, float32, int32

ANY = PartialTensorShape()


def floats(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def ints(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


def variable(shape: Any, dtype: DataType = float32, **attrs: Any) -> Any:
    return raw_ops.VariableV2(shape=shape, dtype=dtype, **attrs)


@pytest.fixture
def graph() -> Iterator[Graph]:
    with Graph().as_default() as made:
        yield made


@pytest.mark.parametrize("sanitize", [False, True])
def test_a_variable_is_assigned_and_changed(graph: Graph, sanitize: bool) -> None:
    v = variable([2], name="v")
    assign = raw_ops.Assign(ref=v, value=floats(1, 2))
    add = raw_ops.AssignAdd(ref=v, value=floats(1, 1))
    sub = raw_ops.AssignSub(ref=add, value=floats(0, 5))
    copy = raw_ops.Identity(input=v)
    is_there = raw_ops.IsVariableInitialized(ref=v)
    with Session(graph, sanitize=sanitize) as session, Session(graph) as other:
        assert not session.run(is_there)
        assert session.run(assign).tolist() == [1, 2]
        assert session.run(sub).tolist() == [2, -2]
        assert session.run(copy).tolist() == [2, -2]
        assert session.run(v).tolist() == [2, -2]
        assert session.run(is_there)
        assert not other.run(is_there)


@pytest.mark.parametrize("op", ["Identity", "AssignAdd", "ScatterAdd", "CountUpTo"])
def test_what_was_not_assigned_cannot_be_used(graph: Graph, op: str) -> None:
    v = variable([], int32, name="v")
    use = {
        "Identity": lambda: raw_ops.Identity(input=v),
        "AssignAdd": lambda: raw_ops.AssignAdd(ref=v, value=np.int32(1)),
        "ScatterAdd": lambda: raw_ops.ScatterAdd(
            ref=variable([1], int32, name="w"), indices=ints(0), updates=ints(1)
        ),
        "CountUpTo": lambda: raw_ops.CountUpTo(ref=v, limit=3),
    }[op]()
    with (
        Session(graph) as session,
        pytest.raises(FailedPreconditionError, match=r"uninitialized value [vw]"),
    ):
        session.run(use)


def test_what_was_read_stays_as_it_was(graph: Graph) -> None:
    v = variable([2])
    assign = raw_ops.Assign(ref=v, value=floats(1, 2))
    before = raw_ops.Identity(input=v)
    with graph.control_dependencies([before.op]):
        after = raw_ops.AssignAdd(ref=v, value=floats(1, 1))
    with Session(graph) as session:
        session.run(assign)
        values = session.run([before, after])
    assert [value.tolist() for value in values] == [[1, 2], [2, 3]]


def test_arrays_of_the_user_are_not_the_variables(graph: Graph) -> None:
    v = variable([2])
    x = raw_ops.Placeholder(dtype=float32, shape=[2], name="x")
    assign = raw_ops.Assign(ref=v, value=x)
    with Session(graph) as session:
        given = floats(1, 2)
        session.run(assign, {"x:0": given})
        given[:] = 7
        session.run(v)[:] = 8
        assert session.run(v).tolist() == [1, 2]


def test_an_assignment_must_be_of_the_shape_that_is_there(graph: Graph) -> None:
    v, w = variable([2]), variable(ANY)
    x = raw_ops.Placeholder(dtype=float32, shape=ANY, name="x")
    assign = raw_ops.Assign(ref=v, value=x)
    reshape = raw_ops.Assign(ref=v, value=x, validate_shape=False)
    assign_any = raw_ops.Assign(ref=w, value=x)
    with Session(graph) as session:
        with pytest.raises(InvalidArgumentError, match=r"lhs shape= \[2\] rhs shape= \[3\]"):
            session.run(assign, {"x:0": [1, 2, 3]})
        session.run(reshape, {"x:0": [1, 2, 3]})
        assert session.run(assign, {"x:0": [4, 5, 6]}).tolist() == [4, 5, 6]
        with pytest.raises(InvalidArgumentError, match=r"lhs shape= \[\] rhs shape= \[1\]"):
            session.run(assign_any, {"x:0": [1]})


def test_a_variable_of_unknown_sizes_cannot_be_made(graph: Graph) -> None:
    v = variable(PartialTensorShape([None, 2]))
    with Session(graph) as session, pytest.raises(InvalidArgumentError, match="not fully defined"):
        session.run(v)


def test_variables_of_one_shared_name_are_one(graph: Graph) -> None:
    v = variable([1], name="v")
    same = raw_ops.Variable(shape=[1], dtype=float32, shared_name="v")
    elsewhere = variable([1], shared_name="v", container="other")
    assign = raw_ops.Assign(ref=v, value=floats(3))
    is_there = raw_ops.IsVariableInitialized(ref=elsewhere)
    with Session(graph) as session:
        session.run(assign)
        assert session.run(same).tolist() == [3]
        assert not session.run(is_there)


def test_counting(graph: Graph) -> None:
    v = variable([], int32)
    assign = raw_ops.Assign(ref=v, value=np.int32(1))
    count = raw_ops.CountUpTo(ref=v, limit=2)
    with Session(graph) as session:
        session.run(assign)
        assert session.run(count) == 1
        with pytest.raises(OutOfRangeError, match="Reached limit of 2"):
            session.run(count)


def test_parts_are_changed(graph: Graph) -> None:
    v = variable([3])
    assign = raw_ops.Assign(ref=v, value=floats(1, 2, 3))
    changes = [
        raw_ops.ScatterMul(ref=v, indices=ints(0, 0), updates=floats(2, 3)),
        raw_ops.ScatterNdUpdate(ref=v, indices=ints([1]), updates=floats(9)),
        raw_ops.StridedSliceAssign(
            ref=v, begin=ints(2), end=ints(3), strides=ints(1), value=floats(7)
        ),
    ]
    x = raw_ops.Placeholder(dtype=float32, shape=ANY, name="x")
    scatter = raw_ops.ScatterAdd(ref=v, indices=ints(0, 9), updates=x)
    with Session(graph) as session:
        session.run(assign)
        values = [session.run(change).tolist() for change in changes]
        assert values == [[6, 2, 3], [6, 9, 3], [6, 9, 7]]
        with pytest.raises(InvalidArgumentError, match=r"indices\[1\] = 9 is not in \[0, 3\)"):
            session.run(scatter, {"x:0": [1, 1]})
        assert session.run(v).tolist() == [7, 9, 7]
        with pytest.raises(InvalidArgumentError, match=r"Must have updates\.shape"):
            session.run(scatter, {"x:0": [1]})


@pytest.mark.parametrize("identity", [raw_ops.RefIdentity, raw_ops.DebugGradientRefIdentity])
def test_references_are_passed_on(graph: Graph, identity: Any) -> None:
    v, w = variable([1]), variable([1])
    assign = [raw_ops.Assign(ref=ref, value=floats(0)) for ref in (v, w)]
    index = raw_ops.Placeholder(dtype=int32, shape=[], name="index")
    chosen = identity(input=raw_ops.RefSelect(index=index, inputs=[v, w]))
    change = raw_ops.AssignAdd(ref=chosen, value=floats(1))
    with Session(graph) as session:
        session.run(assign)
        session.run(change, {"index:0": 1})
        assert [value.tolist() for value in session.run([v, w])] == [[0], [1]]
        with pytest.raises(InvalidArgumentError, match=r"in the range \[0, 2\) but got 2"):
            session.run(change, {"index:0": 2})


def test_a_temporary_variable_lives_for_a_step(graph: Graph) -> None:
    v = raw_ops.TemporaryVariable(shape=[2], dtype=float32, var_name="t")
    assign = raw_ops.Assign(ref=v, value=floats(1, 2))
    add = raw_ops.AssignAdd(ref=assign, value=floats(3, 3))
    destroy = raw_ops.DestroyTemporaryVariable(ref=add, var_name="t")
    wrong = raw_ops.DestroyTemporaryVariable(ref=add, var_name="other")
    with Session(graph) as session:
        for _ in range(2):
            assert session.run(destroy).tolist() == [4, 5]
        with pytest.raises(NotFoundError, match="other"):
            session.run(wrong)
        assert session.run(destroy).tolist() == [4, 5]
