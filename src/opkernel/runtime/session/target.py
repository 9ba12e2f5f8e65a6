"""The target of a session: where its programs run, this process or the tasks of a cluster.

Source: the `target` of TensorFlow's SessionOptions, core/public/session_options.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from opkernel.messages import short_repr
from opkernel.records import dataclass
from opkernel.runtime.placement.device_set import DeviceSet
from opkernel.runtime.program.builder import Program, build_program

if TYPE_CHECKING:
    from opkernel.device.permissions import Permissions
    from opkernel.runtime.program.op_segment import SessionSegment
    from opkernel.runtime.program.request import ProgramRequest
    from opkernel.runtime.session.session_config import SessionConfig


@dataclass(frozen=True)
class TargetOptions:
    """The options of a session, for those who run its programs.

    Attributes:
        config: Its config.
        permissions: Which files its graph may read and write.
        memory_limit_bytes: The most memory that a step may take in each process; None for no limit of its own.
        sanitize: Whether its kernels are watched.
    """

    config: SessionConfig
    permissions: Permissions
    memory_limit_bytes: int | None = None
    sanitize: bool = False


class TargetSession(Protocol):
    """A session, as its target sees it."""

    @property
    def devices(self) -> DeviceSet:
        """Where the session's nodes may run."""

    @property
    def is_remote(self) -> bool:
        """Whether other processes run the programs, each by a session of its own."""

    @property
    def op_segment(self) -> SessionSegment | None:
        """Keeps the kernels with state for all graphs of the session; None where it has one graph."""

    def build_program(self, request: ProgramRequest) -> Program:
        """Build a program; raises as `opkernel.runtime.program.builder.build_program` does."""

    def clear_containers(self, containers: Sequence[str]) -> None:
        """Drop the resources in some containers; in the default ones if none is named."""

    def close(self) -> None:
        """Free what the session holds."""


class SessionTarget(Protocol):
    """What sessions may be aimed at."""

    def new_session(self, options: TargetOptions) -> TargetSession:
        """A new session.

        Raises:
            UnavailableError: the target cannot be reached.
        """


def new_session(target: SessionTarget, options: TargetOptions) -> TargetSession:
    """A session of a target.

    Raises:
        TypeError: it is no target.
        UnavailableError: it cannot be reached.
    """
    if not hasattr(target, "new_session"):
        raise TypeError(
            f"target must be a cluster, such as opkernel.distributed.RayCluster, not {short_repr(target)}"
        )
    return target.new_session(options)


class ThisProcess:
    """The target of sessions that run in their own process, with devices of their own.

    Args:
        config: How many devices there are to be.

    Raises:
        NotFoundError: there is to be no CPU.
    """

    is_remote = False
    op_segment: SessionSegment | None = None

    def __init__(self, config: SessionConfig) -> None:
        self.devices = DeviceSet.of_session(
            config.device_count,
            allow_soft_placement=config.allow_soft_placement,
            intra_op_threads=config.intra_op_parallelism_threads,
        )

    def build_program(self, request: ProgramRequest) -> Program:
        """Build a program."""
        return build_program(request)

    def clear_containers(self, containers: Sequence[str]) -> None:
        """Drop the resources in some containers; in the default ones if none is named."""
        self.devices.mgr.clear_containers(containers)

    def close(self) -> None:
        """Close the devices."""
        self.devices.mgr.close()
