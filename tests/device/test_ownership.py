"""Nobody takes an array over by counting references where counts do not mean ownership."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import OpKernel, raw_ops
from opkernel.device.ownership import (
    counts_mean_ownership,
    is_whole,
    others,
    others_of_a_local,
)
from opkernel.kernel import forget_recycled, intra_op_parallelism, recycled
from opkernel.kernel import global_kernel_registry as kernels
from opkernel.opdef import unchanged_shape
from opkernel.runtime.plan import tiled

X = np.linspace(-1, 1, 200_000, dtype=np.float32)
LARGE = (8 << 20,)
F32 = np.dtype(np.float32)


@contextmanager
def traced() -> Iterator[None]:
    """A tracer that holds all frames that it sees, and what their locals refer to."""
    held: list[Any] = []

    def trace(frame: Any, event: str, arg: Any) -> Any:
        held.append((frame, dict(frame.f_locals)))
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


@contextmanager
def profiled() -> Iterator[None]:
    sys.setprofile(lambda frame, event, arg: None)
    try:
        yield
    finally:
        sys.setprofile(None)


@contextmanager
def patched(name: str, value: Any) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"opkernel.device.ownership.{name}", value)
        yield


Mode = Callable[[], AbstractContextManager[None]]
MODES: dict[str, Mode] = {
    "traced": traced,
    "profiled": profiled,
    "without Python's lock": lambda: patched("_has_lock", lambda: False),
    "a debugger by sys.monitoring": lambda: patched("_tool", {0: "debugger"}.get),
}
every_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


@pytest.fixture(autouse=True)
def nobody_looks_on() -> Iterator[None]:
    """Without the tracer of a debugger or of a measurement of coverage."""
    tracer, profiler = sys.gettrace(), sys.getprofile()
    sys.settrace(None)
    sys.setprofile(None)
    yield
    sys.settrace(tracer)
    sys.setprofile(profiler)
    forget_recycled()


@pytest.fixture
def taken() -> Iterator[list[bool]]:
    """Whether each computation of the op `OwnershipNegated` took over its input."""
    noted: list[bool] = []

    class Negated(OpKernel):
        forwards_inputs = True

        def compute(self, ctx: Any) -> None:
            y, index = ctx.forward_input_or_allocate_output([0], 0, np.shape(ctx.input(0)))
            noted.append(index == 0)
            np.negative(ctx.input(0), out=y)

    opkernel.register_op(
        "OwnershipNegated", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape
    )
    opkernel.register_kernel("OwnershipNegated", device="CPU")(Negated)
    yield noted
    for registration in kernels().registrations_for("OwnershipNegated"):
        kernels().unregister(registration)


def test_what_counts_say() -> None:
    array = np.zeros(3)
    assert others([array], 0) == 1
    assert others({"a": np.zeros(3)}, "a") == 0
    holder = [np.zeros(3)]
    view = holder[0][1:]
    assert others(holder, 0) == 1
    del view
    assert others(holder, 0) == 0


@pytest.mark.parametrize(
    ("array", "may_be_taken"),
    [
        (np.zeros((2, 3)), True),
        (np.zeros(0), True),
        (np.zeros((2, 3))[:], False),
        (np.zeros((2, 3)).T, False),
        (np.asfortranarray(np.zeros((2, 3)).copy("F")), False),
        (np.broadcast_to(1.0, 3), False),
        (np.float32(1), False),
        ([1.0], False),
        (None, False),
    ],
)
def test_which_memory_may_be_taken_over(array: Any, may_be_taken: bool) -> None:
    assert is_whole(array) is may_be_taken


def test_memory_that_may_not_be_written_to_is_not_taken_over() -> None:
    array = np.zeros(3)
    array.setflags(write=False)
    assert not is_whole(array)


def test_a_local_of_a_caller_is_counted_as_it_is_called() -> None:
    """So a plan that calls an object with one of its locals knows which count means nobody else."""

    class Called:
        def __call__(self, *inputs: Any) -> int:
            return others(inputs, 0)

    called, x = Called(), np.empty(0)
    assert called(x) == others_of_a_local()
    kept = [x]
    assert called(x) == others_of_a_local() + len(kept)


@every_mode
def test_where_they_say_nothing(mode: Mode) -> None:
    assert counts_mean_ownership()
    with mode():
        assert not counts_mean_ownership()
    assert counts_mean_ownership()


@pytest.mark.parametrize("executor_type", ["", "DATAFLOW"])
@every_mode
def test_forwarding_and_tiles(
    mode: Mode, executor_type: str, taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that forwards, and a group of element-wise nodes whose operand dies."""
    new: list[Any] = []

    def noted(*args: Any) -> Any:
        new.append(args)
        return recycled(*args)

    monkeypatch.setattr(tiled, "recycled", noted)
    with opkernel.Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[1, X.size], name="x")
        y = graph.create_op("OwnershipNegated", [x]).outputs[0]
        for number in range(4):
            y = raw_ops.AddV2(x=raw_ops.Mul(x=y, y=np.float32(3)), y=np.float32(number))
        y = graph.create_op("OwnershipNegated", [y]).outputs[0]
    value = X[np.newaxis].copy()
    expected = -value
    for number in range(4):
        expected = expected * 3 + number
    session = opkernel.Session(graph, optimize=False, executor_type=executor_type)
    with session, intra_op_parallelism(1):  # a helper may keep its task for a moment
        session.run(y, {x: value})
        for where, is_on in ((nullcontext, True), (mode, False), (nullcontext, True)):
            taken.clear()
            new.clear()
            with where():
                result = session.run(y, {x: value})
            np.testing.assert_allclose(result, -expected, rtol=1e-5)
            np.testing.assert_array_equal(value[0], X)
            assert taken == [False, is_on]  # what is fed is the caller's
            assert len(new) == (0 if is_on or executor_type else 1)


@every_mode
def test_dead_arrays_are_not_given_out_again(mode: Mode) -> None:
    place = recycled(LARGE, F32).ctypes.data
    with mode():
        kept = recycled(LARGE, F32)
        assert kept.ctypes.data != place


@pytest.mark.parametrize("mode", [nullcontext, *MODES.values()], ids=["plain", *MODES])
def test_what_was_read_of_a_variable_stays(mode: Mode) -> None:
    with opkernel.Graph().as_default() as graph:
        handle = raw_ops.VarHandleOp(dtype=opkernel.float32, shape=[3], shared_name="owned")
        start = raw_ops.AssignVariableOp(resource=handle, value=np.zeros(3, np.float32))
        add = raw_ops.AssignAddVariableOp(resource=handle, value=np.ones(3, np.float32))
        read = raw_ops.ReadVariableOp(resource=handle, dtype=opkernel.float32)
    with opkernel.Session(graph) as session:
        session.run(start)
        values = []
        with mode():
            for _ in range(3):
                session.run(add)
                values.append(session.run(read))
    assert [value.tolist() for value in values] == [[1] * 3, [2] * 3, [3] * 3]


_IMPORTED_UNDER_A_TRACER = """
import inspect
import sys
import numpy as np
def trace(frame, event, arg):
    code = frame.f_code
    if "opkernel" in code.co_filename and code.co_flags & inspect.CO_OPTIMIZED:
        frame.f_locals  # of functions: 3.12 breaks comprehensions of modules whose frames are looked at
    return trace
sys.settrace(trace)
import opkernel.runtime.plan.tiled
from opkernel.kernel import ContextParams, OpKernelContext, Step, create_op_kernel, recycled
from opkernel.ops.variables.var import writing
from opkernel.kernel.context.inputs import TensorRef
from opkernel.proto import NodeDef
from opkernel.runtime import CPU
from opkernel.types import float32
node = NodeDef(name="n", op="Neg", input=["x"])
node.attr["T"].type = 1
kernel = create_op_kernel(CPU, node)
sys.settrace(None)
seen = np.ones(4, np.float32)
assert OpKernelContext(kernel, [seen], Step()).forward_input(0, 0, float32, [4]) is None
assert OpKernelContext(kernel, [np.ones(4, np.float32)], Step()).forward_input(
    0, 0, float32, [4]) is not None
ref = TensorRef(seen)
with writing(ref) as array:
    array[:] = 2
assert seen.tolist() == [1, 1, 1, 1]
large = recycled((8 << 20,), np.dtype(np.float32))
assert recycled((8 << 20,), np.dtype(np.float32)) is not large
"""


def test_what_counts_mean_is_found_out_under_a_tracer_too() -> None:
    """A tracer's references were not to be taken for those of whoever is asked."""
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED_UNDER_A_TRACER], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
