"""ColocationGraph: which operations run on one device, and which devices take all of them.

Operations are colocated that say so (`_class`), that hand on references, and that use one resource.

Source: TensorFlow core/common_runtime/colocation_graph.{h,cc}.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from opkernel.device.local_device import LocalDevice
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Operation
from opkernel.graph.core.node import COLOCATION_ATTR, COLOCATION_PREFIX
from opkernel.kernel import supported_device_types_for_node
from opkernel.opdef import DeviceName
from opkernel.records import dataclass, field, replace
from opkernel.runtime.placement.placer import DeviceSet, asked_device
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS, calls_functions
from opkernel.types import DataType


@dataclass(eq=False, slots=True)
class _Group:
    """Operations that run on one device.

    Attributes:
        first: One of them, for messages.
        asked: The device that they ask for together.
        types: The device types that have kernels for all, with the priority of these.
        why: What has joined them, for messages.
    """

    first: Operation
    asked: DeviceName
    types: dict[str, int]
    why: str = "it is alone"
    members: list[Operation] = field(default_factory=list)


class ColocationGraph:
    """Groups some operations.

    Args:
        operations: The operations, inputs before consumers.
        devices: Where they may run.
        placed: Where operations of some names are already.

    Raises:
        InvalidArgumentError: no device takes all operations of a group.
    """

    def __init__(
        self, operations: Sequence[Operation], devices: DeviceSet, placed: Mapping[str, LocalDevice]
    ) -> None:
        self._devices = devices
        self._given = placed
        self._found: dict[Any, list[LocalDevice]] = {}
        self._groups = {op: self._alone(op) for op in operations}
        self._operations = operations
        for op in operations:
            self._join_with_sources(op)
        self._join_by_name()

    def candidates(self, op: Operation) -> list[LocalDevice]:
        """The devices that take the group of an operation, the preferred ones first.

        Raises:
            InvalidArgumentError: there is none.
        """
        group = self._groups[op]
        found = self._matching(group, group.asked)
        if not found and self._devices.allow_soft_placement:
            open_name = DeviceName(group.asked.job, group.asked.replica, group.asked.task)
            found = self._matching(group, open_name)
        if not found:
            if not self._devices.mgr.matching(group.asked):
                self._devices.candidates(op)  # says that there is no such device
            raise self._no_device(group)
        return found

    def reason(self, op: Operation) -> str:
        """Why an operation may run where it may, in words."""
        group = self._groups[op]
        why = [group.why] if len(group.members) > 1 else []
        if group.asked.has_some_details:
            why.insert(0, f"{'they ask' if why else 'it asks'} for {group.asked}")
        elif not why:
            why.append("it asks for no device")
        why.append(f"kernels: {', '.join(group.types)}")
        return "; ".join(why)

    def _matching(self, group: _Group, asked: DeviceName) -> list[LocalDevice]:
        """The devices of a name that have the kernels, those of the highest priority first."""
        key = asked, frozenset(group.types.items())
        ordered = self._found.get(key)
        if ordered is None:
            found = [d for d in self._devices.mgr.matching(asked) if d.device_type in group.types]
            types, ranks = group.types, self._ranks
            found.sort(key=lambda d: (-types[d.device_type], ranks[d.device_type], d.index))
            ordered = self._found[key] = found
        return ordered

    @cached_property
    def _ranks(self) -> dict[str, int]:
        """The place of each device type among those that nodes prefer."""
        return {name: place for place, name in enumerate(self._devices.types_by_priority)}

    def _alone(self, op: Operation) -> _Group:
        there = self._given.get(op.name)
        if there is None:
            asked, types = asked_device(op), self._types(op)
            if asked.type not in types and calls_functions(op):
                asked = replace(asked, type=None, id=None)
            return _Group(op, asked, types, members=[op])
        asked = DeviceName.parse_full_name(there.name)
        return _Group(op, asked, {there.device_type: 0}, "it was placed before", [op])

    def _types(self, op: Operation) -> dict[str, int]:
        """The device types that can run an operation, with the priorities of their kernels."""
        types = self._devices.types_by_priority
        if calls_functions(op):  # which stay on the device of the caller
            return {self._devices.client_device.device_type: 0}  # its nodes are placed as one
        if op.type in RUN_BY_EXECUTORS:
            return dict.fromkeys(types, 0)
        found = supported_device_types_for_node(
            types, op.node_def, op_registry=op.graph.op_registry
        )
        return dict(found) or dict.fromkeys(types, 0)  # its kernel will be missed when it is needed

    def _join_with_sources(self, op: Operation) -> None:
        """Have an operation run where the references and resources are that it is given."""
        for tensor, wanted in zip(op.inputs, op.input_types, strict=True):
            if tensor.op not in self._groups:
                continue
            if wanted.is_ref:
                self._join(tensor.op, op, f"'{op.name}' changes what '{tensor.op.name}' refers to")
            elif wanted == DataType.DT_RESOURCE or tensor.dtype == DataType.DT_RESOURCE:
                self._join(tensor.op, op, f"'{op.name}' uses the resource of '{tensor.op.name}'")

    def _join_by_name(self) -> None:
        """Join those that say so themselves, whether the one that they name is there or not."""
        named: dict[bytes, Operation] = {}
        for op in self._operations:
            named.setdefault(COLOCATION_PREFIX + op.name.encode(), op)
        for op in self._operations:
            if COLOCATION_ATTR in op.attr:
                for group in op.colocation_groups():
                    other = named.setdefault(group, op)
                    self._join(other, op, f"'{op.name}' asks for the device of '{other.name}'")

    def _join(self, one: Operation, other: Operation, why: str) -> None:
        first, second = self._groups[one], self._groups[other]
        if first is second:
            return
        types = {n: max(p, second.types[n]) for n, p in first.types.items() if n in second.types}
        if not types:
            raise InvalidArgumentError(
                f"Cannot colocate nodes '{one.name}' and '{other.name}' because no device type "
                f"supports both of those nodes and the other nodes colocated with them: {why}; "
                f"{_listed(first)} and {_listed(second)}",
                node=other.name,
                op=other.type,
            )
        first.asked, first.types, first.why = self._merged(first, second, why), types, why
        first.members += second.members
        for op in second.members:
            self._groups[op] = first

    def _merged(self, first: _Group, second: _Group, why: str) -> DeviceName:
        soft = self._devices.allow_soft_placement
        try:
            return first.asked.merge_dev_names(second.asked, allow_soft_placement=soft)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"Cannot colocate nodes '{first.first.name}' and '{second.first.name}': "
                f"{error.message}; {why}",
                node=second.first.name,
                op=second.first.type,
            ) from None

    def _no_device(self, group: _Group) -> InvalidArgumentError:
        op = group.first
        there = ", ".join(device.name for device in self._devices.mgr.all)
        kind = group.asked.type or "such"
        return InvalidArgumentError(
            f"Cannot assign a device for operation {op.name}: Could not satisfy explicit device "
            f"specification '{op.device or group.asked}' because no supported kernel for {kind} devices "
            f"is available for {_names(group.members)} ({group.why}); device types with kernels: "
            f"{', '.join(group.types)}; available devices are [ {there} ]",
            node=op.name,
            op=op.type,
        )


def _listed(group: _Group) -> str:
    return f"{_names(group.members)} run on {', '.join(group.types)}"


def _names(ops: Iterable[Operation]) -> str:
    names = [f"'{op.name}'" for op in ops]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
