"""While invariants: results that are the same in every turn of a While are computed before it.

An argument that the body gives back as it is has one value in all turns. Nodes of body and condition
that depend on such arguments and on constants alone move in front of the loop; what they give enters
it as a further argument. The loop may make no turn, so only operations are moved that cannot fail.

Source: TensorFlow core/grappler/optimizers/loop_optimizer.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opkernel.errors import OpError
from opkernel.graph import Operation, Tensor, graph_to_function_def, instantiate_function
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.edit.loop_variables import add_loop_variables
from opkernel.graph.edit.prune import prune_and_order
from opkernel.optimization.control_flow.loop_invariants import cannot_fail
from opkernel.proto import AttrValue, NameAttrList
from opkernel.types import DataType

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
        tensor = results[index]
        while tensor.op.traits.passes_on:
            tensor = tensor.op.inputs[0]
        return tensor is self._body.inputs[index]

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
            attrs["value"] = attrs["value"].tensor
            self._constants[op] = self._editor.add("Const", (), self._name(op), attrs, op.device)
        return self._constants[op].outputs[0]

    def _name(self, op: Operation) -> str:
        return f"{self._loop.name}/{op.name}"

    def with_arguments(self, further: Sequence[Tensor]) -> AttrValue:
        """A function that takes more, given as it is in front of the loop, and passes it on."""
        graph, body = self._body.graph, self._body
        attrs = [{"dtype": tensor.dtype.base} for tensor in further]
        added = [self._inner.add("Placeholder", (), "invariant", a).outputs[0] for a in attrs]
        by = dict(zip(further, added, strict=True))
        for tensor, outside in self.found.items():
            self._inner.redirect(tensor, by[outside])
        inputs = [*body.inputs, *added]
        outputs = [*body.outputs, *(added if self.attr == "body" else ())]
        given = {tensor.op for tensor in inputs}
        order = prune_and_order(outputs, body.targets, ())
        function = graph_to_function_def(
            graph,
            body.name,
            inputs,
            outputs,
            body=[op for op in order if op not in given],
            control_outputs={op.name: op for op in body.control_ret_nodes},
            attrs=body.function_def.attr,
            append_hash_to_fn_name=True,
        )
        graph.function_library.add_function(function)
        named = NameAttrList(name=function.signature.name, attr=self._reference.attr)
        return AttrValue(func=named)


def _has_state(op: Operation) -> bool:
    """Whether an operation's kernel may keep something from one call to the next, by itself."""
    if not op.op_def.is_stateful or any(attr.type == "func" for attr in op.op_def.attr):
        return False
    return DataType.DT_RESOURCE not in {*op.input_types, *op.output_types}
