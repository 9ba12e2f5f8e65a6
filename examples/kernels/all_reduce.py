"""An asynchronous kernel: participants meet, and each gets the sum of what all of them brought.

Shaped as TensorFlow's NcclAllReduce: `compute_async` leaves its input and a callback at the meeting
and returns; whoever comes last computes the sum and calls them all back. Who waits for participants
that do not come is told by the step's cancellation manager.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

import opkernel
from opkernel.errors import CancelledError, InvalidArgumentError, OpError
from opkernel.kernel import ResourceBase
from opkernel.opdef import unchanged_shape

ALL_REDUCE = opkernel.register_op(
    "MyAllReduce",
    inputs=["input: T"],
    outputs=["data: T"],
    attrs=["T: {float, double, int32}", "num_devices: int >= 1", "shared_name: string"],
    shape_fn=unchanged_shape,
    is_stateful=True,
)


@dataclass(frozen=True, eq=False)
class Participant:
    """Who waits: what it brought, and what to call in the end with the sum or an error."""

    value: np.ndarray
    finish: Callable[[np.ndarray | None, OpError | None], None]


class Meeting(ResourceBase):
    """Brings the participants of one sum together, again and again."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._present: list[Participant] = []

    def join(self, participant: Participant) -> None:
        """Wait with the others; the last to come finishes them all."""
        with self._lock:
            self._present.append(participant)
            if len(self._present) < self._size:
                return
            complete, self._present = self._present, []
        shapes = {np.shape(one.value) for one in complete}
        if len(shapes) == 1:
            total, error = np.sum([one.value for one in complete], axis=0), None
        else:
            total, error = None, InvalidArgumentError(f"shapes differ: {sorted(shapes)}")
        for one in complete:
            one.finish(total, error)

    def leave(self, participant: Participant) -> bool:
        """Whether the participant was still waiting; it does not any more."""
        with self._lock:
            was_present = participant in self._present
            if was_present:
                self._present.remove(participant)
            return was_present


@opkernel.register_kernel(ALL_REDUCE, device="CPU")
class AllReduceOp(opkernel.AsyncOpKernel):
    """One participant."""

    def __init__(self, construction: opkernel.OpKernelConstruction) -> None:
        super().__init__(construction)
        self.num_devices = construction.get_attr("num_devices")
        self.shared_name = construction.get_attr("shared_name")

    def compute_async(self, ctx: opkernel.OpKernelContext, done: Callable[[], None]) -> None:
        """Join the meeting of this name; whoever ends the wait calls `done`, exactly once."""
        cancellation, resources = ctx.cancellation_manager, ctx.resource_manager
        assert cancellation is not None
        assert resources is not None  # every session has both
        token = cancellation.get_cancellation_token()

        def finish(total: np.ndarray | None, error: OpError | None) -> None:
            cancellation.try_deregister_callback(token)
            if ctx.requires_ok_async(error, done):
                ctx.set_output("data", total)
                done()

        def cancel() -> None:
            if meeting.leave(participant):
                finish(None, cancellation.status or CancelledError("MyAllReduce was cancelled"))

        participant = Participant(ctx.input("input"), finish)
        with resources.lookup_or_create(
            "all_reduce", self.shared_name, Meeting, lambda: Meeting(self.num_devices)
        ) as meeting:
            meeting.join(participant)
        if not cancellation.register_callback(token, cancel):
            cancel()  # it came before there was anything to call


def main() -> None:
    graph, devices = opkernel.Graph(), 4
    with graph.as_default():
        for device in range(devices):
            attrs = {"dtype": opkernel.float32, "shape": [2]}
            x = graph.create_op("Placeholder", [], name=f"x{device}", attrs=attrs).outputs[0]
            attrs = {"num_devices": devices, "shared_name": "gradients"}
            graph.create_op("MyAllReduce", [x], name=f"sum{device}", attrs=attrs)
    with opkernel.Session(graph) as session, ThreadPoolExecutor(devices) as threads:

        def step(device: int) -> list[float]:
            fed = {f"x{device}:0": [device, 10 * device]}
            return session.run(f"sum{device}:0", fed).tolist()

        print(list(threads.map(step, range(devices))))
        try:
            options = opkernel.RunOptions(timeout_in_ms=50)
            session.run("sum0:0", {"x0:0": [1, 1]}, options=options)
        except opkernel.errors.DeadlineExceededError:
            print("alone: nobody else came in time")
        print(list(threads.map(step, range(devices))))


if __name__ == "__main__":
    main()
