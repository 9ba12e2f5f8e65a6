"""RunOptions: what may be asked of one step.

Source: TensorFlow core/protobuf/config.proto.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from opkernel.kernel import CancellationManager
from opkernel.proto import Message
from opkernel.proto import RunOptions as RunOptionsProto
from opkernel.records import dataclass


class TraceLevel(IntEnum):
    """The amount that is recorded of a step."""

    NO_TRACE = 0
    SOFTWARE_TRACE = 1
    HARDWARE_TRACE = 2
    FULL_TRACE = 3


@dataclass(frozen=True)
class RunOptions:
    """Options of one step. The message `RunOptions` of TensorFlow is taken wherever this is.

    Attributes:
        timeout_in_ms: The step fails with DeadlineExceededError at the first check after this time; 0
            stands for the session's `operation_timeout_in_ms`.
        trace_level: Above NO_TRACE the step's statistics are recorded in its RunMetadata.
        inter_op_thread_pool: Which of the session's pools computes; -1 for the calling thread.
        output_partition_graphs: Put what is run into the RunMetadata, a graph for each device.
        report_tensor_allocations_upon_oom: Record the step's memory, to tell it where there is not
            enough.
        cancellation_manager: Its cancellation cancels the step. One may serve many steps, and is
            spent when it was cancelled.
    """

    timeout_in_ms: int = 0
    trace_level: int = TraceLevel.NO_TRACE
    inter_op_thread_pool: int = 0
    output_partition_graphs: bool = False
    report_tensor_allocations_upon_oom: bool = False
    cancellation_manager: CancellationManager | None = None

    NO_TRACE: ClassVar = TraceLevel.NO_TRACE
    SOFTWARE_TRACE: ClassVar = TraceLevel.SOFTWARE_TRACE
    HARDWARE_TRACE: ClassVar = TraceLevel.HARDWARE_TRACE
    FULL_TRACE: ClassVar = TraceLevel.FULL_TRACE

    @classmethod
    def of(cls, options: AnyRunOptions | None) -> RunOptions:
        """The options from what a caller gave: these, the message of any library, or none.

        Raises:
            TypeError: it is something else.
        """
        if options is None:
            return _NONE
        if isinstance(options, RunOptions):
            return options
        if not hasattr(options, "SerializeToString"):
            raise TypeError(f"options must be a RunOptions, not a {type(options).__name__}")
        given = RunOptionsProto.FromString(options.SerializeToString())
        return cls(
            timeout_in_ms=given.timeout_in_ms,
            trace_level=given.trace_level,
            inter_op_thread_pool=given.inter_op_thread_pool,
            output_partition_graphs=given.output_partition_graphs,
            report_tensor_allocations_upon_oom=given.report_tensor_allocations_upon_oom,
        )


AnyRunOptions = RunOptions | Message

_NONE = RunOptions()
