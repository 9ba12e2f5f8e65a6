"""The states of tasks, as the coordination service sees them.

Source: CoordinatedTaskState in TensorFlow's coordination_service.proto.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from opkernel.distributed.cluster.task_name import TaskName
from opkernel.errors import OpError


class CoordinatedTaskState(IntEnum):
    """The state of a task, or of its agent, numbered as TensorFlow's."""

    UNINITIALIZED = 1
    DISCONNECTED = 2
    CONNECTED = 3
    ERROR = 4


class TaskStateInfo(NamedTuple):
    """How a task fares.

    Attributes:
        task: The task.
        state: Its state.
        error: What is wrong with it, in the state ERROR.
    """

    task: TaskName
    state: CoordinatedTaskState
    error: OpError | None
