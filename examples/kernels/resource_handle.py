"""A resource behind a handle: one op makes it, another takes the handle as an input, as variables and tables do."""

import threading
from collections import Counter

import numpy as np

import opkernel
from opkernel.kernel import (
    ContainerInfo,
    ResourceBase,
    handle_from_input,
    lookup_resource,
    make_resource_handle,
    tensor_of_handle,
)
from opkernel.opdef.common_shapes import scalar_shape

HISTOGRAM = opkernel.register_op(
    "Histogram",
    outputs=["handle: resource"],
    attrs=["container: string = ''", "shared_name: string = ''"],
    shape_fn=scalar_shape,
    is_stateful=True,
)
COUNT = opkernel.register_op(
    "HistogramCount",
    inputs=["handle: resource", "values: int64"],
    outputs=["distinct: int64"],
    shape_fn=scalar_shape,
    is_stateful=True,
)


class Histogram(ResourceBase):
    """How often each value was seen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[int] = Counter()

    def count(self, values: list[int]) -> int:
        """Count the values; how many different ones there are by now."""
        with self._lock:
            self._counts.update(values)
            return len(self._counts)


@opkernel.register_kernel(HISTOGRAM, device="CPU")
class HistogramOp(opkernel.OpKernel):
    """Creates the histogram where there is none, and gives its handle."""

    def __init__(self, construction: opkernel.OpKernelConstruction) -> None:
        super().__init__(construction)
        assert construction.resource_manager is not None  # every session has one
        self.info = ContainerInfo.init(construction.resource_manager, construction.node_def)

    def compute(self, ctx: opkernel.OpKernelContext) -> None:
        """Find the histogram, or create it; the `with` gives up the reference that this takes."""
        info = self.info
        with info.resource_manager.lookup_or_create(
            info.container, info.name, Histogram, Histogram
        ):
            handle = make_resource_handle(info.container, info.name, ctx.device, Histogram)
        ctx.set_output("handle", tensor_of_handle(handle))


@opkernel.register_kernel(COUNT, device="CPU")
class HistogramCountOp(opkernel.OpKernel):
    """Counts values in the histogram of the handle."""

    def compute(self, ctx: opkernel.OpKernelContext) -> None:
        """The input is a tensor of rank 0; `handle_from_input` takes the handle from it."""
        with lookup_resource(ctx, handle_from_input(ctx.input("handle")), Histogram) as histogram:
            distinct = histogram.count(np.ravel(ctx.input("values")).tolist())
        ctx.set_output("distinct", np.int64(distinct))


def main() -> None:
    graph = opkernel.Graph()
    with graph.as_default():
        values = opkernel.placeholder(opkernel.int64, [None], name="values")
        handle = opkernel.raw_ops.Histogram(shared_name="ages")
        distinct = opkernel.raw_ops.HistogramCount(handle=handle, values=values)
    with opkernel.Session(graph) as session:
        print("after 1, 2, 2:", session.run(distinct, {values: [1, 2, 2]}))
        print("after 2, 5 as well:", session.run(distinct, {values: [2, 5]}))


if __name__ == "__main__":
    main()
