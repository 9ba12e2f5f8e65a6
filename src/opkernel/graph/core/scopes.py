"""The scopes that new nodes fall under: names, devices, control dependencies, colocation.

Each thread has its own scopes. Source: TensorFlow python/framework/ops.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeAlias

from opkernel.graph.core.node import COLOCATION_ATTR, GRADIENT_OP_TYPE_ATTR, AnyNode
from opkernel.interrupts import contextmanager
from opkernel.opdef import DeviceName, attr_from_python
from opkernel.records import dataclass, field

DeviceFunction: TypeAlias = Callable[[AnyNode], str | None]
"""Chooses the device of a new operation, or None to leave it."""


@dataclass(slots=True)
class _Controllers(Generic[AnyNode]):
    """The control inputs of one `control_dependencies` block, and the operations made in it."""

    inputs: list[AnyNode]
    made_inside: set[AnyNode] = field(default_factory=set)


class Scopes(threading.local, Generic[AnyNode]):
    """The scopes of a graph in one thread.

    Attributes:
        name: the name scope, without the slash at its end.
        devices: the device scopes, outermost first; None drops those before it.
        controllers: the blocks of control dependencies, outermost first.
        colocated: the operations to colocate with, outermost first.
        gradients: for each op, the name under which its gradient is looked up.
        control_flow_context: the conditional or loop that is being built. Its method `AddOp` gets each
            new operation.
    """

    def __init__(self) -> None:
        self.name = ""
        self.devices: list[DeviceName | DeviceFunction[AnyNode] | None] = []
        self.controllers: list[_Controllers[AnyNode]] = []
        self.colocated: list[AnyNode] = []
        self.gradients: Mapping[str, str] = {}
        self.control_flow_context: Any = None

    @contextmanager
    def in_name(self, name: str) -> Iterator[str]:
        """Put new names under `name`; gives the prefix that they get."""
        outer, prefix = self.name, f"{name}/" if name else ""
        try:
            self.name = name
            yield prefix
        finally:
            self.name = outer

    @contextmanager
    def on_device(self, device: str | DeviceFunction[AnyNode] | None) -> Iterator[None]:
        """Put new operations on a device; inner scopes override it."""
        outer = self.devices
        scope = DeviceName.parse(device) if isinstance(device, str) else device
        try:
            self.devices = [*outer, scope]
            yield
        finally:
            self.devices = outer

    @contextmanager
    def after(self, inputs: Sequence[AnyNode] | None) -> Iterator[None]:
        """Make new operations run after `inputs`; None drops the control inputs of outer blocks.

        With None they are in no control-flow context either.
        """
        outer, context = self.controllers, self.control_flow_context
        try:
            if inputs is None:
                self.controllers, self.control_flow_context = [], None
            else:
                known = {op for block in outer for op in block.inputs}
                new = [op for op in dict.fromkeys(inputs) if op not in known]
                self.controllers = [*outer, _Controllers(new)]
            yield
        finally:
            self.controllers = outer
            if inputs is None:
                self.control_flow_context = context

    @contextmanager
    def beside(self, op: AnyNode | None, *, ignore_existing: bool) -> Iterator[None]:
        """Colocate new operations with `op`; the device scopes outside do not count inside."""
        outer = self.colocated, self.devices
        try:
            self.colocated = [] if ignore_existing or op is None else self.colocated
            if op is not None:
                self.colocated, self.devices = [*self.colocated, op], []
            yield
        finally:
            self.colocated, self.devices = outer

    @contextmanager
    def with_gradients(self, names: Mapping[str, str]) -> Iterator[None]:
        """Look up the gradients of new operations of some ops by other names."""
        outer = self.gradients
        try:
            self.gradients = {**outer, **names}
            yield
        finally:
            self.gradients = outer

    def apply_to(self, op: AnyNode) -> None:
        """Give a new operation the control inputs, device, colocation and gradient that they say."""
        asked = self._control_inputs_for(op.edges[::2])
        controls = tuple(dict.fromkeys((*op.control_inputs, *asked)))
        if len(controls) > len(op.control_inputs):
            op.control_inputs, op.stale = controls, True
        if self.devices:
            op.message.device = self.device_for(op)
        if op.type in self.gradients:
            op.attr[GRADIENT_OP_TYPE_ATTR].s = self.gradients[op.type].encode()
        groups = sorted({group for op in self.colocated for group in op.colocation_groups()})
        if groups:
            op.attr[COLOCATION_ATTR].CopyFrom(attr_from_python(groups, "list(string)"))
            devices = [other.device for other in reversed(self.colocated) if other.device]
            op.message.device = devices[0] if devices else op.message.device

    def device_for(self, op: AnyNode) -> str:
        """The device of a new operation that has asked for `op.device` itself."""
        device = op.device
        for scope in reversed(self.devices):
            if scope is None:
                break
            if isinstance(scope, DeviceName):
                device = str(scope.merge(DeviceName.parse(device)))
            else:
                op.slim_message.device = device  # what the scopes within have made of it
                chosen = scope(op)
                device = device if chosen is None else str(chosen)
        return device

    def _control_inputs_for(self, producers: Sequence[AnyNode]) -> list[AnyNode]:
        """The control inputs of a new operation with data from `producers`.

        A block's control inputs are left out where a producer was itself made in the block.
        """
        needed: dict[AnyNode, None] = {}
        for block in self.controllers:
            if block.made_inside.isdisjoint(producers):
                needed.update(dict.fromkeys(op for op in block.inputs if op not in producers))
        return list(needed)

    def note_made(self, op: AnyNode) -> None:
        """Remember in which blocks of control dependencies an operation was made."""
        for block in self.controllers:
            block.made_inside.add(op)
