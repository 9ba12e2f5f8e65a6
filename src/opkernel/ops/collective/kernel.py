"""The common part of kernels of collectives: they take part, and wait for the others.

Source: TensorFlow core/kernels/collective_ops.cc.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError, OpError
from opkernel.kernel import (
    AsyncOpKernel,
    CollectiveMember,
    CollectiveParams,
    CollectiveType,
    OpKernelConstruction,
    OpKernelContext,
)
from opkernel.ops.math.division import truncated_quotient
from opkernel.types import DataType, TensorShape

MERGE_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": np.multiply,
}


def _div(merged: Any, group_size: int) -> Any:
    """The mean; of integers it is rounded towards 0."""
    divide = truncated_quotient if merged.dtype.kind == "i" else np.divide
    return divide(merged, np.asarray(group_size, merged.dtype))


FINAL_OPS: dict[str, Callable[[Any, int], Any] | None] = {"Id": None, "Div": _div}


@dataclass(frozen=True, slots=True)
class Instance:
    """Which collective a node takes part in, and as which member of the group.

    Attributes:
        group_size: The number of members.
        group_key: Names the group.
        instance_key: Names this among the collectives of the group.
        rank: The node's place in the group; -1 where the node does not say.
    """

    group_size: int
    group_key: int | str
    instance_key: int | str
    rank: int = -1

    def __post_init__(self) -> None:
        if self.group_size <= 0:
            raise InvalidArgumentError(
                f"group_size must be positive integer but got {self.group_size}"
            )


class CollectiveKernel(AsyncOpKernel):
    """Takes part in a collective with the first input; the output is what the collective gives.

    Attributes:
        collective_type: The kind of the collective.
        is_source: Whether the input is what a broadcast is of.
        merge_op: Merges two tensors (reductions only).
        final_op: Completes what merging gave; None for no change.
        timeout_seconds: For how long the node waits for the others; 0 for no limit.
    """

    collective_type: ClassVar[CollectiveType]
    is_source: ClassVar[bool] = False

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.merge_op: Callable[[Any, Any], Any] | None = None
        self.final_op: Callable[[Any, int], Any] | None = None
        self.timeout_seconds: float = 0.0
        if construction.has_attr("timeout_seconds"):
            self.timeout_seconds = construction.get_attr("timeout_seconds")

    @abstractmethod
    def instance(self, ctx: OpKernelContext) -> Instance:
        """Which collective the node takes part in."""

    def tensor(self, ctx: OpKernelContext) -> Any:
        """The tensor that the node brings; None where it only receives."""
        return ctx.input(0)

    def shape(self, ctx: OpKernelContext, group_size: int) -> tuple[int, ...]:
        """The sizes that all members must agree on: by default those of the input."""
        return np.shape(ctx.input(0))

    def set_result(self, ctx: OpKernelContext, result: Any) -> None:
        """Take what the collective gives to this member."""
        ctx.set_output(0, result)

    @property
    def data_type(self) -> DataType:
        """The type of the tensors."""
        return self.output_types[0]

    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        """Take part; `done` is called when all have."""
        executor = ctx.collective_executor
        if executor is None:
            raise InternalError(
                f"Failed to get CollectiveExecutor from OpKernelContext for Op {self.name}"
            )
        instance = self.instance(ctx)
        member = CollectiveMember(
            self.device.name, ctx.session_handle, ctx.step_id, self.name, instance.rank
        )
        params = CollectiveParams(
            type=self.collective_type,
            group_key=instance.group_key,
            group_size=instance.group_size,
            instance_key=instance.instance_key,
            data_type=self.data_type,
            shape=self.shape(ctx, instance.group_size),
            merge_op=self.merge_op,
            final_op=self.final_op,
            frame_iter=ctx.frame_iter,
            is_source=self.is_source,
            timeout_seconds=self.timeout_seconds,
        )

        def finish(error: OpError | None, result: Any) -> None:
            try:
                if error is None:
                    self.set_result(ctx, result)
            except OpError as wrong:
                error = wrong
            ctx.set_status(error)
            done()

        executor.execute_async(member, params, self.tensor(ctx), finish, ctx.cancellation_manager)


def scalar(ctx: OpKernelContext, name: str) -> int:
    """The value of an input that must be a scalar."""
    value = ctx.input(name)
    if np.ndim(value):
        raise InvalidArgumentError(
            f"Unexpected dimensions on input {name}, got {TensorShape(value.shape)}"
        )
    return int(value)
