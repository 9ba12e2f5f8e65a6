"""Ops and kernels to see what functions do, and short ways to run functions."""

import threading
from typing import Any

import numpy as np
from tests.graph.function_builders import (
    X_TIMES_16,
    X_TIMES_FOUR,
    X_TIMES_TWO,
    attr_value,
    define,
    library_of,
)

from opkernel.kernel import (
    FunctionRunOptions,
    InstantiateOptions,
    OpKernel,
    OpKernelContext,
    register_kernel,
)
from opkernel.opdef import register_op, unknown_shape
from opkernel.runtime import FunctionLibraryRuntime

RUN = FunctionRunOptions()
NO_OPTIONS = InstantiateOptions()
FLOAT = {"T": attr_value("float")}
X = np.array([1, 2, 3, 4], np.float32)

register_op("FunctionsTestCount", outputs=["n: int32"], shape_fn=unknown_shape, is_stateful=True)
register_op(
    "FunctionsTestNote", inputs=["x: T"], attrs=["T: type", "to: string"], shape_fn=unknown_shape,
    is_stateful=True,
)  # fmt: skip
register_op("FunctionsTestStep", outputs=["ok: bool"], shape_fn=unknown_shape, is_stateful=True)
register_op(
    "FunctionsTestMap",
    inputs=["x: T"],
    outputs=["y: T"],
    attrs=["T: type", "f: func", "way: string = 'run'"],
    shape_fn=unknown_shape,
)

noted: dict[str, list[Any]] = {}
seen_steps: list[dict[str, Any]] = []


class Outcome:
    """What a function that runs elsewhere ends with."""

    def __init__(self):
        self.is_there = threading.Event()

    def __call__(self, error, results):
        self.found = error, results
        self.is_there.set()

    def wait(self):
        assert self.is_there.wait(300)
        return self.found


@register_kernel("FunctionsTestCount", device="CPU")
class Count(OpKernel):
    """How often this kernel was computed before."""

    def __init__(self, construction):
        super().__init__(construction)
        self.count = 0

    def compute(self, ctx: OpKernelContext) -> None:
        ctx.set_output(0, np.int32(self.count))
        self.count += 1


@register_kernel("FunctionsTestNote", device="CPU")
class Note(OpKernel):
    """Notes its input."""

    def __init__(self, construction):
        super().__init__(construction)
        self.to = construction.get_attr("to")

    def compute(self, ctx: OpKernelContext) -> None:
        noted.setdefault(self.to, []).append(ctx.input(0).tolist())


@register_kernel("FunctionsTestStep", device="CPU")
class SeesStep(OpKernel):
    """Notes what it sees of its step."""

    def compute(self, ctx: OpKernelContext) -> None:
        seen_steps.append(
            {
                "rendezvous": ctx.rendezvous,
                "cancellation_manager": ctx.cancellation_manager,
                "stats_collector": ctx.stats_collector,
                "deadline": ctx.deadline,
                "step_id": ctx.step_id,
                "library": ctx.function_library,
                "inline": ctx.run_all_kernels_inline,
                "container": ctx.step_container,
            }
        )
        ctx.set_output(0, np.bool_(True))


@register_kernel("FunctionsTestMap", device="CPU")
class Map(OpKernel):
    """Calls a function on its input, in one of the ways that there are."""

    def __init__(self, construction):
        super().__init__(construction)
        self.f = construction.get_attr("f")
        self.way = construction.get_attr("way")

    def compute(self, ctx: OpKernelContext) -> None:
        library = ctx.function_library
        handle = library.instantiate(self.f.name, self.f.attr)
        options = FunctionRunOptions(step=ctx.step)
        if self.way == "run":
            ctx.set_output(0, library.run(options, handle, ctx.inputs)[0])
        elif self.way == "call":
            ctx.set_output(0, handle(ctx.step, *ctx.inputs)[0])
        else:
            outcome = Outcome()
            library.run_async(options, handle, ctx.inputs, outcome)
            error, results = outcome.wait()
            if error is not None:
                raise error
            ctx.set_output(0, results[0])
        library.release_handle(handle)


def runtime_of(*functions, **options):
    return FunctionLibraryRuntime(library_of(*functions), **options)


def run(runtime, name, attrs, *args, options=NO_OPTIONS, run_options=RUN):
    return runtime.run(run_options, runtime.instantiate(name, attrs, options), args)


COUNTER = define("Counter() -> (n: int32)", ["n = FunctionsTestCount()"], n="n:n:0")
TIMES = (X_TIMES_TWO, X_TIMES_FOUR, X_TIMES_16)
