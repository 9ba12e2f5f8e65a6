"""The collectives of one process.

Source: TensorFlow core/common_runtime/base_collective_executor.cc,
collective_param_resolver_local.cc.
"""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from opkernel.errors import (
    CancelledError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    OpError,
    as_op_error,
)
from opkernel.kernel.services.cancellation import (
    INVALID_TOKEN,
    CancellationManager,
    CancellationToken,
    call_all,
)
from opkernel.kernel.services.collective import (
    CollectiveDone,
    CollectiveExecutor,
    CollectiveMember,
    CollectiveParams,
    collective_results,
)
from opkernel.records import dataclass
from opkernel.types import PartialTensorShape

Results = Callable[[CollectiveParams, Sequence[Any], Sequence[bool]], Sequence[Any]]
"""The results of the members by rank, of the parameters, what each has brought, and which one is a source."""

_Key = tuple[Any, ...]
_MOST_KINDS = 10_000
_MOST_FAILED = 1000  # instances that failed and wait for members that have not come yet


@dataclass(eq=False, slots=True)
class _Participant:
    """A member that has come, and how to tell it the result."""

    member: CollectiveMember
    params: CollectiveParams
    tensor: Any
    done: CollectiveDone
    manager: CancellationManager | None
    token: CancellationToken = INVALID_TOKEN
    timer: threading.Timer | None = None

    def complete(self, error: OpError | None, result: Any) -> None:
        """Tell it; its cancellation and its timeout come too late now."""
        if self.manager is not None:
            self.manager.try_deregister_callback(self.token)
        if self.timer is not None:
            self.timer.cancel()
        self.done(error, result)


class _Instance:
    """One collective: the members that have come, the ones that wait, and the reason if it failed."""

    def __init__(self, key: _Key, first: _Participant) -> None:
        self.key = key
        self.params = first.params
        self._first_device = first.member.device
        self.status: OpError | None = None
        self.waiting: list[_Participant] = []
        self._steps: dict[str, int | str] = {}
        self._come = 0

    @property
    def is_full(self) -> bool:
        """Whether all members have come."""
        return self._come >= self.params.group_size

    def accepts(self, member: CollectiveMember) -> bool:
        """Whether a member may be of this instance: two steps of one session never meet."""
        return self._steps.get(member.session_handle, member.step_id) == member.step_id

    def join(self, participant: _Participant) -> None:
        """A member has come."""
        member = participant.member
        if member.session_handle:
            self._steps[member.session_handle] = member.step_id
        self._come += 1
        self.waiting.append(participant)
        self.status = self.status or self._mismatch(participant)

    def _mismatch(self, participant: _Participant) -> OpError | None:
        """Why a member does not fit the earlier ones; None if it does."""
        ours, theirs = self.params, participant.params
        device = participant.member.device
        instance = f"collective instance {ours.instance_key} of group {ours.group_key}"
        if theirs.group_size != ours.group_size:
            return InternalError(
                f"Device {device} is joining a group with size {theirs.group_size}, but that "
                f"group has size {ours.group_size} (group_key={ours.group_key}, {instance})"
            )
        types = _device_type(device), _device_type(self._first_device)
        if types[0] != types[1]:
            return InternalError(
                f"Device {device} is joining a group with device type {types[0]}, but that group has "
                f"type {types[1]} (group_key={ours.group_key}, {instance})"
            )
        if (theirs.type, theirs.data_type) != (ours.type, ours.data_type):
            return InternalError(
                f"The {instance} expected {_kind(ours)} but {device} takes part in {_kind(theirs)}"
            )
        if theirs.shape != ours.shape:
            return InvalidArgumentError(
                f"Shape mismatch in the {instance}. Op at device {device} expected shape "
                f"{_shape(theirs)} but another member in the group expected shape {_shape(ours)}"
            )
        if _reduction(theirs) != _reduction(ours):
            return InvalidArgumentError(
                f"The members of the {instance} reduce in different ways; the one at {device} "
                "differs from those before"
            )
        return None


class LocalCollectiveExecutor(CollectiveExecutor):
    """Where members in one process meet: threads, sessions, devices.

    Members of one instance name the same group, the same instance and the same iteration of a loop. When
    all members of the group have come, the last one computes the result for all. Two steps of one session
    never meet, so that steps may run at the same time.

    A mismatch, a timeout or a cancellation ends the instance: all members fail with that status, and so
    do members that come later. Nobody notices a step that fails before it takes part. Where that may
    happen, members should have a timeout.

    Members have the rank that they ask for, or are ranked by their names: device, session, node.

    Args:
        results: gives each member its result, by what all members have brought: see `collective_results`.
    """

    def __init__(self, results: Results = collective_results) -> None:
        self._results = results
        self._lock = threading.RLock()  # a collection may cancel
        self._instances: dict[_Key, list[_Instance]] = {}
        self._failed: dict[_Instance, None] = {}  # the failed ones, oldest first
        self._status: OpError | None = None
        self._kinds: dict[_Key, str] = {}  # of the instances that sessions have named, oldest first

    def execute_async(
        self,
        member: CollectiveMember,
        params: CollectiveParams,
        tensor: Any,
        done: CollectiveDone,
        cancellation_manager: CancellationManager | None = None,
    ) -> None:
        """Take part in a collective; see `CollectiveExecutor`."""
        participant = _Participant(member, params, tensor, done, cancellation_manager)
        with self._lock:
            status = copy.copy(self._status)
            if status is None:
                instance = self._instance_for(participant)
                instance.join(participant)
                instance.status = instance.status or self._other_kind(participant)
                if instance.status is None and not instance.is_full:
                    self._wait(instance, participant)
        if status is not None:
            done(status, None)
        else:
            self._settle(instance)

    def start_abort(self, status: OpError) -> None:
        """Fail all collectives, waiting and future, with `status`; the status of the first call counts."""
        with self._lock:
            self._status = self._status or copy.copy(status)
            instances = [one for those in self._instances.values() for one in those]
        call_all(partial(self._fail, instance, status) for instance in instances)

    def _instance_for(self, participant: _Participant) -> _Instance:
        """The oldest instance that the member may be of; a new one if there is none."""
        params, member = participant.params, participant.member
        key = params.group_key, params.instance_key, params.frame_iter
        for instance in list(self._instances.get(key, ())):
            if instance.accepts(member):
                return instance
            if instance.status is not None:  # its session tries again
                self._remove(instance)
        instance = _Instance(key, participant)
        self._instances.setdefault(key, []).append(instance)
        return instance

    def _other_kind(self, participant: _Participant) -> OpError | None:
        """Why a session may not use an instance key again; None where it is for the same kind."""
        member, params = participant.member, participant.params
        if isinstance(params.instance_key, str):  # of a communicator, which counts for itself
            return None
        key = member.session_handle, params.group_key, params.instance_key
        known = self._kinds.setdefault(key, _kind(params))
        if len(self._kinds) > _MOST_KINDS:
            del self._kinds[next(iter(self._kinds))]
        if known == _kind(params):
            return None
        return InternalError(
            f"The collective instance {params.instance_key} of group {params.group_key} was used for "
            f"{known}, and cannot be for {_kind(params)}"
        )

    def _wait(self, instance: _Instance, participant: _Participant) -> None:
        """Have the instance fail if the member is cancelled or has waited for too long."""
        manager, timeout = participant.manager, participant.params.timeout_seconds
        if manager is not None:
            participant.token = manager.get_cancellation_token()
            cancel = partial(self._cancel, instance, manager)
            if not manager.register_callback(participant.token, cancel):
                instance.status = _reason(manager)
                return
        if timeout > 0:
            error = DeadlineExceededError("Collective has timed out waiting for other workers.")
            participant.timer = threading.Timer(timeout, self._fail, (instance, error))
            participant.timer.daemon = True
            participant.timer.start()

    def _cancel(self, instance: _Instance, manager: CancellationManager) -> None:
        self._fail(instance, _reason(manager))

    def _fail(self, instance: _Instance, status: OpError) -> None:
        """End an instance, unless it is over already."""
        with self._lock:
            if instance.status is None and not instance.is_full:
                instance.status = status
        self._settle(instance)

    def _settle(self, instance: _Instance) -> None:
        """Tell the waiting members the result or error, once there is one."""
        with self._lock:
            status = instance.status
            if instance.is_full:
                self._remove(instance)
            elif status is None:
                return
            else:
                self._keep_failed(instance)
            told, instance.waiting = instance.waiting, []
        results: Sequence[Any] = [None] * len(told)
        if status is None and told:
            try:
                told.sort(key=_rank)
                results = self._results(
                    instance.params, [p.tensor for p in told], [p.params.is_source for p in told]
                )
            except Exception as error:  # a merge op may raise anything
                status = as_op_error(error)
        call_all(
            partial(participant.complete, copy.copy(status), result)
            for participant, result in zip(told, results, strict=True)
        )

    def _keep_failed(self, instance: _Instance) -> None:
        """Keep a failed instance for members that are still to come; forget the oldest one kept."""
        self._failed[instance] = None
        if len(self._failed) > _MOST_FAILED:
            self._remove(next(iter(self._failed)))

    def _remove(self, instance: _Instance) -> None:
        self._failed.pop(instance, None)
        instances = self._instances.get(instance.key, [])
        if instance in instances:
            instances.remove(instance)
            if not instances:
                del self._instances[instance.key]


def _reason(manager: CancellationManager) -> OpError:
    """Why a member was cancelled."""
    return manager.status or CancelledError("op cancelled")


def _rank(participant: _Participant) -> tuple[Any, ...]:
    """Orders members; numbers within names count as numbers."""
    member = participant.member
    names = f"{member.device};{member.session_handle};{member.node}"
    parts = re.split(r"(\d+)", names)
    return member.rank, [int(part) if part.isdecimal() else part for part in parts]


def _reduction(params: CollectiveParams) -> tuple[Any, ...]:
    return params.merge_op, params.final_op, params.reduction


def _device_type(device: str) -> str:
    """The type in the full name of a device."""
    return device.rpartition("/device:")[2].partition(":")[0]


def _kind(params: CollectiveParams) -> str:
    return f"{params.type.name} of {params.data_type.string}"


def _shape(params: CollectiveParams) -> str:
    return str(PartialTensorShape(params.shape))
