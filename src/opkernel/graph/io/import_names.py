"""Names and colocation groups of imported nodes.

Source: TensorFlow core/common_runtime/graph_constructor.cc, python/framework/importer.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from opkernel.errors import InvalidArgumentError
from opkernel.graph.core.node import COLOCATION_ATTR, COLOCATION_PREFIX
from opkernel.graph.core.operation import Operation

if TYPE_CHECKING:
    from opkernel.graph.core.scopes import Scopes


def choose_names(
    names: Iterable[str], prefix: str, taken: Collection[str], *, uniquify: bool
) -> dict[str, str]:
    """The names under which nodes are imported, by their own names.

    Args:
        names: the names of the nodes.
        prefix: stands before them, parted by a slash; empty for none.
        taken: the names of the nodes that the graph has.
        uniquify: give nodes whose names are taken the first free `name_N`; the scopes of the
            graph's nodes count as taken too.

    Raises:
        InvalidArgumentError: a name is taken, and `uniquify` is off.
    """
    start = f"{prefix}/" if prefix else ""
    chosen = {name: start + name for name in names}
    if not taken:
        return chosen
    if not uniquify:
        for name, new in chosen.items():
            if new in taken:
                raise InvalidArgumentError(
                    f"Node name '{new}' already exists in the Graph", node=name
                )
        return chosen
    used = {*taken, *_scopes_of(taken)}
    reserved = set(chosen.values())
    for name, new in chosen.items():
        if new in used:
            number = 1
            while f"{new}_{number}" in used or f"{new}_{number}" in reserved:
                number += 1
            chosen[name] = f"{new}_{number}"
            reserved.add(chosen[name])
    return chosen


def _scopes_of(names: Iterable[str]) -> set[str]:
    scopes = set()
    for name in names:
        scope = name.rpartition("/")[0]
        while scope and scope not in scopes:
            scopes.add(scope)
            scope = scope.rpartition("/")[0]
    return scopes


def follow_colocation(by_name: Mapping[str, Operation], *, validate: bool) -> None:
    """Let the colocation groups of operations follow their new names.

    Args:
        by_name: the operations by the names that the groups have.
        validate: refuse groups of operations that do not exist.

    Raises:
        InvalidArgumentError: there is such a group.
    """
    for name, op in by_name.items():
        if COLOCATION_ATTR not in op.message.attr:
            continue
        groups = op.attr[COLOCATION_ATTR].list.s
        for index, group in enumerate(groups):
            if not group.startswith(COLOCATION_PREFIX):
                continue
            other = group.removeprefix(COLOCATION_PREFIX).decode("utf-8", "replace")
            target = by_name.get(other)
            if target is not None:
                groups[index] = COLOCATION_PREFIX + target.name.encode()
            elif validate:
                raise InvalidArgumentError(
                    f"Node '{name}' expects to be colocated with unknown node '{other}'",
                    node=name,
                    op=op.type,
                )


def place(ops: Sequence[Operation], scopes: Scopes[Operation]) -> None:
    """Put operations on the device of the scopes around the import.

    A colocated operation goes where those that it is colocated with are.
    """
    if not scopes.devices:
        return
    by_group = {COLOCATION_PREFIX + op.name.encode(): op for op in ops}
    colocated = []
    for op in ops:
        others = [by_group[group] for group in op.colocation_groups() if group in by_group]
        if all(other is op for other in others):
            op.message.device = scopes.device_for(op)
        else:
            op.message.device = ""
            colocated.append((op, others))
    for op, others in colocated:
        op.message.device = next((other.device for other in others if other.device), "")
