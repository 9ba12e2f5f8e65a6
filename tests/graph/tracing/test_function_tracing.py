"""Python traced into functions: signatures, captures, calls in graphs, effects, errors."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, Tensor, TensorSpec, raw_ops
from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.graph import FuncGraph, Operation, import_graph_def

ONES = np.ones(3, np.float32)


class Traces:
    """Counts how often a function is traced."""

    def __init__(self, **options: Any) -> None:
        self.count = 0
        self.function = opkernel.function(self._trace, **options)

    def _trace(self, x: Any, k: Any = 1) -> Any:
        self.count += 1
        return x

    def after(self, *args: Any, **kwargs: Any) -> int:
        self.function(*args, **kwargs)
        return self.count


# Signatures.


def test_types_shapes_and_python_values_are_traced_once_each() -> None:
    traces = Traces()
    assert traces.after(ONES) == 1
    assert traces.after(2 * ONES) == 1
    assert traces.after(ONES, k=1) == 1  # its default
    assert traces.after(ONES[:2]) == 2
    assert traces.after(ONES.astype(np.float64)) == 3
    assert traces.after(ONES, 2) == 4
    assert traces.after(np.float32(1)) == 5
    assert traces.after(np.zeros((), np.float32)) == 5
    assert traces.after([ONES, {"a": 1}]) == 6
    assert traces.after([ONES, {"a": 1}]) == 6
    assert traces.after([ONES, {"a": 2}]) == 7
    assert traces.after((ONES, {"a": 2})) == 8
    assert traces.function.experimental_get_tracing_count() == 8


def test_python_values_of_several_types_are_several() -> None:
    traces = Traces()
    assert [traces.after(v) for v in (1, True, 1.0, "1", b"1", None, 1)] == [1, 2, 3, 4, 5, 6, 6]


def test_values_that_cannot_be_hashed_count_by_identity() -> None:
    traces = Traces()
    one, other = {1, 2}, {1, 2}
    assert [traces.after(ONES, v) for v in (one, one, other)] == [1, 1, 2]


def test_what_strings_hold_does_not_matter() -> None:
    traces = Traces()
    assert traces.after(np.array([b"a", b"b"], object)) == 1
    assert traces.after(np.array(["x", "yz"], object)) == 1


def test_a_general_trace_serves_special_calls() -> None:
    traces = Traces()
    general = traces.function.get_concrete_function(TensorSpec([None]))
    assert traces.after(ONES) == 1
    assert traces.function.get_concrete_function(TensorSpec([7])) is general
    assert traces.after(ONES[:, None]) == 2


def test_reduced_retracing_relaxes_shapes() -> None:
    traces = Traces(reduce_retracing=True)
    shapes = [(1,), (2,), (3,), (1, 1), (2, 2), (7,), ()]
    assert [traces.after(np.ones(s)) for s in shapes] == [1, 2, 2, 3, 3, 3, 3]
    assert traces.after(np.ones(1, np.int32)) == 4


def test_an_input_signature_is_traced_once() -> None:
    traces = Traces(input_signature=[TensorSpec([None, 2], opkernel.float32)])
    for value in (np.ones((3, 2), np.float32), np.ones((1, 2)), [[1, 2]], [[1.5, 2]]):
        assert traces.after(value) == 1
    assert traces.function.get_concrete_function().inputs[0].shape.as_list() == [None, 2]
    assert traces.after([[1, 2]], "another") == 2


@pytest.mark.parametrize("value", [ONES, [[1, 2, 3]], "text", [["a", "b"]]])
def test_what_an_input_signature_does_not_allow_is_refused(value: Any) -> None:
    function = opkernel.function(lambda x: x, input_signature=[TensorSpec([None, 2])])
    with pytest.raises(TypeError, match=r"'x'.*float32"):
        function(value)


def test_integers_are_checked_at_every_call() -> None:
    function = opkernel.function(lambda x: x, input_signature=[TensorSpec([1], opkernel.int32)])
    assert function(np.array([7])) == [7]
    for value in (np.array([2**40]), np.array([1.0])):
        with pytest.raises(TypeError, match="int32"):
            function(value)


def test_input_signatures_are_nested_as_arguments_are() -> None:
    @opkernel.function(input_signature=[{"a": TensorSpec([]), "b": [TensorSpec([])]}])
    def total(parts: Any) -> Any:
        return parts["a"] + parts["b"][0]

    assert total({"b": [1], "a": 2.5}) == 3.5
    with pytest.raises(TypeError, match="parts"):
        total({"a": 1})
    with pytest.raises(TypeError, match="TensorSpec"):
        opkernel.function(lambda x: x, input_signature=[3])(1)


def test_all_kinds_of_parameters() -> None:
    @opkernel.function
    def call(x: Any, /, y: Any, *rest: Any, scale: Any = 2, **named: Any) -> Any:
        return x + y * scale, rest, named

    found = call(ONES, ONES, 4, scale=ONES, extra=np.int32(5))
    assert found[0].tolist() == [2, 2, 2]
    assert found[1:] == ((4,), {"extra": 5})
    with pytest.raises(TypeError, match="missing a required argument"):
        call(ONES)  # type: ignore[call-arg]  # so it is


def test_methods_have_traces_by_instance() -> None:
    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @opkernel.function
        def apply(self, x: Any) -> Any:
            return x * self.factor

    two, three = Scale(2), Scale(3)
    assert (two.apply(np.float32(1)), three.apply(np.float32(1))) == (2, 3)
    assert two.apply.experimental_get_tracing_count() == 1
    assert Scale(4).apply(np.float32(1)) == 4
    gone = weakref.ref(two)
    del two
    gc.collect()
    assert gone() is None


# What a trace is.


def test_results_keep_their_structure() -> None:
    @opkernel.function
    def call(x: Any) -> Any:
        return {"b": [x, None], "a": (3, 1.5), "c": ()}

    found = call(ONES)
    assert list(found) == ["b", "a", "c"]
    assert found["b"][0].tolist() == [1, 1, 1]
    assert found["b"][1] is None
    assert [(value.dtype, value) for value in found["a"]] == [(np.int32, 3), (np.float32, 1.5)]
    assert found["c"] == ()


def test_a_concrete_function_tells_what_it_is() -> None:
    @opkernel.function(name="affine")
    def call(x: Any, w: Any) -> Any:
        return {"y": x @ w}

    concrete = call.get_concrete_function(TensorSpec([None, 2]), w=TensorSpec([2, 3]))
    function_def = concrete.function_def
    assert [arg.name for arg in function_def.signature.input_arg] == ["x", "w"]
    assert [node.op for node in function_def.node_def] == ["MatMul"]
    assert dict(function_def.ret) == {"matmul": "matmul_0:product:0"}
    assert not function_def.signature.is_stateful
    assert concrete.name == function_def.signature.name
    assert concrete.name.startswith("affine_")
    assert [tensor.name for tensor in concrete.inputs] == ["x:0", "w:0"]
    assert [tensor.shape.as_list() for tensor in concrete.outputs] == [[None, 3]]
    assert concrete.structured_outputs == {"y": concrete.outputs[0]}
    assert concrete.captured_inputs == []
    found = concrete(np.ones((1, 2), np.float32), np.ones((2, 3), np.float32))
    assert found["y"].tolist() == [[2, 2, 2]]


def test_a_concrete_function_takes_what_it_was_traced_for() -> None:
    call = opkernel.function(lambda x, k: x * k)
    concrete = call.get_concrete_function(TensorSpec([None]), 3)
    assert concrete(ONES, 3).tolist() == concrete(ONES).tolist() == [3, 3, 3]
    for args in ((ONES, 4), (ONES.astype(int), 3), (np.float32(1), 3)):
        with pytest.raises(TypeError, match="was not traced for"):
            concrete(*args)


def test_equal_functions_have_one_name() -> None:
    def make(constant: float) -> str:
        return opkernel.function(lambda x: x + constant, name="f").get_concrete_function(ONES).name

    assert make(1) == make(1) != make(2)


def test_names_of_lambdas_and_odd_names_are_valid() -> None:
    for name in (None, "a b/c", "<>", "_x"):
        concrete = opkernel.function(lambda x: x, name=name).get_concrete_function(ONES)
        with Graph().as_default() as graph:
            concrete(ONES)
            assert concrete.name in graph.function_library


def test_arrays_from_around_become_constants() -> None:
    table = np.arange(3, dtype=np.float32)
    call = opkernel.function(lambda x: x + table)
    assert call(ONES).tolist() == [1, 2, 3]
    table[:] = 10
    assert call(ONES).tolist() == [1, 2, 3]


# In graphs.


def test_in_a_graph_a_call_is_a_node() -> None:
    call = opkernel.function(lambda x: {"y": x + 1})
    with Graph().as_default() as graph:
        x = opkernel.placeholder("float32", [None])
        found = call(x)["y"]
        constant = call(ONES)["y"]
    assert isinstance(found, Tensor)
    assert (found.op.type, found.shape.as_list()) == ("PartitionedCall", [None])
    assert constant.op.inputs[0].op.type == "Const"
    assert len(graph.function_library) == 1  # the first trace serves the second call
    with Session(graph) as session:
        assert session.run(found, {x: [1, 2]}).tolist() == [2, 3]
        assert session.run(constant).tolist() == [2, 2, 2]


def test_a_tensor_means_its_graph_without_a_block() -> None:
    graph = Graph()
    with graph.as_default():
        x = opkernel.placeholder("float32", [])
    found = opkernel.function(lambda x: x * 2)(x)
    assert found.graph is graph


def test_shapes_follow_through_calls() -> None:
    @opkernel.function
    def call(x: Any) -> Any:
        y = raw_ops.Unique(x=x).y
        y.set_shape([2])
        return y, x[None]

    with Graph().as_default():
        first, second = call(opkernel.placeholder("int32", [None]))
    assert first.shape.as_list() == [2]
    assert second.shape.as_list() == [1, None]


def test_tensors_from_around_are_captured() -> None:
    with Graph().as_default() as graph:
        x, y = (opkernel.placeholder("float32", [], name) for name in "xy")

        @opkernel.function
        def outer(a: Any) -> Any:
            @opkernel.function
            def inner(b: Any) -> Any:
                return a + b + x

            return inner(y) * x

        found = outer(y)
        concrete = outer.get_concrete_function(y)
    assert set(concrete.captured_inputs) == {x, y}
    assert found.op.inputs[0] is y
    with Session(graph) as session:
        assert session.run(found, {x: 3, y: 5}) == 39


def test_tensors_of_other_graphs_are_refused() -> None:
    with Graph().as_default():
        x = opkernel.placeholder("float32", [], "x")
    call = opkernel.function(lambda y: y + x)
    with pytest.raises(InvalidArgumentError, match="'x:0' cannot be used in function"):
        call(np.float32(1))
    with Graph().as_default(), pytest.raises(InvalidArgumentError, match="another graph"):
        call(np.float32(1))


def test_tensors_cannot_leave_their_trace() -> None:
    leaked: list[Any] = []

    @opkernel.function
    def call(x: Any) -> Any:
        leaked.append(x)
        return x

    call(ONES)
    with pytest.raises(FailedPreconditionError, match="trace of function 'call' has ended"):
        leaked[0] + 1
    with pytest.raises(InvalidArgumentError, match="tensor of function 'call'"):
        opkernel.function(lambda y: y + leaked[0])(ONES)


def test_captures_have_no_value_outside_of_their_graph() -> None:
    with Graph().as_default():
        x = opkernel.placeholder("float32", [], "x")
        call = opkernel.function(lambda: x + 1)
        concrete = call.get_concrete_function()
    with pytest.raises(FailedPreconditionError, match="'x:0'"):
        concrete()


def test_each_graph_has_traces_of_its_own() -> None:
    traces = Traces()
    for count in (1, 2):
        with Graph().as_default():
            x = opkernel.placeholder("float32", [3])
            assert traces.after(x) == traces.after(x) == count
    graph = weakref.ref(x.graph)
    del x
    gc.collect()
    assert graph() is None


def test_control_dependencies_from_around_are_those_of_the_call() -> None:
    with Graph().as_default() as graph:
        first = raw_ops.NoOp(name="first")

        @opkernel.function
        def call(x: Any) -> Any:
            with x.graph.control_dependencies([first]):
                return x + 1

        found = call(ONES)
    assert [op.name for op in found.op.control_inputs] == ["first"]
    assert Session(graph).run(found).tolist() == [2, 2, 2]


def test_imported_graphs_become_part_of_a_function() -> None:
    with Graph().as_default() as graph:
        opkernel.function(lambda x: x * 2)(opkernel.placeholder("float32", [], "x"))
    graph_def = graph.as_graph_def()

    @opkernel.function
    def call(x: Any) -> Any:
        return import_graph_def(
            graph_def, input_map={"x:0": x}, return_elements=["PartitionedCall:0"]
        )

    assert call(np.float32(4)) == [8]


# Effects.


def variable(name: str, value: float) -> Any:
    handle = raw_ops.VarHandleOp(dtype=opkernel.float32, shape=[], shared_name=name)
    raw_ops.AssignVariableOp(resource=handle, value=np.float32(value))
    return handle


def read(handle: Any) -> Any:
    return raw_ops.ReadVariableOp(resource=handle, dtype=opkernel.float32)


def add(handle: Any, value: Any) -> Any:
    return raw_ops.AssignAddVariableOp(resource=handle, value=np.float32(value))


def test_effects_happen_in_the_order_of_the_program_and_all_of_them() -> None:
    handle = variable("in_order", 1)

    @opkernel.function
    def call() -> Any:
        before = read(handle)
        add(handle, 1)
        between = read(
            raw_ops.VarHandleOp(dtype=opkernel.float32, shape=[], shared_name="in_order")
        )
        raw_ops.AssignVariableOp(resource=handle, value=between * 10)
        add(handle, 2)
        return before, between

    assert call() == (1, 2)
    assert read(handle) == 22


def test_effects_of_calls_count() -> None:
    handle = variable("in_calls", 0)
    inner = opkernel.function(lambda: add(handle, 1))

    @opkernel.function
    def outer() -> None:
        inner()
        raw_ops.AssignVariableOp(resource=handle, value=read(handle) * 10)
        inner()

    assert outer() is None
    assert read(handle) == 11
    concrete = outer.get_concrete_function()
    assert concrete.function_def.signature.is_stateful
    ops = [op.type for op in concrete.graph.get_operations()]
    assert ops.count("StatefulPartitionedCall") == 2
    assert len(concrete.function_def.control_ret) == 1


def test_a_call_without_results_is_an_operation_in_a_graph() -> None:
    call = opkernel.function(
        lambda x: raw_ops.AssignVariableOp(
            resource=raw_ops.VarHandleOp(dtype=x.dtype, shape=[], shared_name="v"), value=x
        )
    )
    with Graph().as_default() as graph:
        x = opkernel.placeholder("float32", [])
        assign = call(x)
        handle = raw_ops.VarHandleOp(dtype=opkernel.float32, shape=[], shared_name="v")
        value = read(handle)
    assert isinstance(assign, Operation)
    with Session(graph) as session:
        session.run(assign, {x: 3})
        assert session.run(value) == 3


def test_random_ops_are_not_put_in_order() -> None:
    @opkernel.function
    def call() -> Any:
        add(variable("beside_random", 0), 1)
        return raw_ops.RandomUniform(shape=[2], dtype=opkernel.float32)

    ops = call.get_concrete_function().graph.get_operations()
    assert ops[-1].type == "RandomUniform"
    assert ops[-1].control_inputs == ()


# Errors.


def test_a_function_that_calls_itself_without_end_is_refused() -> None:
    @opkernel.function
    def call(x: Any) -> Any:
        return other(x)

    @opkernel.function
    def other(x: Any) -> Any:
        return call(x)

    with pytest.raises(RecursionError, match=r"call\(x: float32\[3\]\) calls itself"):
        call(ONES)


def test_recursion_over_python_values_ends() -> None:
    @opkernel.function
    def power(x: Any, n: int) -> Any:
        return x if n == 1 else x * power(x, n - 1)

    assert power(np.float32(2), 10) == 1024


def test_errors_tell_the_line_of_the_user() -> None:
    @opkernel.function
    def call(x: Any) -> Any:
        return x @ np.ones((5, 2), np.float32)

    with pytest.raises(InvalidArgumentError, match="3 and 5") as caught:
        call(np.ones((2, 3), np.float32))
    line = call.python_function.__code__.co_firstlineno + 2
    assert caught.value.__notes__ == [f"while tracing call(x: float32[2,3]), at {__file__}:{line}"]
    assert call.experimental_get_tracing_count() == 0


def test_an_error_in_a_nested_function_is_noted_once() -> None:
    inner = opkernel.function(lambda x: x[0, 0], name="inner")
    with pytest.raises(InvalidArgumentError) as caught:
        opkernel.function(lambda x: inner(x), name="outer")(ONES)
    assert [note.split("(")[0] for note in caught.value.__notes__] == ["while tracing inner"]


def test_what_makes_no_tensor_cannot_be_returned() -> None:
    with pytest.raises(TypeError, match="which makes no tensor"):
        opkernel.function(lambda x: object())(ONES)


def test_a_function_traces_again_after_an_error() -> None:
    fails = [True]

    @opkernel.function
    def call(x: Any) -> Any:
        if fails.pop():
            raise KeyError("first")
        return x

    with pytest.raises(KeyError):
        call(ONES)
    fails.append(False)
    assert call(ONES).tolist() == [1, 1, 1]


def test_func_graphs_know_what_is_around_them_while_they_are_traced() -> None:
    graphs: list[Any] = []

    @opkernel.function
    def call(x: Any) -> Any:
        graphs.append((x.graph, x.graph.outer_graph))
        return x

    with Graph().as_default() as graph:

        @opkernel.function
        def outer(x: Any) -> Any:
            graphs.append((x.graph, x.graph.outer_graph))
            return call(x)

        outer(ONES)
    (body, around), (inner_body, inner_around) = graphs
    assert isinstance(body, FuncGraph)
    assert (around, inner_around) == (graph, body)
    assert body.outer_graph is inner_body.outer_graph is None
