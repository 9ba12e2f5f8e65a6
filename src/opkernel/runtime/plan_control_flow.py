"""ControlFlowWriter: turns conditionals and loops into the statements of a plan.

Source: TensorFlow core/kernels/control_flow_ops.cc.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.graph import Operation, Tensor
from opkernel.kernel import MATRIX_PRODUCTS, one_blas_thread
from opkernel.runtime.elementwise import BIG
from opkernel.runtime.kernel_watcher import KernelWatcher
from opkernel.runtime.plan_elementwise import GroupedNodes, NodesOfGroups
from opkernel.runtime.plan_source import Part, write_parts
from opkernel.runtime.plan_text import tuple_text
from opkernel.runtime.plan_tree import Block, Branch, Branches, Path, While
from opkernel.runtime.plan_writer import DEAD, PlanWriter, check_alive
from opkernel.runtime.raising import (
    ALWAYS,
    Choose,
    Conditional,
    Context,
    FirstAlive,
    Item,
    Key,
    Loop,
    Predicate,
    key_of,
)

__all__ = ["ControlFlowWriter", "first_alive", "scalar_of", "switch_index"]


def scalar_of(tensor: Any) -> Any:
    """What a Switch goes by.

    Raises:
        InvalidArgumentError: it is not a scalar.
    """
    if tensor.ndim:
        raise InvalidArgumentError(
            f"The second input must be a scalar, but it has shape {list(tensor.shape)}"
        )
    return tensor[()]


def switch_index(index: Any, outputs: int) -> int:
    """The output that a `_SwitchN` gives its data to: the last stands for all out of range."""
    chosen = int(scalar_of(index))
    return chosen if 0 <= chosen < outputs else outputs - 1


def first_alive(*tensors: Any) -> tuple[Any, Any]:
    """The first tensor that is alive, and its index."""
    for index, tensor in enumerate(tensors):
        if tensor is not DEAD:
            return tensor, _index(index)
    return DEAD, DEAD


@cache
def _index(index: int) -> np.int32:
    return np.int32(index)


def _each(write: Callable[[Operation], None], ops: Sequence[Operation]) -> None:
    for op in ops:
        write(op)


class ControlFlowWriter(PlanWriter):
    """Writes what a graph was arranged as.

    Args:
        aliases: The tensors that are other names for tensors.
        predicates: What decides between branches; their places are their numbers.
        read: The tensors that anything reads.
        groups: Finds the element-wise nodes that are computed together.
        watcher: Watches the nodes that call functions, where given.
    """

    def __init__(
        self,
        aliases: Mapping[Key, Tensor],
        predicates: Sequence[Predicate],
        read: Collection[Key],
        groups: NodesOfGroups,
        watcher: KernelWatcher | None = None,
    ) -> None:
        super().__init__(aliases, watcher)
        self._predicates = predicates
        self._read = read
        self._groups = groups
        self._branch_numbers = 0  # of branches that no predicate decides: below 0

    def items(self, items: Sequence[Item], write: Callable[[Operation], None]) -> None:
        """The statements of items; `write` gives those of an operation."""
        for item in self._groups.find(items):
            if isinstance(item, Operation):
                write(item)
            elif isinstance(item, GroupedNodes):
                self._group(item, write)
            elif isinstance(item, Choose):
                self._choose(item)
            elif isinstance(item, FirstAlive):
                self._first_alive(item)
            elif isinstance(item, Conditional):
                self._conditional(item, write)
            else:
                self._loop(item, write)

    def finish(
        self,
        parameters: Sequence[str],
        fetches: Sequence[Tensor],
        fetched_in: Sequence[Context | None],
    ) -> list[Part]:
        """The functions of the plan; the last is the one to call.

        Args:
            parameters: The names of the fed tensors.
            fetches: What is returned.
            fetched_in: Where each fetch is alive.
        """
        for tensor, context in zip(fetches, fetched_in, strict=True):
            if context != ALWAYS:
                value, reads = self._value_in(
                    tensor, self._name_at(key_of(tensor)) or "DEAD", context
                )
                check = self.bind(check_alive, "check_alive")
                self._state(tensor.op, f"{check}({value}, {tensor.name!r})", reads, [])
                self.node_inputs[-1] = []
        dead = self.bind(DEAD, "DEAD")
        results = [self._name_at(key_of(tensor)) or dead for tensor in fetches]
        return write_parts(self._block, parameters, results, self._bound_on)

    def _inside(self, write: Callable[[], None], choices: Context = ALWAYS) -> tuple[Block, Path]:
        """The block of what is written on further branches, and all that it stands on."""
        outside = self._block, self._path
        block: Block = []
        self._block, self._path = block, self._path.union(choices)
        path = self._path
        write()
        self._block, self._path = outside
        return block, path

    def _group(self, item: GroupedNodes, write: Callable[[Operation], None]) -> None:
        """Element-wise nodes: together where they are big, else one by one."""
        inputs = [self._value_at(key) for key in item.inputs]
        sizes = [f"{self._value_at(key)}.size" for key in item.sized]
        targets = [self._set(op, 0) for op in item.results]
        call = f"{self.bind(item.function, 'tiled')}({', '.join(inputs)})"
        nothing = "None" if len(targets) == 1 else tuple_text(["None"] * len(targets))
        text = f"{', '.join(targets)} = {call} if {' + '.join(sizes)} >= {BIG} else {nothing}"
        statement = self._state(item.ops[-1], text, inputs, targets)
        statement.comment = f"{len(item.ops)} nodes"
        self._announced.update(zip([(op.name, 0) for op in item.results], targets, strict=True))
        self._branch_numbers -= 1
        one_by_one = partial(_each, write, item.ops)
        block, path = self._inside(one_by_one, ((self._branch_numbers, 0),))
        branch = Branch(f"{targets[0]} is None", path, block)
        self._block.append(Branches([targets[0]], [branch], self._node(item.ops[-1])))

    def _choose(self, item: Choose) -> None:
        """On a branch, the value of a Merge."""
        op, tensor = item.op, item.op.inputs[item.index]
        values = [self._input(op, item.index), self.bind(_index(item.index), f"i{item.index}")]
        names = {
            name: value
            for output, value in enumerate(values)
            if (name := self._merged(op, output)) is not None
        }
        if names:
            text = f"{', '.join(names)} = {', '.join(names.values())}"
            self._state(op, text, [self.value(tensor)], list(names))

    def _merged(self, op: Operation, output: int) -> str | None:
        """The local for an output of a Merge, on all its branches; None where nobody reads it."""
        key = op.name, output
        if key in self._fed or key not in self._read:
            return None
        if key not in self._values:
            self._values[key] = self._local(op.name if output == 0 else f"{op.name}_index")
        name = self._values[key]
        self._bound_on[name] &= self._path
        return name

    def _first_alive(self, item: FirstAlive) -> None:
        """A Merge whose inputs stand in any contexts."""
        op = item.op
        arguments: list[str] = []
        reads: list[str] = []
        for index, (tensor, context) in enumerate(zip(op.inputs, item.contexts, strict=True)):
            known = None if context is None else self._input(op, index)
            argument, read = self._value_in(tensor, known or "DEAD", context)
            arguments.append(argument)
            reads += read
        targets = [self._output(op, output) for output in range(len(op.outputs))]
        text = f"({', '.join(targets)}) = {self.bind(first_alive, 'first_alive')}({', '.join(arguments)})"
        self._state(op, text, reads, targets)

    def _value_in(
        self, tensor: Tensor, value: str, context: Context | None
    ) -> tuple[str, list[str]]:
        """An expression of a tensor that is DEAD outside of a context; what it reads."""
        dead = self.bind(DEAD, "DEAD")
        if context is None:
            return dead, []
        choices = [choice for choice in context if choice not in self._path]
        if not choices:
            return value, [self.value(tensor)]
        tests = " and ".join(map(self._test, choices))
        read = [self.value(self._predicates[number].tensor) for number, _ in choices]
        return f"{value} if {tests} else {dead}", [self.value(tensor), *read]

    def _test(self, choice: tuple[int, int]) -> str:
        """The expression that tests for a branch."""
        predicate, branch = self._predicates[choice[0]], choice[1]
        name = self.value(predicate.tensor)
        if predicate.kind == "alive":
            return f"{name} is not {self.bind(DEAD, 'DEAD')}"
        if predicate.kind == "bool":
            test = f"{self.bind(scalar_of, 'scalar_of')}({name})"
            return test if branch else f"not {test}"
        index = self.bind(switch_index, "switch_index")
        return f"{index}({name}, {predicate.branches}) == {branch}"

    def _decider(self, predicate: Predicate) -> tuple[str, Callable[[int], str]]:
        """The name that tells what a predicate says, and the tests of it for branches."""
        name = self.value(predicate.tensor)
        if predicate.kind == "alive":
            return name, lambda branch: self._test((predicate.number, branch))
        if predicate.kind == "bool":
            self._check_scalar(predicate.op, name)
            return name, lambda branch: name if branch else f"not {name}"
        index = self._local(f"{predicate.op.name}_branch")
        choose = self.bind(switch_index, "switch_index")
        text = f"{index} = {choose}({name}, {predicate.branches})"
        self._state(predicate.op, text, [name], [index])
        return index, lambda branch: f"{index} == {branch}"

    def _conditional(self, item: Conditional, write: Callable[[Operation], None]) -> None:
        """An `if` statement."""
        predicate = item.predicate
        name, test = self._decider(predicate)
        node = self._node(predicate.op)
        branches = []
        for number in sorted(item.branches, reverse=predicate.kind != "index"):
            inside = partial(self.items, item.branches[number], write)
            block, path = self._inside(inside, ((predicate.number, number),))
            branches.append(Branch(test(number), path, block))
        if len(branches) == predicate.branches:
            branches[-1].test = ""
        self._block.append(Branches(self._locals([name]), branches, node))

    def _check_scalar(self, op: Operation, name: str) -> None:
        self._state(op, f"{name}.ndim and {self.bind(scalar_of, 'scalar_of')}({name})", [name], [])

    def _loop(self, item: Loop, write: Callable[[Operation], None]) -> None:
        """A `while` statement, with what sets its variables before and what is run after it."""
        for variable in item.variables:
            start = self.value(variable.start)
            name = self._values[variable.head.name, 0] = self._local(variable.head.name)
            self._state(variable.start.op, f"{name} = {self._as_number(start)}", [start], [name])
            if start in self._numbers:
                self._numbers.add(name)
        before = len(self.nodes)
        condition, path = self._inside(partial(self._loop_condition, item, write))
        test = self.value(item.test.outputs[0])
        body, _ = self._inside(partial(self._loop_body, item, write))
        node = self._node(item.test)
        loop = While(test, self._locals([test]), condition, body, path, node)
        if any(op.type in MATRIX_PRODUCTS for op in self.nodes[before:]):
            loop.within = self.bind(one_blas_thread, "one_blas_thread")
        self._block.append(loop)
        self.uses_step = True
        self.items(item.after, write)

    def _loop_condition(self, item: Loop, write: Callable[[Operation], None]) -> None:
        self.items(item.condition, write)
        self._check_scalar(item.test, self.value(item.test.outputs[0]))

    def _loop_body(self, item: Loop, write: Callable[[Operation], None]) -> None:
        """The body of a loop; at its end the variables get the values for the next turn."""
        self.items(item.body, write)
        if item.variables:
            names = [self.value(variable.head.outputs[0]) for variable in item.variables]
            values = [self.value(variable.next) for variable in item.variables]
            text = f"{', '.join(names)} = {', '.join(values)}"
            self._state(item.variables[0].next.op, text, values, names).is_turn = True
