"""Colocation groups, which are named after nodes, where nodes are renamed or removed."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from opkernel.graph.core.node import COLOCATION_ATTR, COLOCATION_PREFIX
from opkernel.graph.core.operation import Operation
from opkernel.opdef import attr_from_python


def bequeath_groups(ops: Sequence[Operation], gone: Collection[str] | None = None) -> None:
    """Name groups of nodes that are gone after the first operation that is left of each.

    Args:
        ops: the operations that are left.
        gone: the names of the nodes; all that are not among `ops` if None.
    """
    heirs: dict[str, str] = {}
    there = {op.name for op in ops} if gone is None else set()
    for op in ops if gone is None or gone else ():
        for group in op.colocation_groups() if COLOCATION_ATTR in op.attr else ():
            name = group.removeprefix(COLOCATION_PREFIX).decode("utf-8", "surrogateescape")
            if name in gone if gone is not None else name not in there:
                heirs.setdefault(name, op.name)
    if heirs:
        rename_groups(ops, heirs)


def rename_groups(ops: Iterable[Operation], names: Mapping[str, str]) -> None:
    """Have the groups of operations follow the new names of nodes."""
    for op in ops:
        if COLOCATION_ATTR in op.attr:
            groups = op.attr[COLOCATION_ATTR].list.s
            renamed = renamed_groups(groups, names)
            if renamed != groups:
                op.set_attr(COLOCATION_ATTR, attr_from_python(renamed, "list(string)"))


def renamed_groups(groups: Iterable[bytes], names: Mapping[str, str]) -> list[bytes]:
    """Colocation groups with the new names of the nodes that they are named after."""
    return [_renamed_group(group, names) for group in groups]


def _renamed_group(group: bytes, names: Mapping[str, str]) -> bytes:
    if not group.startswith(COLOCATION_PREFIX):
        return group
    name = group.removeprefix(COLOCATION_PREFIX).decode("utf-8", "surrogateescape")
    return COLOCATION_PREFIX + names.get(name, name).encode("utf-8", "surrogateescape")
