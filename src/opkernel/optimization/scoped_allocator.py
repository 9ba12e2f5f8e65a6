"""Scoped allocators: reductions side by side become one, of an array that holds all their inputs.

Nodes put their outputs into the array of a `_ScopedAllocator`, each into a slice, so that nothing is copied. One
CollectiveReduce is of the whole array, and `_ScopedAllocatorSplit` gives the slices to whoever took a result. All
members of a group must reduce the same: the pass runs where it is asked for by name.

Source: TensorFlow core/grappler/optimizers/scoped_allocator_optimizer.cc.
"""

import itertools
from collections import defaultdict
from collections.abc import Sequence

from opkernel.device.scoped_allocator import populate_fields
from opkernel.graph import Operation, Tensor
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.opdef import attr_from_python

MERGED = "CollectiveReduce"
"""The op whose nodes are merged."""
_NUMBERS = itertools.count(1, 1 << 20)
"""Free scope ids, each followed by those of fields: functions of one step share its scopes, so no two graphs use one."""


def scoped_allocator(editor: GraphEditor) -> None:
    """Merge CollectiveReduce nodes that do not depend on each other into one."""
    if "_ScopedAllocator" in editor.op_types():
        return
    kinds = dict.fromkeys(kind for op in editor.operations() if (kind := _kind(editor, op)))
    for kind in kinds:
        for group in _independent(editor, kind):
            if len(group) > 1:
                _merge(editor, group)


def _kind(editor: GraphEditor, op: Operation) -> tuple[str, ...]:
    """What nodes that may be merged have in common; empty for those that may not."""
    if op.type != MERGED or op in editor.feeds or editor.is_conditional(op):
        return ()
    if not editor.is_valid(op) or editor.dims(op.inputs[0]) is None:
        return ()
    attrs = sorted((name, repr(value)) for name, value in editor.attrs(op).items())
    return (op.device, *(repr(one) for one in attrs if one[0] != "instance_key"))


def _independent(editor: GraphEditor, kind: tuple[str, ...]) -> list[list[Operation]]:
    """The nodes of a kind, by how many others of it come before them: those of a number need no other."""
    before: dict[Operation, int] = {}
    groups: dict[int, list[Operation]] = defaultdict(list)
    for op in editor.operations():
        sources = (*op.edges[::2], *op.control_inputs)
        before[op] = max((before.get(source, 0) for source in sources), default=0)
        if _kind(editor, op) == kind:
            groups[before[op]].append(op)
            before[op] += 1
    return [*groups.values()]


def _merge(editor: GraphEditor, group: Sequence[Operation]) -> None:
    """Have one node reduce the inputs of a group; its instance is the first of theirs."""
    group = sorted(group, key=lambda op: op.attr["instance_key"].i)
    first, dtype = group[0], group[0].output_types[0]
    shapes = [editor.dims(op.inputs[0]) or () for op in group]
    number = next(_NUMBERS)
    fields = populate_fields(number, shapes, dtype)
    size = sum(field.bytes_allocated for field in fields) // dtype.numpy_dtype.itemsize
    name = f"scoped_allocator_{number}"
    named = {"T": dtype, "sa_name": name, "id": number}

    shape = {"shapes": shapes, "shape": (size,), "expected_call_count": len(group)}
    allocator = editor.add("_ScopedAllocator", (), name, named | shape, first.device)
    parts = [
        _in_scope(editor, op, allocator, field.scope_id)
        for op, field in zip(group, fields, strict=True)
    ]
    length = {"N": len(parts)}
    joined = editor.add(
        "_ScopedAllocatorConcat",
        [allocator.outputs[0], *parts],
        f"{name}/concat",
        named | length | {"shape": (size,), "reshape": False},
        first.device,
    )
    one = editor.add(
        first.type, joined.outputs, f"{name}/reduce", editor.attrs(first), first.device
    )
    one.set_attr("_forward_input", attr_from_python([0, 0], "list(int)"))
    one.add_control_inputs(list(dict.fromkeys(c for op in group for c in op.control_inputs)))
    split = editor.add(
        "_ScopedAllocatorSplit",
        [one.outputs[0], *parts],
        f"{name}/split",
        named | length | {"shapes": shapes},
        first.device,
    )
    editor.leave([allocator, joined, one, split, *(part.op for part in parts)])
    for op, part in zip(group, split.outputs, strict=True):
        editor.redirect_control(op, split)
        editor.pass_on(op, part)
    editor.drop(group)
    editor.note(one, f"reduces {len(group)} tensors at once", group)


def _in_scope(editor: GraphEditor, op: Operation, allocator: Operation, scope_id: int) -> Tensor:
    """The input of a node, which is in a slice of the array."""
    tensor = op.inputs[0]
    if not _may_write(editor, tensor, op):
        attrs = {"T": tensor.dtype}
        tensor = editor.add("Identity", [tensor], f"{op.name}/input", attrs, op.device).outputs[0]
    scope = attr_from_python([tensor.value_index, scope_id], "list(int)")
    tensor.op.set_attr("_scoped_allocator", scope)
    tensor.op.add_control_inputs([allocator])
    return tensor


def _may_write(editor: GraphEditor, tensor: Tensor, op: Operation) -> bool:
    """Whether the node that gives a tensor may put it into the array, where the reduction writes over it."""
    source = tensor.op
    if source in editor.preserved or source in editor.feeds:
        return False
    if source.op_def.is_stateful or not source.edges or len(source.output_types) > 1:
        return False
    return source.device == op.device and editor.consumers(tensor) == [(op, 0)]
