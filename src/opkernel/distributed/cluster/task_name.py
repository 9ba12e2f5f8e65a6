"""TaskName: the name of a task, which begins the names of its devices.

Source: TensorFlow core/util/device_name_utils.cc.
"""

from __future__ import annotations

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import DeviceName
from opkernel.records import dataclass


@dataclass(frozen=True)
class TaskName:
    """A task of a job; as text `/job:worker/replica:0/task:1`.

    Attributes:
        job: The name of the job.
        index: The index of the task in it.
    """

    job: str
    index: int

    @classmethod
    def parse(cls, text: str) -> TaskName:
        """The task of the name of a task or a device.

        Raises:
            InvalidArgumentError: the text names no task.
        """
        name = DeviceName.parse_full_name(text)
        if name.job is None or name.task is None:
            raise InvalidArgumentError(f"{text!r} does not name a task: /job:worker/task:1")
        return cls(name.job, name.task)

    def __str__(self) -> str:
        return f"/job:{self.job}/replica:0/task:{self.index}"
