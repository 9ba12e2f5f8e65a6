"""Wrong kernels, ways of calling, claims: a kernel's fault is told in the same words whoever calls it."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import opkernel
from opkernel import KernelContract, OpKernel, Session, raw_ops
from opkernel.errors import NotFoundError, OpError
from opkernel.kernel import global_kernel_registry
from opkernel.opdef import unchanged_shape
from opkernel.testing import CheckFailure, check_op

NUMBERS = itertools.count()
X = np.array([[1, 2, 4], [8, 16, 32]], np.float32)
KEPT: dict[tuple[int, ...], Any] = {}
UNCLAIMED, CLAIMED = KernelContract(), KernelContract(outputs_as_declared=True)
MUST_BE_NEW = (
    'its contract does not say may_alias, its registration does not say kind="view": it must '
    "give new memory, such as a copy"
)
WRITES = "read-only; it must declare forwarding (forwards_inputs), or copy"


def keeps(x: Any) -> Any:
    return KEPT.setdefault(x.shape, np.ones(x.shape, np.float32))


def in_place(x: Any) -> Any:
    x += 1
    return x


async def late(x: Any) -> Any:
    return x.astype(np.float64)


async def fails_late(x: Any) -> Any:
    raise KeyError("late")


def raising(error: type[Exception]) -> Callable[..., Any]:
    def kernel(x: Any) -> Any:
        raise error("on purpose")

    return kernel


def computing(compute: Callable[[Any], object]) -> type[OpKernel]:
    """A class with this `compute`."""
    return type("Wrong", (OpKernel,), {"compute": lambda self, ctx: compute(ctx)})


def writes(ctx: Any) -> None:
    in_place(ctx.input(0))


def two_shapes(c: Any) -> None:
    c.set_output(0, c.input(0))
    c.set_output(1, c.input(0))


class Fault(NamedTuple):
    """A kernel of an op of `x` with outputs of its shape, and what is said of it."""

    kernel: Any
    what: str
    outputs: int = 1


SET = "output 0 must be float, the kernel set "
FAULTS = {
    "None": Fault(lambda x: None, SET + "None"),
    "a list": Fault(lambda x: [x], SET + "a list"),
    "a number of Python": Fault(lambda x: 2.0, SET + "a float"),
    "another type": Fault(lambda x: x.astype(np.float64), SET + "float64"),
    "another rank": Fault(lambda x: x[None] + 1, "gives output 0 the shape [1"),
    "one array for two": Fault(lambda x: x + 1, "2 outputs expected, the kernel gave one array", 2),
    "rows for two": Fault(
        lambda x: np.stack([x, x]), "2 outputs expected, the kernel gave one array", 2
    ),
    "a dict for two": Fault(
        lambda x: {"y": x, "z": x}, "2 outputs expected, the kernel gave a dict", 2
    ),
    "three for two": Fault(lambda x: (x + 1,) * 3, "2 outputs expected, the kernel gave 3", 2),
    "nothing for two": Fault(lambda x: (), "2 outputs expected, the kernel gave 0", 2),
    "None among two": Fault(
        lambda x: (x + 1, None), "output 1 must be float, the kernel set None", 2
    ),
    "a view": Fault(lambda x: x[...], f"gives memory of input 0 as output 0; {MUST_BE_NEW}"),
    "its own array": Fault(keeps, f"gives an array that it keeps as output 0; {MUST_BE_NEW}"),
    "writes": Fault(in_place, WRITES),
    "a class that writes": Fault(computing(writes), WRITES),
    "a class that forgets": Fault(computing(lambda ctx: None), "did not set output 0"),
    "a class that sets too many": Fault(
        computing(lambda ctx: ctx.set_output(3, ctx.input(0))), "sets output 3, and its op has 1"
    ),
    "a class with another type": Fault(
        computing(lambda ctx: ctx.set_output(0, ctx.input(0).astype(np.float64))), SET + "float64"
    ),
    "a class with another rank": Fault(
        computing(lambda ctx: ctx.set_output(0, ctx.input(0)[None])), "gives output 0 the shape [1"
    ),
    "a coroutine with another type": Fault(late, SET + "float64"),
}
ERRORS = {
    **{
        one.__name__: Fault(raising(one), f"{one.__name__}: on purpose")
        for one in (
            *(RuntimeError, AssertionError, ZeroDivisionError, ValueError, TypeError),
            *(AttributeError, IndexError, MemoryError, StopIteration, np.linalg.LinAlgError),
        )
    },
    "KeyError": Fault(raising(KeyError), "KeyError: 'on purpose'"),
    "RecursionError": Fault(raising(RecursionError), "on purpose"),
    "OpError": Fault(raising(NotFoundError), "on purpose"),
    "coroutine": Fault(fails_late, "KeyError: 'late'"),
}


def graph_of(name: str, is_constant: bool) -> tuple[opkernel.Graph, list[Any]]:
    with opkernel.Graph().as_default() as graph:
        x: Any = raw_ops.Placeholder(dtype=opkernel.float32, name="x")
        op = graph.create_op(name, [opkernel.graph.constant(X) if is_constant else x], name="mine")
        return graph, [raw_ops.Identity(input=output) for output in op.outputs]


def in_session(name: str, x: Any, is_constant: bool = False, **options: Any) -> None:
    graph, fetches = graph_of(name, is_constant)
    with Session(graph, **options) as session:
        session.run(fetches, {} if is_constant else {"x:0": x})


def callable_of(name: str, x: Any) -> None:
    graph, fetches = graph_of(name, False)
    with Session(graph) as session:
        session.make_callable(fetches, ["x:0"])(x)


WAYS: dict[str, Callable[[str, Any], Any]] = {
    "session": in_session,
    "callable": callable_of,
    "dataflow": lambda name, x: in_session(name, x, executor_type="DATAFLOW"),
    "traced function": lambda name, x: opkernel.function(lambda x: getattr(raw_ops, name)(x=x))(x),
    "eager": lambda name, x: getattr(raw_ops, name)(x=x),
    "constant folding": lambda name, x: in_session(name, x, True, optimize=True),
    "opkernel test": lambda name, x: check_op(name, max_examples=5),
}
VERIFIED = {
    "sanitize": lambda name, x: in_session(name, x, sanitize=True),
    "opkernel test": WAYS["opkernel test"],
}


@pytest.fixture
def declare() -> Iterator[Callable[..., str]]:
    """Declares an op for a fault and registers its kernel; gives its name."""
    kernels = global_kernel_registry()
    before = set(kernels.registrations())

    def made(fault: Fault, contract: KernelContract = UNCLAIMED) -> str:
        name = f"Wrong{next(NUMBERS)}"
        outputs = ["y: float", "z: float"][: fault.outputs]
        shape_fn = unchanged_shape if fault.outputs == 1 else two_shapes
        opkernel.register_op(name, inputs=["x: float"], outputs=outputs, shape_fn=shape_fn)
        opkernel.register_kernel(name, device="CPU", contract=contract)(fault.kernel)
        return name

    yield made
    for registration in set(kernels.registrations()) - before:
        if registration.kernel_def.op.startswith("Wrong"):
            kernels.unregister(registration)


def told(way: Callable[[str, Any], Any], name: str) -> str:
    """What a way of calling says of a wrong kernel, which leaves the caller's array alone."""
    x = X.copy()
    with pytest.raises((OpError, CheckFailure)) as caught:
        way(name, x)
    np.testing.assert_array_equal(x, X)
    error = caught.value
    if isinstance(error, CheckFailure):
        return error.what
    assert isinstance(error, OpError)
    if not error.message.startswith(f"{name} was not tested"):
        assert error.message.startswith(f"{name}: ")
        assert error.node in ("mine", name)
    return error.message


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", [*FAULTS, *ERRORS])
def test_without_claims_every_way_says_the_same(
    fault: str, way: str, declare: Callable[..., str]
) -> None:
    wrong = (FAULTS | ERRORS)[fault]
    assert wrong.what in told(WAYS[way], declare(wrong))


def without_node(message: str, name: str) -> str:
    return message.removeprefix(f"{name}: ").partition(" (node ")[0]


@pytest.mark.parametrize("fault", [*FAULTS, *ERRORS])
def test_the_words_are_the_same_to_the_letter(fault: str, declare: Callable[..., str]) -> None:
    """But for the names of nodes, in all ways that run the kernel on one and the same array."""
    name = declare((FAULTS | ERRORS)[fault])
    ways = [way for way in WAYS if way != "opkernel test"]
    assert len({without_node(told(WAYS[way], name), name) for way in ways}) == 1


@pytest.mark.parametrize("way", VERIFIED)
@pytest.mark.parametrize("fault", FAULTS)
def test_false_claims_are_found_in_the_same_words(
    fault: str, way: str, declare: Callable[..., str]
) -> None:
    assert FAULTS[fault].what in told(VERIFIED[way], declare(FAULTS[fault], CLAIMED))


@pytest.mark.parametrize("way", [*WAYS, "sanitize"])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_environment_has_false_claims_found(
    fault: str, way: str, declare: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opkernel.kernel.registry.create._CHECKS_CONTRACTS", True)
    assert FAULTS[fault].what in told((WAYS | VERIFIED)[way], declare(FAULTS[fault], CLAIMED))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", [*ERRORS, "writes", "a class that writes"])
def test_claims_change_nothing_about_errors(
    fault: str, way: str, declare: Callable[..., str]
) -> None:
    wrong = (FAULTS | ERRORS)[fault]
    assert wrong.what in told(WAYS[way], declare(wrong, CLAIMED))


@pytest.mark.parametrize("way", [way for way in WAYS if way != "opkernel test"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_false_claim_ends_in_an_op_error_or_is_believed(
    fault: str, way: str, declare: Callable[..., str]
) -> None:
    name, x = declare(FAULTS[fault], CLAIMED), X.copy()
    node: str | None = name
    try:
        WAYS[way](name, x)
    except OpError as error:
        node = error.node
    assert node in ("mine", name, "Identity", "Identity_1") or way == "callable"
    np.testing.assert_array_equal(x, X)


def test_inputs_from_other_nodes_are_safe_too(declare: Callable[..., str]) -> None:
    name = declare(FAULTS["writes"])
    with opkernel.Graph().as_default() as graph:
        doubled = raw_ops.Mul(x=raw_ops.Placeholder(dtype=opkernel.float32, name="x"), y=2.0)
        wrong = graph.create_op(name, [doubled]).outputs[0]
    for executor in ("", "DATAFLOW"):
        session = Session(graph, executor_type=executor)
        with session, pytest.raises(OpError, match="writes to an input"):
            session.run([wrong, doubled], {"x:0": X})


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("way", ["session", "dataflow", "traced function", "eager"])
def test_interrupts_pass(way: str, error: type[BaseException], declare: Callable[..., str]) -> None:
    name = declare(Fault(raising(error), ""))  # type: ignore[arg-type]  # not only Exceptions
    with pytest.raises(error):
        WAYS[way](name, X.copy())


@pytest.mark.parametrize("fault", ERRORS)
def test_what_no_fetch_needs_is_not_told(fault: str, declare: Callable[..., str]) -> None:
    graph, _ = graph_of(declare(ERRORS[fault]), is_constant=True)
    with graph.as_default():
        other = raw_ops.Neg(x=opkernel.graph.constant(X))
    with Session(graph, optimize=True) as session:
        np.testing.assert_array_equal(session.run(other), -X)


@pytest.mark.parametrize("contract", [KernelContract(may_alias=True), KernelContract()])
def test_views_that_are_claimed_and_inputs_as_they_are_pass(
    contract: KernelContract, declare: Callable[..., str]
) -> None:
    kernel = (lambda x: x[...]) if contract.may_alias else (lambda x: x)
    name = declare(Fault(kernel, ""), contract)
    for way in WAYS.values():
        way(name, X.copy())
