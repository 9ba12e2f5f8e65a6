"""ControlFlowBuilder: turns conditionals and loops into the statements of a plan.

Source: TensorFlow core/kernels/control_flow_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from opkernel.graph import Operation, Tensor
from opkernel.kernel import one_blas_thread
from opkernel.runtime.plan import services, tree
from opkernel.runtime.plan.builder import PlanBuilder
from opkernel.runtime.plan.keys import Key, RequiredOutputs, key_of
from opkernel.runtime.plan.tree import Block, Condition, Expression, Name, Path
from opkernel.runtime.plan.v1_control_flow import (
    ALWAYS,
    BranchPredicate,
    Choose,
    Conditional,
    Context,
    FirstAlive,
    Item,
    Loop,
)

if TYPE_CHECKING:
    from opkernel.runtime.plan.grouping import GroupedNodes, GroupsOfPlan
    from opkernel.runtime.watch.kernel_watcher import KernelWatcher


class ControlFlowBuilder(PlanBuilder):
    """Builds the program of an arranged graph.

    Args:
        aliases: The tensors that are other names for tensors.
        predicates: The predicates that decide between branches; their places are their numbers.
        required: The outputs that somebody takes.
        groups: Finds the element-wise nodes that are computed together, if any may be.
        watcher: Watches the nodes that call functions, where given.
    """

    def __init__(
        self,
        aliases: Mapping[Key, Tensor],
        predicates: Sequence[BranchPredicate],
        required: RequiredOutputs,
        groups: GroupsOfPlan | None,
        watcher: KernelWatcher | None = None,
    ) -> None:
        super().__init__(aliases, required, watcher)
        self._predicates = predicates
        self._required = required
        self._groups = groups
        self._branch_numbers = 0  # of branches that no predicate decides: below 0

    def items(self, items: Sequence[Item], build: Callable[[Operation], None]) -> None:
        """The statements of items; `build` adds those of an operation."""
        for item in items if self._groups is None else self._groups.find(items):
            if isinstance(item, Operation):
                build(item)
            elif isinstance(item, Choose):
                self._choose(item)
            elif isinstance(item, FirstAlive):
                self._first_alive(item)
            elif isinstance(item, Conditional):
                self._conditional(item, build)
            elif isinstance(item, Loop):
                self._loop(item, build)
            else:
                self._group(item, build)

    def check_alive(self, fetches: Sequence[Tensor], fetched_in: Sequence[Context | None]) -> None:
        """Add the statements that refuse dead fetches.

        Args:
            fetches: The tensors that are returned.
            fetched_in: Where each of it is alive.
        """
        for tensor, context in zip(fetches, fetched_in, strict=True):
            if context != ALWAYS:
                known = self._name_at(key_of(tensor)) or "DEAD"
                value, reads = self._value_in(tensor, known, context)
                check = self.service(services.check_alive)
                arguments = value, tree.Plain(tensor.name)
                self._state(tree.Call(tensor.op, (), (), check, arguments, ()), reads)

    def _result(self, key: Key) -> Name:
        return self._name_at(key) or self.service(services.DEAD, "DEAD")

    def _inside(self, build: Callable[[], object], choices: Context = ALWAYS) -> tuple[Block, Path]:
        """The block for statements on further branches, and all branches that it is on."""
        outside = self._block, self._path
        block: Block = []
        self._block, self._path = block, self._path.union(choices)
        path = self._path
        build()
        self._block, self._path = outside
        return block, path

    def _group(self, item: GroupedNodes, build: Callable[[Operation], None]) -> None:
        """Element-wise nodes: together where they are big, else one by one."""
        from opkernel.runtime.plan.tiled import BIG  # for large arrays

        inputs = tuple([self._value_at(key) for key in item.inputs])
        sized = [self._value_at(key) for key in item.sized]
        targets = tuple([self._set(op, 0) for op in item.results])
        last, tiled = item.ops[-1], self.service(item.function, "tiled")
        results = targets[0] if len(targets) == 1 else targets
        call = tree.TiledCall(last, self.inputs(last), targets, tiled, inputs, results)
        call.sized, call.least, call.width = sized, BIG, len(item.ops)
        self._state(call, inputs)
        self._announced.update(zip([(op.name, 0) for op in item.results], targets, strict=True))
        self._branch_numbers -= 1
        choices = ((self._branch_numbers, 0),)
        block, path = self._inside(lambda: [*map(build, item.ops)], choices)
        branch = tree.Branch(Condition(targets[0], "is", tree.Plain(None)), path, block)
        self._add(tree.Branches(last, self.inputs(last), [branch]), targets[:1])

    def _choose(self, item: Choose) -> None:
        """On a branch, the value of a Merge."""
        op, tensor = item.op, item.op.inputs[item.index]
        index = self.bind(services.index_of_merge(item.index), f"i{item.index}")
        values = {
            name: value
            for output, value in enumerate([self._input(op, item.index), index])
            if (name := self._merged(op, output)) is not None
        }
        if values:
            self._assign(op, values, [self.value(tensor)])

    def _assign(
        self,
        op: Operation,
        values: Mapping[Name, Expression],
        reads: Sequence[Name],
        *,
        is_turn: bool = False,
    ) -> None:
        """An assignment of values by names, and the names that they read."""
        self._state(
            tree.Assign(op, self.inputs(op), (*values,), (*values.values(),), is_turn), reads
        )

    def _merged(self, op: Operation, output: int) -> Name | None:
        """The local for an output of a Merge, on all its branches; None where nobody reads it."""
        key = op.name, output
        if key in self._fed or key not in self._required.read:
            return None
        if key not in self._values:
            self._values[key] = self._local(op.name if output == 0 else f"{op.name}_index")
        name = self._values[key]
        self._bound_on[name] &= self._path
        return name

    def _first_alive(self, item: FirstAlive) -> None:
        """A Merge whose inputs stand in any contexts."""
        op = item.op
        arguments: list[Expression] = []
        reads: list[Name] = []
        for index, (tensor, context) in enumerate(zip(op.inputs, item.contexts, strict=True)):
            known = "DEAD" if context is None else self._input(op, index)
            argument, read = self._value_in(tensor, known, context)
            arguments.append(argument)
            reads += read
        targets, inputs = self._outputs(op), self.inputs(op)
        choose = self.service(services.first_alive)
        self._state(tree.Call(op, inputs, targets, choose, arguments, targets), reads)

    def _value_in(
        self, tensor: Tensor, value: Expression, context: Context | None
    ) -> tuple[Expression, list[Name]]:
        """An expression of a tensor that is DEAD outside of a context, and the names that it reads."""
        dead = self.service(services.DEAD, "DEAD")
        if context is None:
            return dead, []
        choices = [choice for choice in context if choice not in self._path]
        if not choices:
            return value, [self.value(tensor)]
        read = [self.value(self._predicates[number].tensor) for number, _ in choices]
        return tree.Select([*map(self._test, choices)], value, dead), [self.value(tensor), *read]

    def _test(self, choice: tuple[int, int]) -> Condition:
        """The condition of a branch."""
        predicate, branch = self._predicates[choice[0]], choice[1]
        name = self.value(predicate.tensor)
        if predicate.kind == "alive":
            return Condition(name, "is not", self.service(services.DEAD, "DEAD"))
        if predicate.kind == "bool":
            return Condition(name, "" if branch else "not", check=self.service(services.scalar_of))
        return Condition(self._switch_index(predicate), "==", tree.Plain(branch))

    def _switch_index(self, predicate: BranchPredicate) -> tree.Apply:
        name, outputs = self.value(predicate.tensor), tree.Plain(predicate.branches)
        return tree.Apply(self.service(services.switch_index), (name, outputs))

    def _decider(self, predicate: BranchPredicate) -> tuple[Name, Callable[[int], Condition]]:
        """The name that tells what a predicate says, and the tests of it for branches."""
        name = self.value(predicate.tensor)
        if predicate.kind == "alive":
            return name, lambda branch: self._test((predicate.number, branch))
        if predicate.kind == "bool":
            self._check_scalar(predicate.op, name)
            return name, lambda branch: Condition(name, "" if branch else "not")
        index = self._local(f"{predicate.op.name}_branch")
        self._assign(predicate.op, {index: self._switch_index(predicate)}, [name])
        return index, lambda branch: Condition(index, "==", tree.Plain(branch))

    def _conditional(self, item: Conditional, build: Callable[[Operation], None]) -> None:
        """An `if` statement."""
        predicate = item.predicate
        name, test = self._decider(predicate)
        branches = []
        for number in sorted(item.branches, reverse=predicate.kind != "index"):
            inside = partial(self.items, item.branches[number], build)
            block, path = self._inside(inside, ((predicate.number, number),))
            branches.append(tree.Branch(test(number), path, block))
        if len(branches) == predicate.branches:
            branches[-1].test = None
        self._add(tree.Branches(predicate.op, self.inputs(predicate.op), branches), [name])

    def _check_scalar(self, op: Operation, name: Name) -> None:
        check = self.service(services.scalar_of)
        self._state(tree.CheckScalar(op, self.inputs(op), (), name, check), [name])

    def _loop(self, item: Loop, build: Callable[[Operation], None]) -> None:
        """A `while` statement, with the statements that set its variables before it and those that run after it."""
        for variable in item.variables:
            start = self.value(variable.start)
            name = self._values[variable.head.name, 0] = self._local(variable.head.name)
            self._assign(variable.start.op, {name: self._as_number(start)}, [start])
            if start in self._numbers:
                self._numbers.add(name)
        condition, path = self._inside(partial(self._loop_condition, item, build))
        test = self.value(item.test.outputs[0])
        body, _ = self._inside(partial(self._loop_body, item, build))
        loop = tree.While(item.test, self.inputs(item.test), test, condition, body, path)
        inside = [*tree.statements([loop])]
        suspends = any(isinstance(one, tree.AwaitedCall) for one in inside)
        if not suspends and any(one.op and one.op.traits.cost == "product" for one in inside):
            loop.within = self.service(one_blas_thread, "one_blas_thread")
        self._add(loop, [test])
        self._uses_step = True
        self.items(item.after, build)

    def _loop_condition(self, item: Loop, build: Callable[[Operation], None]) -> None:
        self.items(item.condition, build)
        self._check_scalar(item.test, self.value(item.test.outputs[0]))

    def _loop_body(self, item: Loop, build: Callable[[Operation], None]) -> None:
        """The body of a loop; at its end the variables get the values for the next turn."""
        self.items(item.body, build)
        if item.variables:
            names = [self.value(variable.head.outputs[0]) for variable in item.variables]
            values = [self.value(variable.next) for variable in item.variables]
            op = item.variables[0].next.op
            self._assign(op, dict(zip(names, values, strict=True)), values, is_turn=True)
