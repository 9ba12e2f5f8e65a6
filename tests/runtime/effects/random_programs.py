"""RandomProgram: graphs with state, calls, conditionals and loops, whose effects leave a trace.

A program is made by choices, which hypothesis draws (`drawn`) or a seed makes (`seeded`). `run` gives what a
session shows of it: the fetched values, the trace of its effects, the state afterwards. Whatever
executes a program, and whichever passes run, all of it stays the same.

Effects belong to chains. What is of one chain happens in a fixed order, by control edges or data, also
through calls; between chains there is no order.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, INT32, Builder

import opkernel
from opkernel.errors import OpError
from opkernel.graph import Graph, Operation, Tensor, graph_to_function_def
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext, register_kernel
from opkernel.opdef import register_op, scalar_shape
from opkernel.proto import AttrValue, NameAttrList
from opkernel.types import PartialTensorShape

__all__ = ["Choices", "Outcome", "RandomProgram", "drawn", "seeded"]

T = TypeVar("T")
TRACE, COUNT = "EffectsTrace", "EffectsCount"
CHAINS = ("a", "b")
STEPS = 5
"""So many that a session makes a plan for the shapes of what is fed."""
_SHAPES = PartialTensorShape([]), PartialTensorShape(None)
MODULUS = 97.0
"""Values are whole numbers below it, so that no order of operations rounds."""

_OFTEN = {
    "pure": 2, "constant": 1, "foldable": 4, "identity": 1, "group": 1, "list": 1,
    "trace": 3, "count": 1, "variable": 3, "queue": 1, "stack": 1, "check": 1, "print": 1,
    "call": 2, "choose": 2, "loop": 1, "cond": 1, "while": 1,
}  # fmt: skip
"""How often each kind of operation is chosen."""
_IN_BRANCHES = ("pure", "constant", "foldable", "identity", "trace", "count", "variable", "check")
KINDS = [kind for kind, count in _OFTEN.items() for _ in range(count)]
IN_BRANCHES = [kind for kind in KINDS if kind in _IN_BRANCHES]

_lock = threading.Lock()
_traces: dict[str, list[tuple[str, float]]] = {}


class Trace(OpKernel):
    """Notes its name and its input, which it gives."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._name, self._chain = construction.get_attr("id"), construction.get_attr("chain")

    def compute(self, ctx: OpKernelContext) -> None:
        with _lock:
            _traces.setdefault(self._chain, []).append((self._name, float(ctx.input(0))))
        ctx.set_output(0, np.float32(ctx.input(0)))


class Count(OpKernel):
    """Gives how often it was computed before, which it alone knows."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._count = 0

    def compute(self, ctx: OpKernelContext) -> None:
        ctx.set_output(0, np.float32(self._count))
        self._count += 1


def _register() -> None:
    attrs = ["id: string", "chain: string"]
    register_op(TRACE, inputs=["x: float"], outputs=["y: float"], attrs=attrs,
                shape_fn=scalar_shape, is_stateful=True)  # fmt: skip
    register_op(COUNT, outputs=["n: float"], shape_fn=scalar_shape, is_stateful=True)
    register_kernel(TRACE, device="CPU")(Trace)
    register_kernel(COUNT, device="CPU")(Count)


_register()


class Choices:
    """What decides how a program is made.

    Args:
        integer: gives a number between two others, both included.
    """

    def __init__(self, integer: Callable[[int, int], int]) -> None:
        self.integer = integer

    def pick(self, things: Sequence[T]) -> T:
        return things[self.integer(0, len(things) - 1)]

    def holds(self) -> bool:
        return bool(self.integer(0, 1))


def drawn(data: st.DataObject, size: int = 12) -> RandomProgram:
    """A program that hypothesis makes, and makes smaller where it fails."""
    return RandomProgram(Choices(lambda low, high: data.draw(st.integers(low, high))), size)


def seeded(seed: int, size: int = 20) -> RandomProgram:
    """The program of a seed."""
    return RandomProgram(Choices(random.Random(seed).randint), size)


@dataclass
class Outcome:
    """What a session shows of a program.

    Attributes:
        values: what was fetched at each step; at last the error, if there was one.
        traces: what was noted in each chain by the steps that succeeded.
        state: the variables after all steps.
    """

    values: list[Any] = field(default_factory=list)
    traces: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    state: list[float] = field(default_factory=list)


class RandomProgram:
    """A graph, what is fed and fetched, and its state.

    Attributes:
        b: the builder of the graph.
        is_function: whether all of it stands in one function.
    """

    def __init__(self, choices: Choices, size: int) -> None:
        self.b, self._choices = Builder(), choices
        self._names = 0
        x = self.b.op("Placeholder", name="x", dtype=FLOAT, shape=choices.pick(_SHAPES))
        self._variables = [self._variable(chain, k) for chain in CHAINS for k in range(2)]
        self.is_function = choices.integer(0, 3) == 0
        if self.is_function:
            function = self._function(size, 1, 2)
            call: dict[str, Any] = {"f": function.name, "Tout": [FLOAT, FLOAT]}
            op = self.b.operation("StatefulPartitionedCall", [x], **call)
            self._fetches, self._targets = list(op.outputs), [op]
            return
        body = _Body(self, self.b, [x], 0)
        for _ in range(choices.integer(1, size)):
            body.grow()
        self._fetches = [choices.pick(body.values[-4:]) for _ in range(choices.integer(1, 2))]
        last = [op for op in body.last.values() if op is not None]
        self._targets = [op for op in last if choices.integer(0, 3) == 0]

    def run(self, optimize: bool | Collection[str], executor: str = "", **options: Any) -> Outcome:
        """What some steps of a new session show."""
        outcome = Outcome()
        with opkernel.Session(
            self.b.graph, optimize=optimize, executor_type=executor, **options
        ) as session:
            session.run([f"start_{name}" for name in self._variables])
            _traces.clear()
            for step in range(STEPS):
                try:
                    found = session.run([self._fetches, self._targets], {"x:0": float(step + 1)})
                except OpError as error:  # how far other chains came nothing says
                    outcome.values.append(type(error))
                    return outcome
                outcome.values.append([float(value) for value in found[0]])
                outcome.traces = {chain: list(notes) for chain, notes in _traces.items()}
            read = session.run([f"end_{name}:0" for name in self._variables])
            outcome.state = [float(value) for value in read]
        return outcome

    def new_name(self, what: str) -> str:
        self._names += 1
        return f"{what}_{self._names}"

    def _variable(self, chain: str, number: int) -> str:
        """A variable, of either kind; what sets it at the start and reads it at the end."""
        b, name = self.b, f"{chain}{number}"
        one = b.constant(1.0)
        if number == 0:
            handle = b.op("VarHandleOp", dtype=FLOAT, shape=[], shared_name=name)
            b.operation("AssignVariableOp", handle, one, name=f"start_{name}", dtype=FLOAT)
            b.operation("ReadVariableOp", handle, name=f"end_{name}", dtype=FLOAT)
        else:
            variable = b.op("VariableV2", name=f"ref_{name}", dtype=FLOAT, shape=[])
            b.operation("Assign", variable, one, name=f"start_{name}")
            b.operation("Identity", variable, name=f"end_{name}")
        return name

    def _function(self, size: int, depth: int, results: int, arguments: int = 1) -> _Function:
        """A function of floats that may have effects."""
        choices, name = self._choices, self.new_name("function")
        inner = Builder()
        inner.graph = Graph(function_library=self.b.graph.function_library)
        inputs = [inner.placeholder(f"x{k}") for k in range(arguments)]
        body = _Body(self, inner, inputs, depth)
        for _ in range(choices.integer(1, size)):
            body.grow()
        values = [choices.pick(body.values) for _ in range(results)]
        last = {chain: op for chain, op in body.last.items() if op is not None}
        controls = {f"after_{chain}": op for chain, op in last.items()}
        way = choices.pick(["control outputs", "control outputs", "data", "data", "neither"])
        if way != "control outputs":
            controls = {}
        if last and way == "data":
            after = list(last.values())
            values = [inner.operation("Identity", v, after=after).outputs[0] for v in values]
        outputs = [inner.op("Identity", value) for value in values]
        definition = graph_to_function_def(
            inner.graph, name, inputs, outputs, control_outputs=controls
        )
        if choices.integer(0, 4) == 0:
            definition.attr["_noinline"].b = True
        self.b.graph.function_library.add_function(definition)
        return _Function(NameAttrList(name=name), tuple(last), body.has_state)

    def make_function(self, depth: int, results: int, arguments: int = 1) -> _Function:
        """A function, of as much as there is room for at its depth."""
        return self._function(max(5 - 2 * depth, 1), depth, results, arguments)


@dataclass(frozen=True)
class _Function:
    """A function, the chains that its effects belong to, and whether it has any state."""

    name: NameAttrList
    chains: tuple[str, ...]
    has_state: bool


class _Body:
    """A graph, or the body of a function, branch or loop, that grows.

    Attributes:
        values: what was made so far.
        last: the last operation of each chain.
        has_state: whether any node has state.
    """

    def __init__(
        self, program: RandomProgram, b: Builder, values: Sequence[Tensor], depth: int
    ) -> None:
        self._program, self._choices, self._b, self._depth = program, program._choices, b, depth
        self.values = list(values)
        self.last: dict[str, Operation | None] = dict.fromkeys(CHAINS)
        self.has_state = False
        self._is_branch = False

    def grow(self) -> None:
        kinds = IN_BRANCHES if self._is_branch else KINDS
        kind = self._choices.pick(kinds)
        made = getattr(self, f"_{kind}")()
        if made is not None:
            self.values.append(made)

    def value(self) -> Tensor:
        return self._choices.pick(self.values[-4:])

    def _operation(self, chain: str | None, type_: str, /, *inputs: Any, **attrs: Any) -> Operation:
        """An operation that waits for the last one of a chain, by an edge or by a chain of them."""
        before = None if chain is None else self.last[chain]
        after = [] if before is None else [before]
        if after and self._choices.integer(0, 3) == 0:
            after = [self._b.operation("NoOp", after=after)]
        op = self._b.operation(type_, *inputs, after=after, **attrs)
        if chain is not None:
            self.last[chain] = op
            self.has_state = True
        return op

    def _chain(self) -> str:
        return self._choices.pick(CHAINS)

    def _bounded(self, value: Tensor) -> Tensor:
        return self._b.op("FloorMod", value, self._b.constant(MODULUS))

    # What has no effects.

    def _pure(self) -> Tensor:
        op = self._choices.pick(["AddV2", "Sub", "Mul", "Maximum"])
        return self._bounded(self._b.op(op, self.value(), self.value()))

    def _constant(self) -> Tensor:
        number = self._b.constant(float(self._choices.integer(0, 2)))
        op = self._choices.pick(["AddV2", "Mul", "Sub"])
        operands = [self.value(), number] if self._choices.holds() else [number, self.value()]
        if self._choices.integer(0, 3) == 0:
            operands = [number, number]
        return self._bounded(self._b.op(op, *operands))

    def _identity(self) -> Tensor:
        """A value that waits for the last effect of a chain."""
        last = self.last[self._chain()]
        after = [] if last is None else [last]
        kind = self._choices.pick(["Identity", "Neg", "Square", "Relu"])
        return self._bounded(self._b.operation(kind, self.value(), after=after).outputs[0])

    def _foldable(self) -> Tensor:
        """What is known without what it waits for; the order of a chain may lead by it."""
        b, choices, chain = self._b, self._choices, self._chain()
        last = self.last[chain]
        after = [] if last is None else [last]
        number = b.constant(float(choices.integer(0, 2)))
        waits = b.operation("Identity", self.value(), after=after).outputs[0]
        known = {
            "sum": lambda: b.operation("AddV2", number, number, after=after).outputs[0],
            "identity": lambda: b.operation("Identity", number, after=after).outputs[0],
            "constant": lambda: b.operation(
                "Const", after=after, dtype=FLOAT, value=np.float32(choices.integer(0, 2))
            ).outputs[0],
            "item": lambda: self._item(number, after),
            "size": lambda: b.op("Cast", b.op("Size", waits), SrcT=INT32, DstT=FLOAT),
            "zeros": lambda: b.op("ZerosLike", waits),
            "product": lambda: b.op("Mul", waits, b.constant(0.0)),
            "nothing": lambda: b.op("Sub", waits, waits),
            "same": lambda: b.op("Mul", waits, b.constant(1.0)),
        }
        made = known[choices.pick(sorted(known))]()
        if last is not None and choices.holds():
            self.last[chain] = made.op  # the next effect waits for it alone
        return made

    def _item(self, value: Tensor, after: Sequence[Operation]) -> Tensor:
        """An item of a list that waits."""
        b, shape, first = self._b, self._b.constant(np.zeros(0), "i4"), self._b.constant(0)
        items = b.op("TensorListReserve", shape, b.constant(1), element_dtype=FLOAT)
        items = b.operation(
            "TensorListSetItem", items, first, value, after=after, element_dtype=FLOAT
        ).outputs[0]
        return b.op("TensorListGetItem", items, first, shape, element_dtype=FLOAT)

    def _group(self) -> Tensor:
        after = [op for op in self.last.values() if op is not None]
        group = self._b.operation("NoOp", after=[self.value().op, *after])
        return self._b.operation("Identity", self.value(), after=[group]).outputs[0]

    def _list(self) -> Tensor:
        b = self._b
        empty = b.op("EmptyTensorList", b.constant(np.zeros(0), "i4"), b.constant(4), element_dtype=FLOAT,
                     shape_type=INT32)  # fmt: skip
        pushed = b.op("TensorListPushBack", empty, self.value(), element_dtype=FLOAT)
        pushed = b.op("TensorListPushBack", pushed, self.value(), element_dtype=FLOAT)
        shape = b.constant(np.zeros(0), "i4")
        return b.operation("TensorListPopBack", pushed, shape, element_dtype=FLOAT).outputs[1]

    # Effects.

    def _trace(self) -> Tensor:
        chain, name = self._chain(), self._program.new_name("trace")
        return self._operation(chain, TRACE, self.value(), id=name, chain=chain).outputs[0]

    def _count(self) -> Tensor:
        return self._operation(self._chain(), COUNT).outputs[0]

    def _variable(self) -> Tensor | None:
        chain = self._chain()
        if self._depth == 0 and not self._is_branch and self._choices.integer(0, 2) == 0:
            return self._reference(chain)
        handle = self._b.op("VarHandleOp", dtype=FLOAT, shape=[], shared_name=f"{chain}0")
        way = self._choices.pick(["AssignVariableOp", "AssignAddVariableOp", "read", "read"])
        if way == "read":
            read = self._operation(chain, "ReadVariableOp", handle, dtype=FLOAT)
            return self._bounded(read.outputs[0])
        self._operation(chain, way, handle, self.value(), dtype=FLOAT)
        return None

    def _reference(self, chain: str) -> Tensor:
        variable = self._b.graph.get_tensor_by_name(f"ref_{chain}1:0")
        way = self._choices.pick(["Assign", "AssignAdd", "AssignSub", "Identity"])
        inputs = [variable] if way == "Identity" else [variable, self.value()]
        op = self._operation(chain, way, *inputs)
        read = op if way == "Identity" else self._operation(chain, "Identity", op.outputs[0])
        return self._bounded(read.outputs[0])

    def _queue(self) -> Tensor:
        """Put into a queue and taken out, which may wait."""
        chain = self._chain()
        if self._choices.integer(0, 3):
            return self._trace()
        queue = self._b.op("FIFOQueueV2", component_types=[FLOAT], shared_name=f"queue_{chain}")
        self._operation(chain, "QueueEnqueueV2", queue, [self.value()])
        taken = self._operation(chain, "QueueDequeueV2", queue, component_types=[FLOAT])
        return taken.outputs[0]

    def _stack(self) -> Tensor:
        chain, b = self._chain(), self._b
        stack = b.op("StackV2", b.constant(-1), elem_type=FLOAT)
        self._operation(chain, "StackPushV2", stack, self.value())
        popped = self._operation(chain, "StackPopV2", stack, elem_type=FLOAT)
        return popped.outputs[0]

    def _check(self) -> None:
        """An Assert, which seldom fails."""
        limit = self._choices.pick([MODULUS, MODULUS, 90.0])
        holds = self._b.op("Less", self.value(), self._b.constant(limit))
        self._operation(self._chain(), "Assert", holds, [self.value()])

    def _print(self) -> None:
        text = self._b.op("AsString", self.value())
        self._operation(self._chain(), "PrintV2", text, output_stream="log(info)")

    # Calls.

    def _call(self) -> Tensor | None:
        if self._depth > 2:
            return self._trace()
        function = self._program.make_function(self._depth + 1, 1)
        kinds = ["StatefulPartitionedCall", "by name"]
        kind = self._choices.pick(kinds if function.has_state else [*kinds, "PartitionedCall"])
        if kind == "by name":
            return self._calling([function], function.name.name, self.value())
        return self._calling([function], kind, [self.value()], f=function.name, Tout=[FLOAT])

    def _choose(self) -> Tensor | None:
        if self._depth > 2:
            return self._trace()
        program, choices = self._program, self._choices
        functions = [program.make_function(self._depth + 1, 1) for _ in range(2)]
        prefix = "" if any(one.has_state for one in functions) else choices.pick(["", "Stateless"])
        attrs: dict[str, Any] = {"Tout": [FLOAT], **self._lowering()}
        if choices.holds():
            names: dict[str, Any] = {
                "then_branch": functions[0].name,
                "else_branch": functions[1].name,
            }
            return self._calling(
                functions, f"{prefix}If", self._predicate(), [self.value()], **names, **attrs
            )
        index = self._b.op("Cast", self.value(), SrcT=FLOAT, DstT=INT32)
        if choices.holds():
            index = self._b.constant(choices.integer(-1, 2))
        branches = [one.name for one in functions]
        return self._calling(
            functions, f"{prefix}Case", index, [self.value()], branches=branches, **attrs
        )

    def _loop(self) -> Tensor | None:
        """A While of a few turns; its condition may have effects, too."""
        if self._depth > 1:
            return self._trace()
        program = self._program
        body = program.make_function(self._depth + 1, 1)
        turns = float(self._choices.integer(0, 3))
        types = [FLOAT, FLOAT]
        effect = (program.new_name("trace"), self._chain()) if self._choices.holds() else None
        go_on = self._define("go_on", types, lambda g, k, x: [self._condition(g, k, turns, effect)])

        def turn(g: Builder, k: Tensor, x: Tensor) -> list[Tensor]:
            called = g.op("StatefulPartitionedCall", [x], f=body.name, Tout=[FLOAT])
            return [g.op("AddV2", k, g.constant(1.0)), called]

        chains = (*body.chains, effect[1]) if effect else body.chains
        of_both = _Function(body.name, chains, True)
        start = [self._b.constant(0.0), self.value()]
        return self._calling(
            [of_both], "While", start, cond=go_on, body=self._define("turn", types, turn), T=types,
            **self._lowering(), output=1,
        )  # fmt: skip

    def _condition(
        self, g: Builder, k: Tensor, turns: float, effect: tuple[str, str] | None
    ) -> Tensor:
        if effect is not None:
            k = g.op(TRACE, k, id=effect[0], chain=effect[1])
        return g.op("Less", k, g.constant(turns))

    def _define(self, name: str, types: Sequence[Any], body: Any) -> NameAttrList:
        inner, library = Builder(), self._b.graph.function_library
        inner.graph = Graph(function_library=library)
        arguments = [inner.placeholder(f"a{k}", dtype) for k, dtype in enumerate(types)]
        name = self._program.new_name(name)
        library.add_function(
            graph_to_function_def(inner.graph, name, arguments, body(inner, *arguments))
        )
        return NameAttrList(name=name)

    def _lowering(self) -> dict[str, AttrValue]:
        lowers = self._choices.holds()
        return {"_lower_using_switch_merge": AttrValue(b=True)} if lowers else {}

    def _predicate(self) -> Tensor:
        if self._choices.integer(0, 2) == 0:
            after = [op for op in self.last.values() if op is not None and self._choices.holds()]
            known = np.bool_(self._choices.holds())
            return self._b.operation("Const", after=after, dtype=BOOL, value=known).outputs[0]
        limit = float(self._choices.integer(0, 30))
        return self._b.op("Less", self.value(), self._b.constant(limit))

    def _calling(
        self, functions: Sequence[_Function], kind: str, *inputs: Any, output: int = 0, **attrs: Any
    ) -> Tensor:
        """A call that waits for the last effects of the chains of its functions."""
        chains = sorted({chain for one in functions for chain in one.chains})
        self.has_state |= any(one.has_state for one in functions)
        after = [op for chain in chains if (op := self.last[chain]) is not None]
        op = self._b.operation(kind, *inputs, after=after, **attrs)
        self.last.update(dict.fromkeys(chains, op))
        return op.outputs[output]

    # Control flow of TensorFlow 1.

    def _cond(self) -> Tensor:
        touched: set[str] = set()
        merge = self._b.cond(
            self._predicate(),
            lambda x: self._branch(x, touched),
            lambda x: self._branch(x, touched),
            [self._after_all()],
        )[0]
        return self._end(merge, touched)

    def _while(self) -> Tensor:
        turns, touched = float(self._choices.integer(0, 3)), set[str]()

        def body(k: Tensor, x: Tensor) -> list[Tensor]:
            return [self._b.op("AddV2", k, self._b.constant(1.0)), *self._branch(x, touched)]

        start = [self._b.constant(0.0), self._after_all()]
        leaves = self._b.while_loop(
            lambda k, x: self._b.op("Less", k, self._b.constant(turns)), body, start
        )[1]
        return self._end(leaves, touched)

    def _after_all(self) -> Tensor:
        """A value that waits for all chains."""
        after = [op for op in self.last.values() if op is not None]
        return self._b.operation("Identity", self.value(), after=after).outputs[0]

    def _branch(self, x: Tensor, touched: set[str]) -> list[Tensor]:
        """A branch, or a turn of a loop; notes the chains of its effects."""
        inner = _Body(self._program, self._b, [x], self._depth)
        inner._is_branch = True
        pivot = self._b.operation("Identity", x)
        inner.last = dict.fromkeys(CHAINS, pivot)
        for _ in range(self._choices.integer(1, 3)):
            inner.grow()
        self.has_state |= inner.has_state
        ends = {chain: op for chain, op in inner.last.items() if op and op is not pivot}
        touched.update(ends)
        after = list(ends.values())
        return [self._b.operation("Identity", inner.value(), after=after).outputs[0]]

    def _end(self, value: Tensor, touched: set[str]) -> Tensor:
        self.last.update(dict.fromkeys(touched, value.op))
        return value
