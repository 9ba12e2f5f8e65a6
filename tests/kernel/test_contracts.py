"""What kernels claim is believed and can be verified; what they do not claim is checked at every call."""

import copy
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import opkernel
from opkernel import KernelContract, OpKernel, Session, raw_ops
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.graph import graph_to_function_def
from opkernel.kernel import FunctionKernel, global_kernel_registry
from opkernel.opdef import unknown_shape
from opkernel.opdef.common_shapes import broadcast_binary_op_shape
from opkernel.testing import CheckFailure, check_op
from opkernel.testing.op_runs import make_kernel

NUMBERS = itertools.count()
X = np.array([[1, 2, 4], [8, 16, 32]], np.float32)
ONE, TWO = ["y: float"], ["y: float", "z: float"]
MANY = ["y: N * float", "n: int32"]
CLAIMED = KernelContract(outputs_as_declared=True)


@pytest.fixture
def declare() -> Iterator[Callable[..., str]]:
    """Declares an op of its own and registers its kernel; gives its name."""
    kernels = global_kernel_registry()
    before = set(kernels.registrations())

    def made(kernel: Any, contract: KernelContract = KernelContract(), **declared: Any) -> str:  # noqa: B008  # frozen
        name = f"Contract{next(NUMBERS)}"
        wanted: dict[str, Any] = {"inputs": ["x: float"], "outputs": ONE}
        wanted["shape_fn"] = unknown_shape
        wanted["attrs"] = ["N: int >= 1 = 2"] if "N *" in str(declared) else []
        opkernel.register_op(name, **(wanted | declared))
        opkernel.register_kernel(name, device="CPU", contract=contract)(kernel)
        return name

    yield made
    for registration in set(kernels.registrations()) - before:
        if registration.kernel_def.op.startswith("Contract"):
            kernels.unregister(registration)


# Without a claim


class Unset(OpKernel):
    """Sets its output by the list itself, past the methods that check."""

    def compute(self, ctx: Any) -> None:
        ctx.outputs[0] = np.float64(1)


async def late(x: Any) -> Any:
    return x.astype(np.int64)


FAULTS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "type": (lambda x: x.astype(np.float64), {}, "output 0 must be float, the kernel set float64"),
    "ufunc": (np.isfinite, {}, "output 0 must be float, the kernel set bool"),
    "no array": (lambda x: x.tolist(), {}, "output 0 must be float, the kernel set a list"),
    "number": (lambda x: 2.0, {}, "output 0 must be float, the kernel set a float"),
    "nothing": (lambda x: None, {}, "output 0 must be float, the kernel set None"),
    "one for two": (lambda x: (x,), {"outputs": TWO}, "2 outputs expected, the kernel gave 1"),
    "three for two": (
        lambda x: (x,) * 3,
        {"outputs": TWO},
        "2 outputs expected, the kernel gave 3",
    ),
    "a generator": (
        lambda x: (part for part in (x, x)),
        {"outputs": TWO},
        "2 outputs expected, the kernel gave a generator",
    ),
    "none for two": (lambda x: None, {"outputs": TWO}, "2 outputs expected, the kernel gave None"),
    "the second": (
        lambda x: (x, x.size),
        {"outputs": ["y: float", "n: int32"]},
        "output 1 must be int32, the kernel set a int",
    ),
    "too long a list": (
        lambda x: ([x, x, x], np.int32(3)),
        {"outputs": MANY},
        "2 outputs expected, the kernel gave 3",
    ),
    "in a list": (
        lambda x: ([x, x.astype(np.float16)], np.int32(3)),
        {"outputs": MANY},
        "output 1 must be float, the kernel set float16",
    ),
    "class": (Unset, {}, "output 0 must be float, the kernel set float64"),
    "coroutine": (late, {}, "output 0 must be float, the kernel set int64"),
}


def in_graph(name: str, x: Any) -> Any:
    return opkernel.graph.get_default_graph().create_op(name, [x], name="mine")


def placeholder() -> Any:
    return raw_ops.Placeholder(dtype=opkernel.float32, name="x")


def in_session(name: str, **options: Any) -> None:
    with opkernel.Graph().as_default() as graph:
        op = in_graph(name, placeholder())
    with Session(graph, **options) as session:
        session.run(op.outputs, {"x:0": X})


def folded(name: str) -> None:
    with opkernel.Graph().as_default() as graph:
        op = in_graph(name, opkernel.graph.constant(X))
        fetches = [raw_ops.Identity(input=output) for output in op.outputs]
    with Session(graph, optimize=True) as session:
        session.run(fetches)


def in_function(name: str) -> None:
    with opkernel.Graph().as_default() as body:
        op = in_graph(name, placeholder())
    with opkernel.Graph().as_default() as graph:
        inputs, outputs = [body.get_tensor_by_name("x:0")], op.outputs
        graph.function_library.add_function(graph_to_function_def(body, "Body", inputs, outputs))
        call = graph.create_op("Body", [placeholder()])
    with Session(graph) as session:
        session.run(call.outputs, {"x:0": X})


WAYS: dict[str, Callable[[str], Any]] = {
    "session": in_session,
    "session that can be stopped": lambda name: in_session(
        name, config=opkernel.runtime.SessionConfig(operation_timeout_in_ms=60_000)
    ),
    "dataflow": lambda name: in_session(name, executor_type="DATAFLOW"),
    "threads": lambda name: in_session(name, inter_op_threads=2),
    "function of a library": in_function,
    "traced function": lambda name: opkernel.function(lambda x: getattr(raw_ops, name)(x=x))(X),
    "eager": lambda name: getattr(raw_ops, name)(x=X),
    "constant folding": folded,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_kernel_without_claims_is_checked_in_every_way(
    fault: str, way: str, declare: Callable[..., str]
) -> None:
    kernel, declared, what = FAULTS[fault]
    name = declare(kernel, **declared)
    with pytest.raises(InternalError) as caught:
        WAYS[way](name)
    message = caught.value.message
    assert message.startswith(f"{name}: {what} (node '"), message


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("outputs", [ONE, TWO, MANY, [], ["ys: N * float"]])
def test_what_is_right_passes_in_every_way(
    outputs: list[str], way: str, declare: Callable[..., str]
) -> None:
    results = {
        "y: float": X,
        "z: float": -X,
        "y: N * float": [X, -X],
        "n: int32": np.int32(6),
        "ys: N * float": [X, X],
    }

    def kernel(x: Any) -> Any:
        given = [copy.deepcopy(results[output]) for output in outputs]
        return given[0] if len(given) == 1 else tuple(given)

    WAYS[way](declare(kernel, outputs=outputs))


@pytest.mark.parametrize("way", WAYS)
def test_a_function_without_claims_may_hand_on_an_input_as_it_is(
    way: str, declare: Callable[..., str]
) -> None:
    WAYS[way](declare(lambda x: x))
    WAYS[way](declare(lambda x: (x, x), outputs=TWO))


# With a claim


class Lie(NamedTuple):
    """A kernel of an op of `x`, or of `x` and `other`, that does not do what it claims."""

    kernel: Any
    contract: KernelContract
    what: str
    inputs: Any = ("x: float",)
    outputs: Any = tuple(ONE)


def of_matrices(x: Any) -> Any:
    if x.ndim != 2:
        raise InvalidArgumentError("matrices only")
    return x * 2


def fills_nothing(x: Any, *, out: Any = None) -> Any:
    return x * 2


def reads_after_it_wrote(x: Any, other: Any, *, out: Any = None) -> Any:
    out = np.empty(np.broadcast_shapes(x.shape, other.shape), np.float32) if out is None else out
    out[...] = x * 2
    out += other
    return out


class WritesUnasked(OpKernel):
    """Takes for granted that it may write to its input."""

    def compute(self, ctx: Any) -> None:
        x = ctx.input(0)
        if x.ndim:
            x[...] = 7
        ctx.set_output(0, x + 1)


class WrongInPlace(OpKernel):
    """Reads an input again that it has written over."""

    forwards_inputs = True

    def compute(self, ctx: Any) -> None:
        y, _ = ctx.forward_input_or_allocate_output([0], 0, np.shape(ctx.input(0)))
        np.add(ctx.input(0), 1, out=y)
        np.add(ctx.input(0), y, out=y)


PAIR = ("x: float", "other: float")
LIES = {
    "type": Lie(lambda x: np.asarray(x, np.float64), CLAIMED, "float64"),
    "no array": Lie(lambda x: x.tolist(), CLAIMED, "a list|a float"),
    "number": Lie(lambda x: (x + 1,), CLAIMED, "2 outputs expected", outputs=tuple(TWO)),
    "new memory": Lie(lambda x: x[...], CLAIMED, "gives memory of input 0 as output 0"),
    "the other's memory": Lie(
        lambda x, other: other[...],
        KernelContract(may_alias=frozenset({("y", "x")})),
        "gives memory of input 1 as output 0",
        PAIR,
    ),
    "elementwise, and sums": Lie(
        lambda x: x - x.sum(dtype=np.float32),
        KernelContract(elementwise=True),
        "claims to be elementwise, and gives other values for parts of the inputs",
    ),
    "elementwise, and looks at places": Lie(
        lambda x: x + np.arange(x.size, dtype=np.float32).reshape(x.shape),
        KernelContract(outputs_as_declared=True, elementwise=True),
        "claims to be elementwise, and gives other values for parts of the inputs",
    ),
    "elementwise, and refuses parts": Lie(
        of_matrices,
        KernelContract(elementwise=True),
        "claims to be elementwise, and raises InvalidArgumentError",
    ),
    "elementwise, and does not broadcast": Lie(
        lambda x, other: x * other.sum(dtype=np.float32),
        KernelContract(elementwise=True),
        "claims to be elementwise, and gives",
        PAIR,
    ),
    "of one shape, and sums": Lie(
        lambda x, other: x * other.sum(dtype=np.float32),
        KernelContract(elementwise=True, same_shapes=True),
        "claims to be elementwise, and gives other values for parts of the inputs",
        PAIR,
    ),
    "does not fill out": Lie(
        fills_nothing, KernelContract(takes_out=True), "claims takes_out, and does not return it"
    ),
    "out is an input": Lie(
        reads_after_it_wrote,
        KernelContract(outputs_as_declared=True, elementwise=True, takes_out=True),
        "claims takes_out, and gives other values in the place of input 1",
        PAIR,
    ),
    "writes unasked": Lie(
        WritesUnasked, KernelContract(forwards_inputs=True), "writes to (an )?input"
    ),
    "wrong in place": Lie(
        WrongInPlace, CLAIMED, "claims forwards_inputs, and gives other values where it takes over"
    ),
}


def run_lie(name: str, lie: Lie, way: str = "session", **options: Any) -> None:
    """One computation of a lie."""
    values = [X.copy(), X.copy()][: len(lie.inputs)]
    if way == "eager":
        getattr(raw_ops, name)(**{"x": values[0], **({"other": X} if values[1:] else {})})
        return
    with opkernel.Graph().as_default() as graph:
        fed = [raw_ops.Placeholder(dtype=opkernel.float32) for _ in values]
        op = graph.create_op(name, fed, name="mine")
    with Session(graph, **options) as session:
        session.run(op.outputs, dict(zip(fed, values, strict=True)))


@pytest.mark.parametrize("lie", LIES)
class TestLies:
    def declared(self, declare: Callable[..., str], lie: str) -> str:
        kernel, contract, _, inputs, outputs = LIES[lie]
        return declare(kernel, contract, inputs=inputs, outputs=outputs)

    def test_opkernel_test_finds_it(self, lie: str, declare: Callable[..., str]) -> None:
        name = self.declared(declare, lie)
        with pytest.raises(CheckFailure, match=LIES[lie].what):
            check_op(name)

    def test_a_sanitized_session_finds_it(self, lie: str, declare: Callable[..., str]) -> None:
        name = self.declared(declare, lie)
        with pytest.raises(InternalError, match=LIES[lie].what) as caught:
            run_lie(name, LIES[lie], sanitize=True)
        assert "node 'mine'" in caught.value.message

    @pytest.mark.parametrize("way", ["session", "DATAFLOW", "eager"])
    def test_the_environment_has_it_found(
        self, lie: str, way: str, declare: Callable[..., str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("opkernel.kernel.registry.create._CHECKS_CONTRACTS", True)
        name = self.declared(declare, lie)
        options = {"executor_type": way} if way == "DATAFLOW" else {}
        with pytest.raises(InternalError, match=LIES[lie].what) as caught:
            run_lie(name, LIES[lie], way, **options)
        assert caught.value.node == ("mine" if way != "eager" else name)


_IN_A_PROCESS = """
import numpy as np, opkernel
from opkernel.opdef import unchanged_shape
opkernel.register_op("Lies", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape)
claims = opkernel.KernelContract(outputs_as_declared=True)
opkernel.register_kernel("Lies", device="CPU", contract=claims)(lambda x: x.astype(np.float64))
print(opkernel.raw_ops.Lies(x=np.float32([1])).dtype)
"""


@pytest.mark.parametrize(
    ("value", "is_found"), [("1", True), ("0", False), ("", False), (None, False)]
)
def test_the_environment_variable(value: str | None, is_found: bool) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "OPKERNEL_CHECK_CONTRACTS"}
    environment |= {} if value is None else {"OPKERNEL_CHECK_CONTRACTS": value}
    done = subprocess.run(
        [sys.executable, "-c", _IN_A_PROCESS], env=environment, capture_output=True, text=True
    )
    assert (done.returncode != 0) is is_found
    assert "output 0 must be float, the kernel set float64" in done.stderr or not is_found


def honest(x: Any, other: Any, *, out: Any = None) -> Any:
    return np.add(x, other, out=out)


def test_what_is_claimed_holds_under_all_verifications(
    declare: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = KernelContract(outputs_as_declared=True, elementwise=True, takes_out=True)
    lie = Lie(honest, contract, "", PAIR)
    name = declare(honest, contract, inputs=PAIR, shape_fn=broadcast_binary_op_shape)
    check_op(name, max_examples=30)
    run_lie(name, lie, sanitize=True)
    monkeypatch.setattr("opkernel.kernel.registry.create._CHECKS_CONTRACTS", True)
    run_lie(name, lie)


def test_what_is_claimed_is_called_with_nothing_between(declare: Callable[..., str]) -> None:
    def kernel(x: Any) -> Any:
        return x * 2

    claimed, unclaimed = declare(kernel, CLAIMED), declare(kernel)
    for name, is_called in ((claimed, True), (unclaimed, False)):
        made = make_kernel(name, [X])
        assert isinstance(made, FunctionKernel)
        assert (made.function is kernel) is is_called


def test_hints_change_no_result(declare: Callable[..., str]) -> None:
    for expensive in (None, True, False):
        hints = KernelContract(expensive=expensive, releases_gil=True, prepares=("x",))
        name = declare(lambda x: x * 2, hints)
        assert make_kernel(name, [X]).is_expensive is (expensive is not False)
        np.testing.assert_array_equal(getattr(raw_ops, name)(x=X), X * 2)
