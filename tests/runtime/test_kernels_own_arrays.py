"""What a kernel keeps is its own, wherever it keeps it and whichever way it is called."""

import re
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.runtime.array_owners import check_equal, write_over
from tests.runtime.dataflow.loop_builders import FLOAT, Builder
from tests.runtime.dataflow.test_functions import define

import opkernel
from opkernel import raw_ops
from opkernel.decompile import decompile
from opkernel.errors import InternalError
from opkernel.opdef import unknown_shape

KEPT = np.arange(6, dtype=np.float32)
WHOLE = KEPT.copy()
"""What the arrays of kernels hold, which nobody may change."""
BUFFER = bytearray(KEPT.tobytes())
HOLDER = {"rows": [KEPT.copy().reshape(2, 3)]}
WEAKLY: "weakref.WeakValueDictionary[str, np.ndarray[Any, Any]]" = weakref.WeakValueDictionary()


def closure() -> Callable[[Any], Any]:
    kept = KEPT.copy()
    return lambda x: kept


def of_an_attribute(x: Any) -> Any:
    return of_an_attribute.kept  # type: ignore[attr-defined]  # as caches often are


of_an_attribute.kept = KEPT.copy()  # type: ignore[attr-defined]  # see above


def suspended() -> Callable[[Any], Any]:
    """Of a generator that has not ended: its frame refers to the array."""

    def arrays() -> Iterator[Any]:
        kept = KEPT.copy()
        while True:
            yield kept

    found = arrays()
    return lambda x: next(found)


def weakly(x: Any) -> Any:
    """As long as somebody has the array, it is given out again."""
    kept = WEAKLY.get("kept")
    if kept is None:
        kept = WEAKLY["kept"] = WHOLE.copy()
    return kept


class KeepsIt(opkernel.OpKernel):
    """In the kernel itself."""

    def __init__(self, construction: opkernel.OpKernelConstruction) -> None:
        super().__init__(construction)
        self.kept = WHOLE.copy()

    def compute(self, ctx: opkernel.OpKernelContext) -> None:
        """Give it."""
        ctx.set_output(0, self.kept)


class AllKeepIt(opkernel.OpKernel):
    """In the class."""

    kept: ClassVar[Any] = KEPT.copy()

    def compute(self, ctx: opkernel.OpKernelContext) -> None:
        """Give a view of it."""
        ctx.set_output(0, self.kept.reshape(3, 2))


KERNELS: dict[str, Any] = {
    "Global": lambda x: KEPT,
    "Part": lambda x: KEPT[:4],
    "View": lambda x: KEPT.reshape(2, 3).T,
    "ViewOfView": lambda x: HOLDER["rows"][0][1:][0],
    "Buffer": lambda x: np.frombuffer(BUFFER, np.float32),
    "Closure": closure(),
    "Attribute": of_an_attribute,
    "Generator": suspended(),
    "Weakly": weakly,
    "Instance": KeepsIt,
    "Class": AllKeepIt,
}
CLAIMS = {
    "Nothing": opkernel.KernelContract(),
    "Types": opkernel.KernelContract(outputs_as_declared=True),
    "Aliases": opkernel.KernelContract(outputs_as_declared=True, may_alias=True),
}
ONE = np.float32(1)

for kind, claims in CLAIMS.items():
    for holder, kernel in KERNELS.items():
        opkernel.register_op(
            f"Keeps{holder}{kind}",
            inputs=["x: float"],
            outputs=["y: float"],
            shape_fn=unknown_shape,
        )
        opkernel.register_kernel(f"Keeps{holder}{kind}", device="CPU", contract=claims)(kernel)


def fetched(b: Builder, op: str) -> dict[str, Any]:
    """By name what is fetched: the output as it is, views of it, what is computed of it, calls."""
    x = b.placeholder("x")
    y = b.op(op, x)
    function = define(b, f"call_{op}", [FLOAT], lambda g, x: [g.op(op, x)])
    call = b.op("PartitionedCall", [x], f=function, Tout=[FLOAT])
    flat = b.op("Reshape", y, b.constant(np.array([-1], np.int32)))
    branch = b.cond(
        b.op("Greater", x, b.constant(0.0)),
        lambda x: [b.op(op, x)],
        lambda x: [b.op("Neg", x)],
        [x],
    )
    return {
        "output": [y],
        "twice": [y, y],
        "views": [y, b.op("Identity", y), flat, b.op("ExpandDims", y, b.constant(0))],
        "computed": [b.op("Exp", b.op("Neg", b.op("AddV2", y, x))), b.op("AddN", [y, y])],
        "called": [call, b.op("Neg", call)],
        "branch": branch[:1],
    }


def ways(op: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Calls that give lists of arrays."""
    made = getattr(raw_ops, op)
    yield "eager", lambda: [made(x=ONE)]
    traced = opkernel.function(lambda x: [y := made(x=x), y, raw_ops.Identity(input=y)])
    yield "traced", lambda: traced(ONE)
    b = Builder()
    by_name = fetched(b, op)
    for config in ({}, {"optimize": False}, {"executor_type": "DATAFLOW"}, {"inter_op_threads": 2}):
        session = opkernel.Session(b.graph, **config)
        for name, tensors in by_name.items():
            call = session.make_callable(tensors, [b.graph.get_tensor_by_name("x:0")])
            yield f"{name} {config}", partial(call, ONE)
    for name in ("output", "views", "called"):
        source = decompile([b.graph.get_tensor_by_name("x:0")], by_name[name], "A model").source
        names: dict[str, Any] = {"__name__": "program"}
        exec(re.sub("^WEIGHTS = .*", "", source, flags=re.MULTILINE), names)
        yield f"{name} program", partial(lambda model: list(model(ONE)), names["model"])


@pytest.mark.parametrize("claims", CLAIMS)
@pytest.mark.parametrize("holder", KERNELS)
def test_nobody_can_write_to_what_a_kernel_keeps(holder: str, claims: str) -> None:
    for way, call in ways(f"Keeps{holder}{claims}"):
        try:
            first = call()
        except InternalError:  # a function that keeps what it gives has to claim aliases
            assert claims == "Nothing"
            continue
        wanted = [value.copy() for value in first]
        write_over(first)
        check_equal(call(), wanted, way)
        kept = [KEPT, np.frombuffer(BUFFER, np.float32), HOLDER["rows"][0].ravel()]
        check_equal(kept, [WHOLE] * 3, way)


@pytest.mark.parametrize("way", ["eager", "session", "dataflow"])
def test_what_a_kernel_makes_is_handed_on_without_a_copy(way: str) -> None:
    addresses: list[int] = []

    def makes(x: Any) -> Any:
        made = np.full(1 << 20, x, np.float32)
        addresses.append(made.ctypes.data)
        return made

    op = f"Makes{way.title()}"
    opkernel.register_op(op, inputs=["x: float"], outputs=["y: float"], shape_fn=unknown_shape)
    opkernel.register_kernel(op, device="CPU")(makes)
    if way == "eager":
        found = getattr(raw_ops, op)(x=ONE)
    else:
        b = Builder()
        y = b.op(op, x := b.placeholder("x"))
        executor = "DATAFLOW" if way == "dataflow" else ""
        with opkernel.Session(b.graph, executor_type=executor) as session:
            found = session.run(y, {x: ONE})
    assert found.ctypes.data == addresses[-1]
