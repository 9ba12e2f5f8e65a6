"""State that outlives steps: a counter in the resource manager, which several nodes share."""

import threading

import numpy as np

import opkernel
from opkernel.kernel import ContainerInfo, ResourceBase
from opkernel.opdef.common_shapes import scalar_shape

TICK = opkernel.register_op(
    "Tick",
    outputs=["count: int64"],
    attrs=["container: string = ''", "shared_name: string = ''"],
    shape_fn=scalar_shape,
    is_stateful=True,
)


class Counter(ResourceBase):
    """Counts, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    def next(self) -> int:
        """One more."""
        with self._lock:
            self._count += 1
            return self._count


@opkernel.register_kernel(TICK, device="CPU")
class TickOp(opkernel.OpKernel):
    """Counts its steps, together with all nodes of its `shared_name`."""

    def __init__(self, construction: opkernel.OpKernelConstruction) -> None:
        super().__init__(construction)
        assert construction.resource_manager is not None  # every session has one
        self.info = ContainerInfo.init(construction.resource_manager, construction.node_def)

    def compute(self, ctx: opkernel.OpKernelContext) -> None:
        """Find the counter, or create it, and count."""
        info = self.info
        with info.resource_manager.lookup_or_create(
            info.container, info.name, Counter, Counter
        ) as counter:
            ctx.set_output("count", np.int64(counter.next()))


def main() -> None:
    graph = opkernel.Graph()
    with graph.as_default():
        for name, shared_name in (("a", "ours"), ("b", "ours"), ("c", "")):
            graph.create_op("Tick", [], name=name, attrs={"shared_name": shared_name})
    with opkernel.Session(graph) as session:
        threads = [threading.Thread(target=session.run, args=(["a:0", "b:0"],)) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("a and b, 10 steps each on 10 threads, then a:", session.run("a:0"))
        print("c, which shares with nobody:", session.run("c:0"), session.run("c:0"))
    with opkernel.Session(graph) as session:
        print("a in another session:", session.run("a:0"))


if __name__ == "__main__":
    main()
