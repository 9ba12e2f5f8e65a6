"""FunctionalizeControlFlow: loops and conditionals of TensorFlow 1 become While and If, for compilers that take them.

Each becomes one node that calls functions, which a compiler can have in a cluster. The functions that nodes call are
looked into as well. Of a loop, the operations between the Merges and the LoopCond become the condition, those between the
Switches and the NextIterations the body; innermost loops come first. Loops and conditionals of odd form stay as they are.

Source: TensorFlow compiler/tf2xla/functionalize_control_flow.cc, functionalize_while.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from opkernel.errors import OpError
from opkernel.graph import Operation, Tensor, instantiate_function
from opkernel.graph.core.edges import edges_of, reached
from opkernel.graph.core.frame_loops import (
    ROOT,
    ControlFlowFormError,
    LoopFrame,
    check_sources,
    control_flow_info,
    frame_name,
    is_constant_enter,
    loop_test,
    loop_variables,
)
from opkernel.graph.core.node import copied
from opkernel.graph.core.structural_ops import (
    ENTER_OPS,
    EXIT_OPS,
    LOW_LEVEL_CONTROL_FLOW,
    SWITCH_OPS,
)
from opkernel.graph.edit.effects import Effect, effect_of
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.edit.subgraph import Needs, prune_and_order
from opkernel.graph.functions.function_library import FunctionLibraryDefinition, functions_of
from opkernel.graph.inference.constant_values import is_small_constant
from opkernel.optimization.clusters.deadness_analysis import DeadnessAnalysis
from opkernel.optimization.control_flow.extracted_function import (
    ExtractedFunction,
    add_function_of,
    check_may_move,
    device_of,
    has_own_state,
    scope_of,
)
from opkernel.optimization.control_flow.functionalize_cond import functionalize_cond
from opkernel.proto import AttrValue, FunctionDef, NameAttrList

_NEEDS = Needs(())


def functionalize_while(editor: GraphEditor) -> None:
    """Have loops become While.

    Raises:
        OpError: the control flow of the graph is not in order; nothing was changed.
    """
    order = editor.operations()
    if not any(op.type in ENTER_OPS for op in order):
        return
    flow = _Flow(order)
    for frame in sorted(flow.loops, key=lambda one: one.depth, reverse=True):
        try:
            _FrameLoop(editor, flow, frame).replace()
        except OpError as error:
            editor.note(flow.first(frame), f"stays in a loop: {error.message}")


class _Flow:
    """The operations of a graph by the loops that they are in.

    Attributes:
        frames: The frame of each operation, by name.
        members: The operations of each frame, in order.
        loops: All frames but the root.
    """

    def __init__(self, order: Sequence[Operation]) -> None:
        self.frames = control_flow_info(order, _NEEDS)
        self.alive = DeadnessAnalysis(order, through_identities=True)
        self.members: dict[LoopFrame, dict[Operation, None]] = {ROOT: {}}
        for op in order:
            self.members.setdefault(self.frames[op.name], {})[op] = None
        self.loops = [frame for frame in self.members if frame is not ROOT]

    def first(self, frame: LoopFrame) -> Operation:
        """An operation to name a loop by."""
        return next(iter(self.members[frame]))

    def put(self, loop: Operation, frame: LoopFrame, instead_of: Iterable[Operation]) -> None:
        """Note the While that stands for a loop in a frame."""
        self.frames[loop.name] = frame
        self.members[frame][loop] = None
        for op in instead_of:
            del self.members[frame][op]


class _FrameLoop:
    """A loop, looked at for what a While needs.

    State: `_inside` are the operations that compute something in a turn, `_part_of_test` and `_part_of_turn` those that
    the condition and the body need.
    """

    def __init__(self, editor: GraphEditor, flow: _Flow, frame: LoopFrame) -> None:
        self._editor, self._flow, self._frame = editor, flow, frame
        self._parent = frame.parent or ROOT
        self._members = [*flow.members[frame]]
        entering = [op for op in flow.members[self._parent] if op.type in ENTER_OPS]
        self._enters = [op for op in entering if frame_name(op) == frame.name]
        self._variables = loop_variables(frame, self._members, flow.frames, _NEEDS)
        self._test = loop_test(self._members)
        self._heads = {one.head: number for number, one in enumerate(self._variables)}
        self._backs = [one.next.op for one in self._variables]
        self._switches = {
            op for op in self._members if op.type in SWITCH_OPS and op.edges[2] is self._test
        }
        self._exits = [op for op in self._members if op.type in EXIT_OPS]
        borders = {*self._heads, *self._backs, *self._switches, *self._exits, self._test}
        self._inside = {op for op in self._members if op not in borders}
        self._part_of_test = self._needed_for([self._test])
        self._part_of_turn = self._needed_for(self._backs)
        self._find_arguments()

    def _needed_for(self, ops: Iterable[Operation]) -> set[Operation]:
        def sources(op: Operation) -> list[Operation]:
            return [one for one in _NEEDS.sources(op) if one in self._inside]

        return set(reached([one for op in ops for one in sources(op)], sources))

    def _find_arguments(self) -> None:
        """Note what enters the loop, and which tensors of a turn it is."""
        self._inputs = [one.start.op.inputs[0] for one in self._variables]
        self._arguments = [[one.head.outputs[0]] for one in self._variables]
        self._constants: dict[Tensor, Operation] = {}
        places: dict[Tensor, int] = {}
        for enter in self._enters:
            source = enter.inputs[0]
            if not is_constant_enter(enter):
                continue
            if is_small_constant(source.op):
                self._constants[enter.outputs[0]] = source.op
                continue
            if source not in places:
                places[source] = len(self._inputs)
                self._inputs.append(source)
                self._arguments.append([])
            self._arguments[places[source]].append(enter.outputs[0])

    # What has to hold.

    def _check(self) -> None:
        """Raise ControlFlowFormError where the loop is no `while` statement."""
        if not self._variables:
            raise ControlFlowFormError("the loop has no variables", self._test)
        for op in (*self._members, *self._enters):
            check_may_move(self._editor, op, is_preserved=op.type not in EXIT_OPS)
            check_sources(op, _NEEDS)
            if op.type in ENTER_OPS and op not in self._enters:
                raise ControlFlowFormError("the loop has one of odd form in it", op)
        for op in self._inside - self._part_of_test - self._part_of_turn:
            raise ControlFlowFormError("it runs when the loop ends", op)
        self._check_start()
        for op in self._switches:
            if op.edges[0] not in self._heads or op.control_inputs:
                raise ControlFlowFormError("it does not decide on a variable", op)
        for op in self._exits:
            is_plain = op.edges[0] in self._switches and op.edges[1] == 0
            if not is_plain or op.control_inputs:
                raise ControlFlowFormError("it does not give the last value of a variable", op)
        self._check_edges()
        self._check_effects()

    def _check_start(self) -> None:
        """All that enters has to be there under the same condition."""
        alive = self._flow.alive
        first = alive.of(self._variables[0].start.op)
        is_same = all(alive.of(one.start.op) is first for one in self._variables)
        if not is_same or not all(alive.of(op).conjuncts <= first.conjuncts for op in self._enters):
            raise ControlFlowFormError("the loop begins with some values missing", self._test)

    def _check_edges(self) -> None:
        for op in (*self._inside, *self._backs):
            for source, index in edges_of(op):
                if source is self._test or (source in self._switches and index == 0):
                    raise ControlFlowFormError("it wants to know whether the loop goes on", op)

    def _check_effects(self) -> None:
        """What has an effect, or sees some, must run as often as before."""
        starts = [
            consumer
            for switch in self._switches
            for consumer in switch.outputs[1].consumers()
            if consumer in self._inside
        ]
        behind_test = reached(
            starts, lambda op: [one for one, _ in op.consumer_edges() if one in self._inside]
        )
        for op in self._part_of_turn - behind_test.keys():
            effect = effect_of(op.signature)
            is_twice = effect is Effect.SEES and op in self._part_of_test
            if effect is Effect.ACTS or is_twice:
                raise ControlFlowFormError("it runs before the test, and the body needs it", op)

    # The While.

    def replace(self) -> None:
        """Put a While in the place of the loop.

        Raises:
            ControlFlowFormError: the loop is no `while` statement.
        """
        self._check()
        test = self._extracted(self._part_of_test)
        cond = self._written(test, "cond", [test.tensor(self._test.inputs[0])])
        body = self._body()
        is_stateful = cond.signature.is_stateful or body.signature.is_stateful
        heads = [one.head.outputs[0] for one in self._variables]
        results = [*heads, *self._inputs[len(heads) :]]  # as these, and not what enters, in shape
        loop = self._editor.add(
            "While" if is_stateful else "StatelessWhile",
            self._inputs,
            f"{scope_of(self._test)}While",
            {
                "T": [tensor.dtype.base for tensor in self._inputs],
                "cond": NameAttrList(name=cond.signature.name),
                "body": NameAttrList(name=body.signature.name),
                "output_shapes": [self._editor.shape(one) for one in results],
                "parallel_iterations": self._enters[0].attr["parallel_iterations"].i,
            },
            device_of(self._members),
            dict.fromkeys([one for enter in self._enters for one in enter.control_inputs]),
        )
        loop.definition_site = self._test.definition_site
        self._hand_over(loop)

    def _body(self) -> FunctionDef:
        function = self._extracted(self._part_of_turn)
        results = [function.tensor(one.inputs[0]) for one in self._backs]
        results += function.inputs[len(results) :]
        waits = [one for op in self._backs for one in op.control_inputs if one in self._inside]
        return self._written(function, "body", results, [function.operation(one) for one in waits])

    def _extracted(self, ops: set[Operation]) -> ExtractedFunction:
        arguments = [[*tensors] for tensors in self._arguments]
        for switch in self._switches:
            arguments[self._heads[switch.edges[0]]].append(switch.outputs[1])
        return ExtractedFunction(self._editor.graph, ops, arguments, self._constants)

    def _written(
        self,
        function: ExtractedFunction,
        part: str,
        results: Sequence[Tensor],
        targets: Sequence[Operation] = (),
    ) -> FunctionDef:
        """The function, with its own conditionals as If."""
        ends = [*function.inputs, *results]
        function.editor.preserved.update([*(tensor.op for tensor in ends), *targets])
        functionalize_cond(function.editor)
        library = self._editor.graph.function_library
        return function.add_to(library, f"{scope_of(self._test)}{part}", results, targets)

    def _hand_over(self, loop: Operation) -> None:
        """Have others take the results of a While."""
        editor = self._editor
        for leave in self._exits:
            result = loop.outputs[self._heads[leave.edges[0].edges[0]]]
            editor.redirect(leave.outputs[0], result)
            editor.redirect_control(leave, loop)
            if leave in editor.preserved:
                editor.become(leave, "Identity", [result], {"T": result.dtype.base})
        editor.place_like(loop, self._test)
        editor.drop((*self._members, *self._enters))
        self._flow.put(loop, self._parent, self._enters)
        editor.note(loop, f"stands for the loop {self._frame.name!r}", self._inside)


_MAX_DEPTH = 50
"""Functions that call each other more deeply stay as they are; those that call themselves are among these."""


def functionalize_control_flow(editor: GraphEditor) -> None:
    """Have loops and conditionals become While and If where a compiler takes them."""
    if editor.options.compiler.takes_loops:
        functionalize(editor, keeps_state=True)


def functionalize(editor: GraphEditor, *, keeps_state: bool = False) -> None:
    """Have the loops and conditionals of a graph, and of the functions that it calls, become While and If.

    Args:
        editor: The graph.
        keeps_state: Whether kernels that keep something from one step to the next stay where they are: the kernels of
            a function would begin anew.
    """
    edit = _functionalize_around_state if keeps_state else _functionalize_graph
    edit(editor)
    _Functions(editor.graph.function_library, edit).replace_in(editor)


def _functionalize_around_state(editor: GraphEditor) -> None:
    feeds = editor.feeds
    editor.leave(op for op in editor.operations() if has_own_state(op))
    _functionalize_graph(editor)
    editor.feeds = feeds


def _functionalize_graph(editor: GraphEditor) -> None:
    if LOW_LEVEL_CONTROL_FLOW.isdisjoint(editor.op_types()):
        return
    with suppress(OpError):  # the step will tell what is wrong with the control flow
        functionalize_while(editor)
        functionalize_cond(editor)


class _Functions:
    """Makes the functions.

    Args:
        library: Where functions are looked up and added.
        edit: Edits the body of one.
    """

    def __init__(
        self, library: FunctionLibraryDefinition, edit: Callable[[GraphEditor], None]
    ) -> None:
        self._library, self._edit = library, edit
        self._known: dict[bytes, NameAttrList] = {}

    def replace_in(self, editor: GraphEditor, depth: int = 0) -> bool:
        """Have the nodes of a graph call such functions; whether any calls another one than before."""
        is_changed = False
        for op in editor.operations() if depth < _MAX_DEPTH else ():
            if op.traits.calls and op not in editor.feeds and self._has_control_flow(op):
                is_changed |= self._replace(op, depth)
        return is_changed

    def _has_control_flow(self, op: Operation) -> bool:
        return not LOW_LEVEL_CONTROL_FLOW.isdisjoint(self._library.ops_reached([op.message]))

    def _replace(self, op: Operation, depth: int) -> bool:
        attrs: dict[str, AttrValue] = {}
        for attr in op.op_def.attr:
            value = copied(op.attr[attr.name])
            for one in functions_of(value):
                one.CopyFrom(self._functionalized(one, depth))
            if value != op.attr[attr.name]:
                attrs[attr.name] = value
        if attrs:
            op.set_attrs(attrs)
        return bool(attrs)

    def _functionalized(self, function: NameAttrList, depth: int) -> NameAttrList:
        """The function to call in place of a function."""
        key = function.SerializeToString(deterministic=True)
        if key not in self._known:
            self._known[key] = function  # of a function that calls itself
            with suppress(OpError):  # the step that calls it raises the error
                self._known[key] = self._made(function, depth)
        return self._known[key]

    def _made(self, function: NameAttrList, depth: int) -> NameAttrList:
        body = instantiate_function(self._library, function)
        ends = [*body.arg_nodes, *body.ret_nodes, *body.control_ret_nodes]
        needed = set(prune_and_order((), ends, ()))
        others = [op for op in body.targets if op not in needed]
        inner = GraphEditor(body.graph, [*ends, *others], body.arg_nodes)
        self._edit(inner)
        is_changed = self.replace_in(inner, depth + 1)
        if not is_changed and not inner.changes:
            return function
        made = add_function_of(
            body.graph,
            self._library,
            body.name,
            body.inputs,
            body.outputs,
            targets=others,
            controls=body.control_ret_nodes,
            attrs=body.function_def.attr,
        )
        return NameAttrList(name=made.signature.name, attr=function.attr)
