"""Loop invariants: results that are the same in every turn of a loop are computed before it.

A loop may end before its first turn, so only operations are moved that cannot fail. An argument that the body of a While
gives back as it is has one value in all turns. Nodes of body and condition that depend on such arguments and on constants
alone move in front of the While; what they give enters it as a further argument.

Source: TensorFlow core/grappler/optimizers/loop_optimizer.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from opkernel.errors import OpError
from opkernel.graph import Operation, Tensor, instantiate_function
from opkernel.graph.core.edges import origin
from opkernel.graph.core.structural_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.edit.loop_variables import add_loop_variables
from opkernel.optimization.control_flow.extracted_function import add_function_of
from opkernel.proto import AttrValue, NameAttrList
from opkernel.types import DataType


class _Invariant(NamedTuple):
    """The results of an operation that are equal in every turn: tensors before the loop.

    `enter` is an Enter of the loop, None for constants; `waits_for` is the operation that says that
    there is a turn.
    """

    outside: tuple[Tensor, ...]
    enter: Operation | None
    waits_for: tuple[Operation, ...]


def loop_invariants(editor: GraphEditor) -> None:
    """Compute before a loop the results that are the same in every turn of it."""
    order = editor.operations()
    known: dict[Operation, _Invariant] = {}
    moved = []
    for op in order:
        invariant = _invariant(editor, op, known)
        if invariant is not None:
            known[op] = invariant
            if op.type not in ("Enter", "Const"):
                moved.append(op)
    for op in moved:
        _enter_again(editor, op, known)


def _invariant(
    editor: GraphEditor, op: Operation, known: dict[Operation, _Invariant]
) -> _Invariant | None:
    """The invariant of an operation; its copy before the loop, if it can move."""
    if op.type == "Enter":
        source = op.inputs[0]
        is_constant = op.attr["is_constant"].b and not source.dtype.is_ref
        if not is_constant or editor.is_conditional(source.op) or op.control_inputs:
            return None
        return _Invariant((source,), op, ())
    if not all(editor.is_conditional(control) for control in op.control_inputs):
        return None
    if op.type == "Const":
        return _Invariant(op.outputs, None, op.control_inputs)
    if not op.edges or not all(source in known for source in op.edges[::2]):
        return None
    return _moved(editor, op, [known[source] for source in op.edges[::2]])


def _moved(editor: GraphEditor, op: Operation, inputs: list[_Invariant]) -> _Invariant | None:
    """The copy of an operation before the loop."""
    enters = [one.enter for one in inputs if one.enter is not None]
    frames = {enter.attr["frame_name"].s for enter in enters}
    if len(frames) != 1 or op in editor.preserved or not cannot_fail(editor, op):
        return None
    outside = [
        _before_loop(editor, one.outside[tensor.value_index])
        for one, tensor in zip(inputs, op.inputs, strict=True)
    ]
    copy = editor.add(op.type, outside, f"{op.name}/invariant", editor.attrs(op), op.device)
    waits_for = [control for one in inputs for control in one.waits_for]
    controls = dict.fromkeys([*waits_for, *op.control_inputs])
    return _Invariant(copy.outputs, enters[0], tuple(controls))


def _before_loop(editor: GraphEditor, tensor: Tensor) -> Tensor:
    """A tensor before the loop: of a constant in the loop, another one."""
    op = tensor.op
    if op.type != "Const" or not op.control_inputs:
        return tensor
    name = f"{op.name}/invariant"
    return editor.add("Const", (), name, editor.attrs(op), op.device).outputs[0]


def cannot_fail(editor: GraphEditor, op: Operation) -> bool:
    """Whether an operation may run though its results may not be needed."""
    traits = op.traits
    takes_any_shape = traits.pointwise and len(op.edges) == 2
    if traits.passes_on or traits.reads_shapes_only or (traits.cannot_fail and takes_any_shape):
        return True
    tensors = [*op.inputs, *op.outputs]
    return traits.cannot_fail and all(editor.dims(tensor) is not None for tensor in tensors)


def _enter_again(editor: GraphEditor, op: Operation, known: dict[Operation, _Invariant]) -> None:
    """Have those in the loop that take a moved operation take it from before the loop."""
    (outside, *_), enter, waits_for = known[op]
    assert enter is not None
    consumers = [
        (consumer, index)
        for consumer, index in editor.consumers(op.outputs[0])
        if consumer not in known and consumer.type not in LOW_LEVEL_CONTROL_FLOW
    ]
    if consumers:
        attrs = editor.attrs(enter) | {"T": outside.dtype.base}
        entered = editor.add("Enter", [outside], f"{op.name}/enter", attrs, enter.device)
        for consumer, index in consumers:
            consumer.update_input(index, entered.outputs[0])
            consumer.add_control_inputs(list(waits_for))
        editor.note(op, "is computed before the loop")


_MAX_DEPTH = 4
_MAX_INNER_LOOPS = 64
"""Loops within a loop are looked into so deep, and so many; a loop may be in its own body."""


def while_invariants(editor: GraphEditor) -> None:
    """Compute before a While the results that are the same in every turn of it."""
    for op in _loops(editor):
        _move_out_of_loop(editor, op, _MAX_DEPTH, iter(range(_MAX_INNER_LOOPS)))


def _loops(editor: GraphEditor) -> list[Operation]:
    """The loops that may have invariants, as far as can be told without a look inside."""
    return [
        op
        for op in editor.operations()
        if op.traits.calls == "while"
        and not editor.is_conditional(op)
        and _is_worth_a_look(editor, op)
    ]


def _move_out_of_loop(
    editor: GraphEditor, op: Operation, depth: int, inner_loops: Iterator[int]
) -> None:
    """Move invariants out of a loop, and out of some of the loops within it."""
    try:
        parts = [_Part(editor, op, attr) for attr in ("cond", "body")]
    except OpError:  # the step that runs the loop raises the error
        return
    if all(part.may_change for part in parts):
        for part in parts:
            part.look_into_loops(depth, inner_loops)
        _move_out(editor, op, parts)


def _is_worth_a_look(editor: GraphEditor, op: Operation) -> bool:
    """Whether the body of a loop, as it is written, passes an argument on or holds loops."""
    library = editor.graph.function_library
    body = library.get(op.attr["body"].func.name)
    if body is None:
        return False
    signature, nodes = body.signature, body.node_def
    traits = {node.op: library.traits(node.op) for node in nodes}
    identities = {
        node.name: node.input[0] for node in nodes if traits[node.op].passes_on and node.input
    }
    has_lists = any(arg.number_attr or arg.type_list_attr for arg in signature.input_arg)
    if has_lists or any(one.calls == "while" for one in traits.values()):
        return True
    return any(
        _origin(body.ret.get(result.name, ""), identities) == arg.name
        for arg, result in zip(signature.input_arg, signature.output_arg, strict=False)
    )


def _origin(name: str, identities: dict[str, str]) -> str:
    """The tensor, `node:output:0` or an argument, that reaches one of a function unchanged."""
    for _ in identities:
        node, _, output = name.partition(":")
        if not output or node not in identities:
            break
        name = identities[node]
    return name


def _move_out(editor: GraphEditor, op: Operation, parts: Sequence[_Part]) -> None:
    """Move invariants in front of a loop."""
    same = {index: t for index, t in enumerate(op.inputs) if parts[-1].passes_on(index)}
    for part in parts:
        part.find_invariants(same)
    further = list(dict.fromkeys([t for part in parts for t in part.found.values()]))
    if further or any(part.is_edited for part in parts):
        functions = {part.attr: part.with_arguments(further) for part in parts}
        shapes = [editor.shape(tensor) for tensor in further]
        add_loop_variables(op, further, shapes, functions)
    if further:
        ops = ", ".join(sorted({tensor.op.type for tensor in further}))
        editor.note(op, f"takes what is the same in every turn: {ops}")


class _Part:
    """The condition or the body of a loop.

    Attributes:
        attr: which of them.
        is_edited: whether loops within it take more than before.
        found: its tensors that will come from in front of the loop, each with the tensor there.

    State: `_outside` is what nodes that are the same in every turn give in front of the loop;
    `_constants` are those that something takes there.
    """

    def __init__(self, editor: GraphEditor, loop: Operation, attr: str) -> None:
        self.attr = attr
        self.is_edited = False
        self.found: dict[Tensor, Tensor] = {}
        self._editor, self._loop = editor, loop
        self._reference = loop.node_def.attr[attr].func
        body = instantiate_function(editor.graph.function_library, self._reference)
        self._body = body
        ends = [*body.arg_nodes, *body.ret_nodes, *body.targets]
        self._inner = GraphEditor(body.graph, ends, body.arg_nodes)
        self._inner.operations()  # where there is a cycle it is found
        self._outside: dict[Operation, tuple[Tensor, ...]] = {}
        self._constants: dict[Operation, Operation] = {}

    @property
    def may_change(self) -> bool:
        """Whether it fits the loop, and no kernel has state: another function's would have its own."""
        fits = len(self._body.inputs) == len(self._loop.inputs)
        return fits and not any(_has_state(op) for op in self._body.targets)

    def passes_on(self, index: int) -> bool:
        """Whether an argument is the result of its number, too."""
        results = self._body.outputs
        if index >= len(results):
            return False
        result = results[index]
        return origin((result.op, result.value_index)) == (self._body.arg_nodes[index], 0)

    def look_into_loops(self, depth: int, inner_loops: Iterator[int]) -> None:
        """Move what is the same in every turn out of the loops within it."""
        for op in _loops(self._inner) if depth else ():
            if next(inner_loops, None) is not None:
                _move_out_of_loop(self._inner, op, depth - 1, inner_loops)
        for change in self._inner.changes:
            self.is_edited = True
            self._editor.note(self._loop, f"holds {change.node!r}, which {change.what}")

    def find_invariants(self, arguments: Mapping[int, Tensor]) -> None:
        """Find what depends on some arguments, given as they are in front of the loop, alone."""
        nodes = self._body.arg_nodes
        self._outside.update({nodes[index]: (tensor,) for index, tensor in arguments.items()})
        order = self._inner.operations()
        for op in order:
            if op not in self._outside and self._is_candidate(op):
                self._move(op)
        for op in order:
            for tensor in () if op in self._outside else op.inputs:
                outside = self._outside.get(tensor.op)
                if outside is not None and outside[0] not in self._loop.inputs:
                    self.found[tensor] = outside[tensor.value_index]

    def _is_candidate(self, op: Operation) -> bool:
        """Whether an operation takes constants and what is the same in every turn alone."""
        sources = set(op.edges[::2])
        varying = [source for source in sources if source not in self._outside]
        if op.control_inputs or op.op_def.is_stateful or len(varying) == len(sources):
            return False
        return all(source.type == "Const" and not source.control_inputs for source in varying)

    def _move(self, op: Operation) -> None:
        """Do in front of the loop what an operation does, where it cannot fail."""
        editor = self._editor
        inputs = [self._tensor_outside(tensor) for tensor in op.inputs]
        if op.traits.passes_on:
            self._outside[op] = (inputs[0],)
            return
        copy = editor.add(op.type, inputs, self._name(op), editor.attrs(op), op.device)
        if cannot_fail(editor, copy):
            self._outside[op] = copy.outputs

    def _tensor_outside(self, tensor: Tensor) -> Tensor:
        op = tensor.op
        if op in self._outside:
            return self._outside[op][tensor.value_index]
        if op not in self._constants:
            attrs = self._editor.attrs(op)
            self._constants[op] = self._editor.add("Const", (), self._name(op), attrs, op.device)
        return self._constants[op].outputs[0]

    def _name(self, op: Operation) -> str:
        return f"{self._loop.name}/{op.name}"

    def with_arguments(self, further: Sequence[Tensor]) -> AttrValue:
        """A function that takes more, given as it is in front of the loop, and passes it on."""
        body = self._body
        attrs = [{"dtype": tensor.dtype.base} for tensor in further]
        added = [self._inner.add("Placeholder", (), "invariant", a).outputs[0] for a in attrs]
        by = dict(zip(further, added, strict=True))
        for tensor, outside in self.found.items():
            self._inner.redirect(tensor, by[outside])
        inputs = [*body.inputs, *added]
        outputs = [*body.outputs, *(added if self.attr == "body" else ())]
        function = add_function_of(
            body.graph,
            body.graph.function_library,
            body.name,
            inputs,
            outputs,
            targets=body.targets,
            controls=body.control_ret_nodes,
            attrs=body.function_def.attr,
        )
        named = NameAttrList(name=function.signature.name, attr=self._reference.attr)
        return AttrValue(func=named)


def _has_state(op: Operation) -> bool:
    """Whether an operation's kernel may keep something from one call to the next, by itself."""
    if not op.op_def.is_stateful or any(attr.type == "func" for attr in op.op_def.attr):
        return False
    return DataType.DT_RESOURCE not in {*op.input_types, *op.output_types}
