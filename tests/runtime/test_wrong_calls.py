"""Wrong calls across functions, each in every way of calling: one table of what is said.

Calls whose arguments or results differ from the function's are in `test_call_types`. What stands here
is wrong in other ways: functions, attrs or results that are missing, conditions and indices that are
none, functions that never end.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.graph.function_builders import define, node
from tests.runtime.call_models import VALUES, imported
from tests.runtime.test_call_types import WAYS, in_session, run_by_tensorflow

import opkernel
from opkernel.decompile import decompile
from opkernel.errors import (
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
)
from opkernel.proto import GraphDef
from opkernel.types import as_dtype

NEGATIVE = ["n = Neg[T=float](x)"]
FUNCTIONS = {
    one.signature.name: one
    for one in [
        define("Right(x: float) -> (y: float)", NEGATIVE, y="n:y:0"),
        define("Twice(x: float) -> (y: float)", ["n = Add[T=float](x, x)"], y="n:z:0"),
        define("Poly(x: T) -> (y: T)", ["n = Neg[T=$T](x)"], "T: type", y="n:y:0"),
        define(
            "Some(x: N * float) -> (y: float)", ["n = AddN[T=float; N=$N](x)"], "N: int", y="n:sum:0"
        ),
        define("NoReturn(x: float) -> (y: float)", NEGATIVE),
        define("OfNobody(x: float) -> (y: float)", NEGATIVE, y="m:y:0"),
        define("Second(x: float) -> (y: float)", NEGATIVE, y="n:y:1"),
        define("OtherType(x: float) -> (y: int32)", NEGATIVE, y="n:y:0"),
        define("OfUnknown(x: float) -> (y: float)", ["n = NoSuchOp(x)"], y="n:y:0"),
        define("NoInput(x: float) -> (y: float)", ["n = Neg[T=float](z)"], y="n:y:0"),
        define("InnerType(x: float) -> (y: int32)", ["n = Neg[T=int32](x)"], y="n:y:0"),
        define("Itself(x: float) -> (y: float)", ["n = Itself(x)"], y="n:y:0"),
        define("Ping(x: float) -> (y: float)", ["n = Pong(x)"], y="n:y:0"),
        define("Pong(x: float) -> (y: float)", ["n = Ping(x)"], y="n:y:0"),
        define(
            "GivesComplex(x: float) -> (y: complex64)",
            ["n = Cast[SrcT=float; DstT=complex64](x)"],
            y="n:y:0",
        ),
        define(
            "GivesHalf(x: float) -> (y: half)", ["n = Cast[SrcT=float; DstT=half](x)"], y="n:y:0"
        ),
        define(
            "Around(x: float) -> (y: float)",
            ["a = Add[T=float](x, b:z:0)", "b = Add[T=float](x, a:z:0)"],
            y="b:z:0",
        ),
    ]
}  # fmt: skip
MORE_VALUES: dict[str, Any] = {
    **VALUES,
    "several": np.array([0, 1], np.int32),
    "one": np.array([1], np.int32),
    "complex": np.complex64(1j),
    "unsigned": np.uint16(1),
}
F = "Tin={float}; Tout={float}"


class Wrong(NamedTuple):
    """A call that is wrong, and what is said; TensorFlow aborts on some that are `harsh`."""

    line: str
    error: type[OpError]
    fact: str
    harsh: str = ""


TABLE = {
    "no such function": Wrong(f"PartitionedCall[{F}; f=Nobody](x)", InvalidArgumentError, "Nobody"),
    "no such function, stateful": Wrong(
        f"StatefulPartitionedCall[{F}; f=Nobody](x)", InvalidArgumentError, "Nobody"
    ),
    "an op for a function": Wrong(
        f"PartitionedCall[{F}; f=Neg[T=float]](x)", InvalidArgumentError, "Neg"
    ),
    "an attr is missing": Wrong(
        f"PartitionedCall[{F}; f=Poly](x)", NotFoundError, "Attr T is not found"
    ),
    "an attr has another type": Wrong(
        f"PartitionedCall[{F}; f=Poly[T=int32]](x)", InvalidArgumentError, "int32"
    ),
    "an attr is no type": Wrong(
        f"PartitionedCall[{F}; f=Poly[T=5]](x)", InvalidArgumentError, "as tensor 0"
    ),
    "too many tensors": Wrong(
        f"PartitionedCall[{F}; f=Some[N=2]](x)", InvalidArgumentError, "2", "INTERNAL at import"
    ),
    "a negative number of tensors": Wrong(
        f"PartitionedCall[{F}; f=Some[N=-1]](x)", InvalidArgumentError, "-1", "std::bad_alloc"
    ),
    "very many tensors": Wrong(
        f"PartitionedCall[{F}; f=Some[N=1000000000000]](x)",
        InvalidArgumentError,
        "1000000000000",
        "it allocates them",
    ),
    "a result is missing": Wrong(
        f"PartitionedCall[{F}; f=NoReturn](x)", InvalidArgumentError, "Return y missing"
    ),
    "a result of no node": Wrong(
        f"PartitionedCall[{F}; f=OfNobody](x)", InvalidArgumentError, "m:y:0"
    ),
    "a result of no output": Wrong(
        f"PartitionedCall[{F}; f=Second](x)", InvalidArgumentError, "n:y:1"
    ),
    "a result of another type": Wrong(
        "PartitionedCall[Tin={float}; Tout={int32}; f=OtherType](x)",
        InvalidArgumentError,
        "int32 vs. float",
    ),
    "a node of another type": Wrong(
        "PartitionedCall[Tin={float}; Tout={int32}; f=InnerType](x)", InvalidArgumentError, "int32"
    ),
    "an unknown op": Wrong(f"PartitionedCall[{F}; f=OfUnknown](x)", NotFoundError, "NoSuchOp"),
    "an unknown input": Wrong(f"PartitionedCall[{F}; f=NoInput](x)", InvalidArgumentError, "z"),
    "a circle": Wrong(f"PartitionedCall[{F}; f=Around](x)", InvalidArgumentError, "cycle"),
    "endless": Wrong(
        f"PartitionedCall[{F}; f=Itself](x)", ResourceExhaustedError, "too deep", "it overflows"
    ),
    "endless by turns": Wrong(
        f"StatefulPartitionedCall[{F}; f=Ping](x)", ResourceExhaustedError, "too deep", "as above"
    ),
    "a branch that is nowhere": Wrong(
        f"If[Tcond=bool; {F}; then_branch=Nobody; else_branch=Right](yes, x)",
        NotFoundError,
        "Nobody",
    ),
    "the other branch is nowhere": Wrong(
        f"StatelessIf[Tcond=bool; {F}; then_branch=Right; else_branch=Nobody](yes, x)",
        NotFoundError,
        "Nobody",
    ),
    "a complex condition": Wrong(
        f"If[Tcond=complex64; {F}; then_branch=Right; else_branch=Twice](complex, x)",
        InvalidArgumentError,
        "complex64 cannot be converted to a boolean",
        "the process ends",
    ),
    "an unsigned condition": Wrong(
        f"StatelessIf[Tcond=uint16; {F}; then_branch=Right; else_branch=Twice](unsigned, x)",
        InvalidArgumentError,
        "uint16 cannot be converted to a boolean",
        "the process ends",
    ),
    "a loop with a complex condition": Wrong(
        "While[T={float}; cond=GivesComplex; body=Right](x)",
        InvalidArgumentError,
        "complex64 cannot be converted to a boolean",
    ),
    "a loop with a half condition": Wrong(
        "StatelessWhile[T={float}; cond=GivesHalf; body=Right](x)",
        InvalidArgumentError,
        "half cannot be converted to a boolean",
    ),
    "a loop without a body": Wrong(
        "While[T={float}; cond=Right; body=Nobody](x)", NotFoundError, "Nobody"
    ),
    "a loop without a condition": Wrong(
        "While[T={float}; cond=Nobody; body=Right](x)", NotFoundError, "Nobody"
    ),
    "several indices": Wrong(
        f"Case[{F}; branches=Right Twice](several, x)",
        InvalidArgumentError,
        "branch_index must be scalar",
        "the process ends",
    ),
    "an index in a list": Wrong(
        f"StatelessCase[{F}; branches=Right Twice](one, x)",
        InvalidArgumentError,
        "branch_index must be scalar",
    ),
    "a case that is nowhere": Wrong(
        f"Case[{F}; branches=Right Nobody](zero, x)", NotFoundError, "Nobody"
    ),
    "the gradient of nothing": Wrong(
        "SymbolicGradient[Tin={float, float}; Tout={float}; f=Nobody](x, y)",
        NotFoundError,
        "Nobody",
    ),
    "a remote function that is nowhere": Wrong(
        f"RemoteCall[{F}; f=Nobody](device, x)", NotFoundError, "Nobody"
    ),
}


def model(wrong: Wrong) -> GraphDef:
    """The graph of a wrong call, whose inputs are fed."""
    line, _, branches = wrong.line.partition("branches=")
    if branches:
        names, _, inputs = branches.partition("]")
        line = f"{line.removesuffix('; ')}]{inputs}"
    call = node(f"call = {line}")
    for name in names.split() if branches else ():
        call.attr["branches"].list.func.add(name=name)
    made = GraphDef()
    made.versions.producer = 1000
    made.library.function.extend(FUNCTIONS.values())
    for name in dict.fromkeys(call.input):
        placed = made.node.add(name=name, op="Placeholder")
        value = MORE_VALUES[name]
        placed.attr["dtype"].type = as_dtype(value.dtype)
        placed.attr["shape"].shape.unknown_rank = True
    made.node.append(call)
    return made


@pytest.fixture(autouse=True)
def more_values(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in MORE_VALUES.items():
        monkeypatch.setitem(VALUES, name, value)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "traced"])
@pytest.mark.parametrize("name", TABLE)
def test_wrong_calls_are_told_alike(name: str, way: str) -> None:
    wrong = TABLE[name]
    with pytest.raises(OpError) as raised:
        WAYS[way](model(wrong))
    assert isinstance(raised.value, wrong.error), raised.value
    assert wrong.fact in raised.value.message
    assert "Error:" not in raised.value.message, "of Python's"


@pytest.mark.parametrize("name", TABLE)
def test_constant_inputs_change_nothing(name: str) -> None:
    """What is folded is refused alike."""
    made = model(TABLE[name])
    for one in made.node[:-1]:
        constant = opkernel.types.tensor_to_proto(MORE_VALUES[one.name])
        del one.attr["shape"]
        one.op = "Const"
        one.attr["value"].tensor.CopyFrom(constant)
    with pytest.raises(TABLE[name].error, match=TABLE[name].fact):
        in_session(made)


def is_found_by_a_step_alone(name: str) -> bool:
    wrong = TABLE[name]
    of_values = "be converted" in wrong.fact or "index" in name or "indices" in name
    return of_values or wrong.error is ResourceExhaustedError


@pytest.mark.parametrize("name", [name for name in TABLE if not is_found_by_a_step_alone(name)])
def test_no_program_is_written_of_a_function_that_is_nowhere(name: str) -> None:
    wrong = TABLE[name]
    graph = imported(model(wrong))
    inputs = [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]
    with pytest.raises((wrong.error, UnimplementedError)):
        decompile(inputs, [graph.get_tensor_by_name("call:0")], "A model")


@pytest.mark.parametrize("f", ["Itself", "Ping"])
def test_gradients_of_functions_that_never_end_are_refused(f: str) -> None:
    graph = imported(model(Wrong(f"PartitionedCall[{F}; f={f}](x)", InternalError, "")))
    x, y = (graph.get_tensor_by_name(name) for name in ("x:0", "call:0"))
    with graph.as_default(), pytest.raises(ResourceExhaustedError, match="too deep"):
        opkernel.gradients([y], [x])


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", [name for name, wrong in TABLE.items() if not wrong.harsh])
def test_codes_are_those_of_tensorflow(tf: Any, name: str) -> None:
    """Where TensorFlow's Python finds it, at import, it is a ValueError or a TypeError."""
    wrong = TABLE[name]
    made = model(wrong)
    feeds = {one.name: MORE_VALUES[one.name] for one in made.node if one.op == "Placeholder"}
    theirs = tf.compat.v1.GraphDef.FromString(made.SerializeToString())
    of_python = (ValueError, TypeError) if wrong.error is InvalidArgumentError else (TypeError,)
    with pytest.raises((tf.errors.OpError, *of_python)) as raised:
        run_by_tensorflow(tf, theirs, {f"{feed}:0": value for feed, value in feeds.items()})
    if isinstance(raised.value, tf.errors.OpError):
        assert raised.value.error_code == wrong.error.code
