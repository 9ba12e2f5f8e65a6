"""Whether a function fits the node that calls it; the status codes are those of TensorFlow."""

import pytest
from tests.graph.function_builders import X_TIMES_TWO, define, graph_of, library_of

from opkernel.errors import InternalError, InvalidArgumentError, OpError
from opkernel.graph import Operation
from opkernel.graph.functions.calls import CallTypes, declared_types, misfit
from opkernel.proto import AttrValue, OpDef
from opkernel.types import DataType, as_dtype

TWO = define("F(x: float, n: int32) -> (y: float, m: int32)", y="x", m="n")
LINES = {
    "f": "call = PartitionedCall[Tin={float, int32}; Tout={float, int32}; f=F](x, n)",
    "then_branch": "call = If[Tcond=bool; Tin={float, int32}; Tout={float, int32}; "
    "then_branch=F; else_branch=F](p, x, n)",
    "cond": "call = While[T={float, int32}; cond=F; body=F](x, n)",
    "body": "call = While[T={float, int32}; cond=F; body=F](x, n)",
}


def call(attr: str) -> Operation:
    graph = graph_of(
        library_of(TWO),
        "x = Placeholder[dtype=float]()",
        "n = Placeholder[dtype=int32]()",
        "p = Placeholder[dtype=bool]()",
        LINES[attr],
    )
    return graph.get_operation_by_name("call")


def types(text: str) -> CallTypes:
    """`float, int32 -> bool`."""
    takes, gives = (
        [as_dtype(name.strip()) for name in part.split(",") if name.strip()]
        for part in text.split("->")
    )
    return takes, gives


@pytest.mark.parametrize(
    ("attr", "given"),
    [
        *((attr, "float, int32 -> float, int32") for attr in ("f", "then_branch", "body")),
        ("cond", "float, int32 -> bool"),
        ("cond", "float, int32 -> float"),
        ("f", None),
        ("cond", None),
    ],
)
def test_calls_that_fit(attr: str, given: str | None) -> None:
    """A function that cannot be instantiated says itself what is wrong."""
    assert misfit(call(attr), attr, "G", None if given is None else types(given)) is None


@pytest.mark.parametrize(
    ("attr", "given", "error", "message"),
    [
        ("f", "float -> float, int32", InvalidArgumentError, "takes 1 tensor(s), the call gives 2"),
        ("f", "float, int32, bool -> float, int32", InvalidArgumentError,
         "takes 3 tensor(s), the call gives 2"),
        ("f", "float, int64 -> float, int32", InvalidArgumentError,
         "takes int64 as tensor 1, the call gives int32"),
        ("f", "int32, float -> float, int32", InvalidArgumentError,
         "takes int32 as tensor 0, the call gives float"),
        ("f", "float, int32 -> float", InternalError, "gives 1 tensor(s), the call wants 2"),
        ("f", "float, int32 -> float, bool", InternalError,
         "gives bool as tensor 1, the call wants int32"),
        ("then_branch", "bool, float, int32 -> float, int32", InvalidArgumentError,
         "takes 3 tensor(s), the call gives 2"),
        ("then_branch", "float, int32 -> int32, int32", InternalError,
         "gives int32 as tensor 0, the call wants float"),
        ("body", "float, int32 -> float, bool", InvalidArgumentError,
         "gives bool as tensor 1, the call wants int32"),
        ("body", "int32 -> float, int32", InvalidArgumentError, "takes 1 tensor(s)"),
        ("cond", "float, int32 -> float, int32", InvalidArgumentError,
         "is the condition of a loop and must give 1 tensor, it gives 2"),
        ("cond", "float, int32 ->", InvalidArgumentError, "it gives 0"),
        ("cond", "float -> bool", InvalidArgumentError, "takes 1 tensor(s), the call gives 2"),
    ],
)  # fmt: skip
def test_calls_that_do_not(attr: str, given: str, error: type[OpError], message: str) -> None:
    found = misfit(call(attr), attr, "G", types(given))
    assert type(found) is error
    assert "Function 'G' " in str(found)
    assert message in str(found)


def test_types_follow_from_the_attrs_of_the_call() -> None:
    signature = X_TIMES_TWO.signature
    attrs = {"T": AttrValue(type=DataType.DT_INT32)}
    assert declared_types(signature, attrs) == types("int32 -> int32")
    assert declared_types(signature, {}) is None
    assert declared_types(signature, {"T": AttrValue(type=1000)}) is None


def test_a_reference_counts_as_what_it_refers_to() -> None:
    signature = OpDef(name="F")
    signature.input_arg.add(name="r", type=DataType.DT_FLOAT_REF)
    signature.output_arg.add(name="y", type=DataType.DT_INT32, is_ref=True)
    assert declared_types(signature, {}) == types("float -> int32")
    graph = graph_of(
        library_of(TWO),
        "v = VariableV2[dtype=float]()",
        "n = Placeholder[dtype=int32]()",
        LINES["f"].replace("(x", "(v"),
    )
    fitting = types("float, int32 -> float, int32")
    assert misfit(graph.get_operation_by_name("call"), "f", "G", fitting) is None
