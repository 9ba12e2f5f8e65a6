"""Nodes that an older TensorFlow's optimiser wrote, before their ops had all the attrs that they have now.

TensorFlow does not promise to read what its optimiser wrote: an attr of such an op may come without a default.
"""

from __future__ import annotations

from opkernel.proto import NodeDef

OLDER_OPS = frozenset({"_FusedConv2D"})
"""The ops whose nodes may lack an attr that has no default."""


def add_later_attrs(node: NodeDef) -> None:
    """Give a node of one of these ops the attrs that it lacks, with what held before they existed.

    Once all `args` of `_FusedConv2D` had the type of its input; today `TArgs` lists their types.
    """
    attrs = node.attr
    if "TArgs" not in attrs and "T" in attrs and "num_args" in attrs:
        inputs = sum(not name.startswith("^") for name in node.input)
        count = min(attrs["num_args"].i, inputs)
        attrs["TArgs"].list.type.extend([attrs["T"].type] * count)
