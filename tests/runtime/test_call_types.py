"""Calls of functions whose arguments or results are not those of the node that calls.

Whatever node calls and whatever runs it, the call is refused with TensorFlow's status code: no tensor
comes out as one of another type.
"""

from collections.abc import Callable
from typing import Any

import pytest
from tests.graph.function_builders import define, node
from tests.runtime.call_models import (
    CALLS,
    RIGHT,
    VALUES,
    WRONG,
    code_of,
    feeds_of,
    function,
    imported,
    may_be,
    model,
    within,
)

import opkernel
from opkernel import Session, TensorSpec
from opkernel.decompile import decompile
from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph import import_graph_def
from opkernel.kernel import FunctionRunOptions
from opkernel.proto import ConfigProto, GraphDef
from opkernel.runtime import DirectSession, FunctionLibraryRuntime
from opkernel.types import as_dtype


def in_session(made: GraphDef, times: int = 1, **options: Any) -> Any:
    with Session(imported(made), **options) as session:
        for _ in range(times):
            found = session.run("call:0", feeds_of(made))
    return found


def in_direct_session(made: GraphDef) -> Any:
    session = DirectSession()
    session.create(made)
    return session.run(feeds_of(made), ["call:0"])[0]


def in_partial_run(made: GraphDef) -> Any:
    with Session(imported(made)) as session:
        handle = session.partial_run_setup(["call:0"], list(feeds_of(made)))
        return session.partial_run(handle, ["call:0"], feeds_of(made))[0]


def in_function(made: GraphDef) -> Any:
    return in_session(within(made, node("call = Outer()")))


def in_handle(made: GraphDef) -> Any:
    names = [one.name for one in made.node[:-1]]
    graph = imported(within(made, node("call = Outer()")))
    library = FunctionLibraryRuntime(graph.function_library)
    handle = library.instantiate("Outer")
    return library.run(FunctionRunOptions(), handle, [VALUES[name] for name in names])[0]


def traced(made: GraphDef) -> Any:
    names = [one.name for one in made.node[:-1]]
    specs = [TensorSpec([], as_dtype(VALUES[name].dtype)) for name in names]

    @opkernel.function(input_signature=specs)
    def outer(*tensors: Any) -> Any:
        given = dict(zip(names, tensors, strict=True))
        return import_graph_def(made, input_map=given, return_elements=["call:0"], name="")

    return outer(*[VALUES[name] for name in names])[0]


WAYS: dict[str, Callable[[GraphDef], Any]] = {
    "session": in_session,
    "shapes that repeat": lambda made: in_session(made, times=6),
    "not optimized": lambda made: in_session(made, optimize=False),
    "plan": lambda made: in_session(made, executor_type="COMPILED_PLAN"),
    "single-threaded": lambda made: in_session(made, executor_type="SINGLE_THREADED_EXECUTOR"),
    "dataflow": lambda made: in_session(made, executor_type="DATAFLOW"),
    "threads": lambda made: in_session(made, config=ConfigProto(inter_op_parallelism_threads=2)),
    "sanitizer": lambda made: in_session(made, sanitize=True),
    "direct session": in_direct_session,
    "partial run": in_partial_run,
    "function": in_function,
    "handle": in_handle,
    "traced": traced,
}


KINDS = [("computed", True), ("constant", True), ("computed", False), ("constant", False)]
"""How the functions give their results, and whether their arguments are fed."""

OPTIMIZED = ("session", "function", "traced")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("called", [*CALLS, "SymbolicGradient"])
def test_calls_that_do_not_fit_are_refused(called: str, way: str) -> None:
    for wrong in WRONG:
        if may_be(called, wrong):
            continue
        for kind, is_fed in KINDS if way in OPTIMIZED else KINDS[:1]:
            with pytest.raises(OpError) as raised:
                WAYS[way](model(called, wrong, kind, is_fed=is_fed))
            assert raised.type is code_of(called, wrong), (wrong, kind, is_fed, raised.value)
            assert str(raised.value.node).endswith("call")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("called", [*CALLS, "SymbolicGradient"])
def test_calls_that_fit_are_not(called: str, way: str) -> None:
    wanted = -3.5 if called == "SymbolicGradient" else -1.5
    assert WAYS[way](model(called, "nothing")) == wanted
    if called.endswith("cond"):
        assert WAYS[way](model(called, "another result")) == wanted


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("called", [name for name in CALLS if "If" in name or "Case" in name])
def test_a_branch_that_is_not_taken_may_be_wrong(called: str, way: str) -> None:
    others = {"yes": "no", "no": "yes", "zero": "two", "two": "zero"}
    for wrong in WRONG:
        made = model(called, wrong)
        made.node[0].name = made.node[-1].input[0] = others[made.node[0].name]
        assert WAYS[way](made) == -1.5


def test_calls_by_the_name_of_a_function_are_refused_at_import_or_when_it_is_another() -> None:
    made = GraphDef()
    made.library.function.append(function("F", RIGHT, RIGHT, "computed"))
    made.node.append(node("x = Placeholder[dtype=float]()"))
    made.node.append(node("call = F(x, x)"))
    for inputs in (["x"], ["x"] * 3):
        del made.node[1].input[:]
        made.node[1].input.extend(inputs)
        with pytest.raises(InvalidArgumentError, match="F"):
            imported(made)
    made.node[1].input[:] = ["x", "x"]
    for wrong, types in WRONG.items():
        graph = imported(made)
        graph.function_library.remove_function("F")
        graph.function_library.add_function(function("F", *types, "computed"))
        for options in ({}, {"optimize": False}, {"executor_type": "DATAFLOW"}):
            with Session(graph, **options) as session, pytest.raises(code_of("F", wrong)):
                session.run("call:0", {"x:0": 1.0})


@pytest.mark.parametrize("called", [name for name in CALLS if name != "RemoteCall"])
def test_programs_are_not_written_of_calls_that_do_not_fit(called: str) -> None:
    for wrong in WRONG:
        if may_be(called, wrong):
            continue
        graph = imported(model(called, wrong))
        inputs = [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]
        with pytest.raises(code_of(called, wrong)):
            decompile(inputs, [graph.get_tensor_by_name("call:0")], "A model")


def test_references_are_passed_as_what_they_refer_to() -> None:
    made = GraphDef()
    function = made.library.function.add()
    function.CopyFrom(define("F(x: float) -> (y: float)", ["n = Neg[T=float](x)"], y="n:y:0"))
    for line in (
        "v = VariableV2[dtype=float]()",
        "one = Const[dtype=float; value=<dtype: DT_FLOAT tensor_shape {} float_val: 1>]()",
        "assign = Assign[T=float](v, one)",
        "call = PartitionedCall[Tin={float}; Tout={float}; f=F](v) @ assign",
    ):
        made.node.append(node(line))
    made.node[0].attr["shape"].shape.SetInParent()
    with Session(imported(made)) as session:
        assert session.run("call:0") == -1


UNLIKE_TENSORFLOW = {
    ("RemoteCall", "more results"): "TensorFlow aborts the process",
    ("PartitionedCall", "more arguments"): "INTERNAL, where the shapes are inferred at import",
    ("StatefulPartitionedCall", "more arguments"): "likewise",
    **{
        (f"{op} body", wrong): "TensorFlow takes no notice of what is missing or too much"
        for op in ("While", "StatelessWhile")
        for wrong in ("fewer arguments", "more arguments", "fewer results")
    },
}


def run_by_tensorflow(tf: Any, made: Any, feeds: dict[str, Any]) -> None:
    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        tf.import_graph_def(made, name="")
        session.run(graph.get_operation_by_name("call").outputs, feeds)


@pytest.mark.tensorflow
@pytest.mark.parametrize("called", [*CALLS, "SymbolicGradient"])
def test_codes_are_those_of_tensorflow(tf: Any, called: str) -> None:
    for wrong in WRONG:
        made = model(called, wrong)
        if may_be(called, wrong) or (called, wrong) in UNLIKE_TENSORFLOW:
            continue
        theirs = tf.compat.v1.GraphDef.FromString(made.SerializeToString())
        feeds = {name: value.item() for name, value in feeds_of(made).items()}
        with pytest.raises(tf.errors.OpError) as raised:
            run_by_tensorflow(tf, theirs, feeds)
        assert raised.value.error_code == code_of(called, wrong).code, (wrong, raised.value)
