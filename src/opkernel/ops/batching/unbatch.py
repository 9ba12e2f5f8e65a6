"""Unbatch and UnbatchGrad: the rows of a batch go back to the steps that they came from, and their gradients to the batch.

Source: TensorFlow core/ops/batch_ops.cc, core/kernels/batch_kernels.cc.
"""

import threading
import time
from contextlib import suppress
from functools import partial
from typing import Any

from opkernel.errors import AlreadyExistsError, DeadlineExceededError, InvalidArgumentError
from opkernel.kernel import OpKernelConstruction, OpKernelContext
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.batching.batched_calls import concatenated, pieces
from opkernel.ops.data_flow.waiting import Done, Line, Steps, WaitingKernel, WaitingResource
from opkernel.ops.input_checks import int32_attr, require, require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import container_of
from opkernel.types import Array

_NAMES = ["container: string = ''", "shared_name: string = ''", "T: type"]


def _unbatch_shape(c: InferenceContext) -> None:
    """As the batch, with any number of rows."""
    c.set_output(0, c.replace_dim(c.input(0), 0, None))


def _unbatch_grad_shape(c: InferenceContext) -> None:
    """Of the rank of the gradient."""
    grad = c.input(2)
    known = c.rank_known(grad)
    c.set_output(0, c.unknown_shape_of_rank(c.rank(grad)) if known else c.unknown_shape())


UNBATCH = register_op(
    "Unbatch(batched_tensor: T, batch_index: int64, id: int64) -> unbatched_tensor: T",
    attrs=["timeout_micros: int", *_NAMES],
    shape_fn=_unbatch_shape,
    doc="""
    The rows of the step whose id is `id`, which another step may give: the one that got the batch.

    batched_tensor: the rows of the batch.
    batch_index: [n, 3]: the id of each step, and where its rows begin and end; or no rows.
    timeout_micros: how long the step waits for its rows.
    """,
)
UNBATCH_GRAD = register_op(
    "UnbatchGrad(original_input: T, batch_index: int64, grad: T, id: int64) -> batched_grad: T",
    attrs=_NAMES,
    shape_fn=_unbatch_grad_shape,
    doc="""
    The gradients of the rows of a batch, which its steps give; no rows for steps whose `original_input` is empty.
    """,
)


def _key(tensor: Any) -> int:
    require_scalar(tensor, "Expected `id` to be scalar. Received shape {}")
    return int(tensor)


class UnbatchResource(WaitingResource):
    """Rows that wait for their steps, and steps that wait for their rows.

    Args:
        timeout_s: How long either waits.
    """

    def __init__(self, timeout_s: float) -> None:
        self._line = Line(in_order=False)
        super().__init__(self._line)
        self._timeout_s = timeout_s
        self._tensors: dict[int, tuple[float, Array]] = {}
        self._waiting: set[int] = set()

    def debug_string(self) -> str:
        """A description."""
        return "UnbatchResource"

    def take(self, ctx: OpKernelContext, done: Done, key: int, rows: dict[int, Array]) -> None:
        """Leave rows for other steps, and wait for those of a key."""
        timer = threading.Timer(max(self._timeout_s, 0), self._look_at_clock)
        timer.daemon = True

        def end() -> None:
            timer.cancel()
            done()

        steps = self._steps(key, rows, time.monotonic() + self._timeout_s)
        with suppress(RuntimeError):  # no more threads: the time limit of the step holds
            timer.start()
        self.start(self._line, ctx, end, steps, partial(ctx.set_output, 0), name="Unbatch")

    def _steps(self, key: int, rows: dict[int, Array], deadline: float) -> Steps:
        self._drop_late()
        if key in self._tensors:
            return self._tensors.pop(key)[1]
        if key in self._waiting:
            raise AlreadyExistsError("Multiple session runs with the same batch key.")
        self._waiting.add(key)
        try:
            for other, tensor in rows.items():
                if other in self._tensors:
                    raise AlreadyExistsError("Multiple tensors returned for same batch key.")
                self._tensors[other] = deadline, tensor
            self._changed()
            while key not in self._tensors:
                if time.monotonic() > deadline:
                    raise DeadlineExceededError(
                        "Batched data did not arrive within timeout window."
                    )
                yield
            return self._tensors.pop(key)[1]
        finally:
            self._waiting.discard(key)

    def _look_at_clock(self) -> None:
        with self._changing():
            self._drop_late()
            self._changed()

    def _drop_late(self) -> None:
        now = time.monotonic()
        self._tensors = {
            key: (deadline, tensor)
            for key, (deadline, tensor) in self._tensors.items()
            if deadline >= now or key in self._waiting
        }


def _rows_by_key(data: Any, index: Any) -> dict[int, Array]:
    """The rows of each step of a batch."""
    require(index.ndim == 2, f"Wrong rank of index tensor. Expected 2; Got: {index.ndim}.")
    require(data.ndim, "batched_tensor must have at least one dimension")
    if len(index) > len(data):
        raise InvalidArgumentError(
            "Wrong shape for index tensor. Expected 0th dimension size to be no greater than "
            f"{len(data)}; Got: {len(index)}."
        )
    if index.shape[1] != 3:
        raise InvalidArgumentError(
            f"Wrong shape for index tensor. Expected 1st dimension size to be 3 ; Got: {index.shape[1]}."
        )
    if not len(index):
        return {}
    sizes = [end - start for _, start, end in index.tolist()]
    return dict(zip(index[:, 0].tolist(), pieces(data, sizes), strict=True))


@register_kernel(UNBATCH)
class Unbatch(WaitingKernel[UnbatchResource]):
    """Gives each step its rows."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        micros = int32_attr("timeout_micros", construction.get_attr("timeout_micros"))
        self._make = partial(UnbatchResource, micros / 1e6)

    def find(self, ctx: OpKernelContext) -> UnbatchResource:
        """The rows of the shared name."""
        info = container_of(self, ctx)
        manager = info.resource_manager
        return manager.lookup_or_create(info.container, info.name, UnbatchResource, self._make)

    def access(self, resource: UnbatchResource, ctx: OpKernelContext, done: Done) -> None:
        """Leave the rows of others, and wait for the step's own."""
        rows = _rows_by_key(ctx.input(0), ctx.input(1))
        resource.take(ctx, done, _key(ctx.input(2)), rows)


class UnbatchGradResource(WaitingResource):
    """Gradients that wait for their batches, and batches that wait for gradients."""

    def __init__(self) -> None:
        self._line = Line(in_order=False)
        super().__init__(self._line)
        self._available: dict[int, Array] = {}
        self._wanted: set[int] = set()

    def debug_string(self) -> str:
        """A description."""
        return "UnbatchGradResource"

    def give(self, ctx: OpKernelContext, done: Done) -> None:
        """Leave the gradient of a step, and wait for those of its batch if it has one."""
        deliver = partial(ctx.set_output, 0)
        self.start(self._line, ctx, done, self._steps(ctx), deliver, name="UnbatchGrad")

    def _steps(self, ctx: OpKernelContext) -> Steps:
        data, index, grad = ctx.input(0), ctx.input(1), ctx.own_input(2)
        key = _key(ctx.input(3))
        require(key not in self._available, "Two runs with the same batch key.")
        self._available[key] = grad
        self._changed()
        if not data.size:
            require(grad.ndim, "grad must have at least one dimension")
            return grad[:0].copy()
        keys = _keys_of_batch(index)
        missing = {one for one in keys if one not in self._available}
        message = "Missing tensor wanted by more than one batch."
        require(not missing & self._wanted, message)
        self._wanted |= missing
        try:
            while not all(one in self._available for one in keys):
                yield
        finally:
            self._wanted -= missing
        return concatenated([self._available.pop(one) for one in keys])


def _keys_of_batch(index: Any) -> list[int]:
    require(index.size, "batch_index is empty while the tensor isn't.")
    require(index.ndim == 2 and index.shape[1] == 3, "batch_index should contain 3 elements a row")
    keys: list[int] = index[:, 0].tolist()
    require(len({*keys}) == len(keys), "batch_index has a key twice")
    return keys


@register_kernel(UNBATCH_GRAD)
class UnbatchGrad(WaitingKernel[UnbatchGradResource]):
    """Gives the step of a batch all gradients."""

    def find(self, ctx: OpKernelContext) -> UnbatchGradResource:
        """The gradients of the shared name."""
        info = container_of(self, ctx)
        manager = info.resource_manager
        return manager.lookup_or_create(
            info.container, info.name, UnbatchGradResource, UnbatchGradResource
        )

    def access(self, resource: UnbatchGradResource, ctx: OpKernelContext, done: Done) -> None:
        """Leave the gradient."""
        resource.give(ctx, done)
