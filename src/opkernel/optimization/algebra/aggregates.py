"""Aggregates: ops that may group their inputs as they like, such as AddN (`OpDef.is_aggregate`).

The inputs that come from another device are aggregated there first, so that one tensor comes from
each device. On one device an aggregate of aggregates becomes a single one, if the result is the
same to the last bit.

Source: is_aggregate in TensorFlow core/framework/op_def.proto; AddOpsRewriteStage in
core/grappler/optimizers/arithmetic_optimizer.cc.
"""

from __future__ import annotations

from collections import defaultdict

from opkernel.graph import Operation, Tensor
from opkernel.graph.edit.graph_editor import GraphEditor

_SUMS = {"AddV2": "AddN"}
"""Aggregates of two tensors that are broadcast, and those that do the same to a list of one shape."""


def aggregates(editor: GraphEditor) -> None:
    """Aggregate inputs on the device that they come from, and merge aggregates of aggregates."""
    operations = [op for op in editor.operations() if op.op_def.is_aggregate]
    for op in operations:
        if op not in editor.feeds and _takes_list(op):
            _join(editor, op)
    if not editor.graph.assigned_devices:
        return
    for op in reversed(operations):  # from the outermost, whose tree is the largest
        if op not in editor.feeds and op.edges:
            _aggregate_by_device(editor, op)


def _takes_list(op: Operation) -> bool:
    """Whether an op takes one list of tensors of a type, and gives one tensor of that type."""
    inputs, outputs = op.op_def.input_arg, op.op_def.output_arg
    return (
        len(inputs) == len(outputs) == 1
        and bool(inputs[0].number_attr and inputs[0].type_attr)
        and inputs[0].type_attr == outputs[0].type_attr
    )


def _join(editor: GraphEditor, op: Operation) -> None:
    """Take what the aggregate takes that is the first input: the order stays. That of integers may change."""
    found: list[Tensor] = []
    length = op.op_def.input_arg[0].number_attr
    for index, tensor in enumerate(op.inputs):
        may_join = index == 0 or tensor.dtype.is_integer
        inner = editor.part(op, index, op.type) if may_join else None
        is_alike = inner is not None and all(  # but for the length
            op.attr[attr.name] == inner.attr[attr.name]
            for attr in op.op_def.attr
            if attr.name != length
        )
        found += inner.inputs if inner is not None and is_alike else [tensor]
    if len(found) > len(op.inputs):
        editor.become(op, op.type, found, editor.attrs(op) | {length: len(found)})
        editor.note(op, f"aggregates {len(found)} tensors at once")


def _aggregate_by_device(editor: GraphEditor, op: Operation) -> None:
    """Aggregate the inputs from one other device there, if there are several."""
    terms = _terms(editor, op)
    there: dict[str, list[Tensor]] = defaultdict(list)
    for tensor in terms:
        if tensor.op not in editor.feeds and tensor.op.device not in ("", op.device):
            there[tensor.op.device].append(tensor)
    there = {device: tensors for device, tensors in there.items() if len(tensors) > 1}
    if not there:
        return
    if op.type in _SUMS:
        op_type, length, attrs = _SUMS[op.type], "N", {"T": op.output_types[0]}
    else:
        op_type, length = op.type, op.op_def.input_arg[0].number_attr
        attrs = editor.attrs(op)
    rest = [
        tensor for tensor in terms if tensor.op.device not in there or tensor.op in editor.feeds
    ]
    for number, (device, tensors) in enumerate(there.items()):
        own = {**attrs, length: len(tensors)}
        local = editor.add(op_type, tensors, f"{op.name}/of_device_{number}", own, device)
        rest.append(local.outputs[0])
    editor.become(op, op_type, rest, {**attrs, length: len(rest)})
    editor.note(op, f"takes one tensor from {', '.join(there)}")


def _terms(editor: GraphEditor, op: Operation) -> list[Tensor]:
    """What an aggregate is of in the end, as far as aggregates on its device make its inputs of that.

    Nothing, where terms may be broadcast, or its op is not known to have one of a list.
    """
    if not editor.is_valid(op):
        return []
    if _takes_list(op):
        return list(op.inputs)
    if op.type not in _SUMS:
        return []
    found: list[Tensor] = []
    waiting = [op]
    while waiting:
        one = waiting.pop()
        parts = [editor.part(one, index, op.type) for index in (1, 0)]
        waiting += [part for part in parts if part is not None]
        found += [t for t, p in zip(one.inputs, reversed(parts), strict=True) if p is None]
    is_one_shape = all(editor.have_one_shape(found[0], tensor) for tensor in found[1:])
    return found if is_one_shape else []
