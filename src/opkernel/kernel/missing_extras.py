"""The extras of opkernel that nodes need and that are not installed: known before anything runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from opkernel.device.local_device import CPU
from opkernel.errors import OpError, UnimplementedError
from opkernel.kernel.registry.create import create_op_kernel
from opkernel.kernel.registry.provider import registered_providers
from opkernel.libraries import is_extra_missing
from opkernel.opdef import add_defaults_to_node_def, global_op_registry
from opkernel.proto import NodeDef


class MissingExtra(NamedTuple):
    """An extra that is not installed.

    Attributes:
        extra: the name of the extra, such as `strings`.
        ops: the ops whose kernels need it, or have faster kernels with it.
        is_certain: whether all steps that run the ops need it; else some inputs of the ops do.
    """

    extra: str
    ops: list[str]
    is_certain: bool

    def __str__(self) -> str:
        return self.sentence("needs" if self.is_certain else "may need, depending on its inputs,")

    def sentence(self, verb: str) -> str:
        """What a model has to do with the extra, such as `needs opkernel[xla]: XlaSort (...)`."""
        ops = ", ".join(self.ops)
        return f"{verb} opkernel[{self.extra}]: {ops} (pip install 'opkernel[{self.extra}]')"

    def as_json(self) -> dict[str, Any]:
        """The extra, the ops, and whether it is certain."""
        return {"extra": self.extra, "ops": self.ops, "certain": self.is_certain}


def missing_extras(nodes: Iterable[NodeDef]) -> list[MissingExtra]:
    """The extras that nodes need and that are not installed; those that steps need in any case come first.

    It loads no op that needs none.
    """
    registry = global_op_registry()
    by_op: dict[str, list[NodeDef]] = {}
    for node in nodes:
        by_op.setdefault(node.op, []).append(node)
    found: dict[tuple[bool, str], list[str]] = {}
    for op in sorted(by_op):
        traits = registry.traits(op)
        if not traits.extra or not is_extra_missing(traits.extra):
            continue
        if traits.extra_when != "attrs" or any(map(_lacks_library, by_op[op])):
            found.setdefault((traits.extra_when == "inputs", traits.extra), []).append(op)
    return [
        MissingExtra(extra, ops, not depends) for (depends, extra), ops in sorted(found.items())
    ]


def extras_for_speed(nodes: Iterable[NodeDef]) -> list[MissingExtra]:
    """The extras that are not installed and bring kernel providers with faster kernels for some of the nodes."""
    wanting = [one for one in registered_providers() if one.extra and not one.is_available()]
    ops = sorted({node.op for node in nodes}) if wanting else []
    found = [
        MissingExtra(one.extra, [op for op in ops if one.kernels.registrations_for(op)], False)
        for one in wanting
    ]
    return [one for one in found if one.ops]


def _lacks_library(node: NodeDef) -> bool:
    """Whether the kernel of a node cannot be constructed without a library."""
    registry = global_op_registry()
    copy = NodeDef(name=node.name, op=node.op, attr=node.attr)
    copy.input.extend(node.input)
    try:
        add_defaults_to_node_def(copy, registry.look_up_op_def(node.op))
        create_op_kernel(CPU, copy)
    except UnimplementedError:
        return True
    except OpError:  # whoever runs it will tell
        return False
    return False
