"""PlanWriter: turns nodes into the statements of a plan.

State: `_values` maps each tensor to the name that holds it, which is a local of the plan or, for
constants, a global; `_aliases` are the tensors that are other names for tensors; `globals` are the
objects that the text refers to, `_bound` their names; `nodes` are those that lines refer to by number,
`node_inputs` the names that hold their inputs; `_announced` are the locals of outputs whose
nodes are still to be written; `_block` takes the statements, `_path` are the
branches that it stands on, `_bound_on` those that each local is set on. `_numbers` are the names of
what is believed to have rank 0, which only speed depends on.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.graph import Operation, Tensor
from opkernel.kernel import FunctionKernel, OpKernel
from opkernel.kernel.context import function_of_step
from opkernel.runtime.kernel_watcher import Computer, KernelWatcher
from opkernel.runtime.plan_forwarding import ArraysOfPlan
from opkernel.runtime.plan_operators import BY_KEYWORD, as_number, is_ufunc, operator_of, ufunc_of
from opkernel.runtime.plan_text import Names
from opkernel.runtime.plan_tree import Block, Path, Statement
from opkernel.runtime.raising import Key, key_of, keys_of_inputs
from opkernel.runtime.references import function_of_references, referred_value

__all__ = ["DEAD", "PlanWriter", "check_alive"]


class _Dead:
    """The value of a tensor on the branch of a Switch that was not taken."""

    def __repr__(self) -> str:
        return "DEAD"


DEAD = _Dead()


def check_alive(tensor: Any, name: str) -> None:
    """Raise InvalidArgumentError where a tensor that must have a value is dead."""
    if tensor is DEAD:
        raise InvalidArgumentError(
            f"The tensor returned for {name} was not valid: it is on a branch that was not taken"
        )


def check_type(tensor: Any, wanted: np.dtype[Any], index: int) -> None:
    """Raise InternalError where a function kernel gave an output of another type than declared."""
    if tensor.dtype != wanted:
        raise InternalError(f"output {index} must be {wanted}, the kernel gave {tensor.dtype}")


class PlanWriter:
    """Collects the statements of one plan and the objects that they refer to.

    Args:
        aliases: The tensors that are other names for tensors.
        watcher: Watches the nodes that call functions, where given.
    """

    def __init__(self, aliases: Mapping[Key, Tensor], watcher: KernelWatcher | None = None) -> None:
        self.nodes: list[Operation] = []
        self.node_inputs: list[Sequence[str]] = []
        self.uses_step = False
        self.globals: dict[str, Any] = {}
        self._aliases = aliases
        self._watcher = watcher
        self._names = Names(["step", "plan", "__plan__"])
        self._bound: dict[int, str] = {}
        self._values: dict[Key, str] = {}
        self._fed: set[Key] = set()
        self._numbers: set[str] = set()
        self._number_of: dict[str, str] = {}
        self._arrays = ArraysOfPlan()
        self._announced: dict[Key, str] = {}
        self._block: Block = []
        self._path: Path = frozenset()
        self._bound_on: dict[str, Path] = {}

    def parameter(self, tensor: Tensor) -> str:
        """A parameter of the plan, which holds a fed tensor."""
        self._fed.add(key_of(tensor))
        return self._set(tensor.op, tensor.value_index)

    def constant(self, op: Operation, value: Any) -> None:
        """A node that is a constant."""
        value = as_number(value)
        name = self._values.setdefault((op.name, 0), self.bind(value, op.name))
        if not value.ndim:
            self._numbers.add(name)
        self._arrays.constant(name, value)

    def value(self, tensor: Tensor) -> str:
        """The name that holds a tensor."""
        return self._value_at(key_of(tensor))

    def _value_at(self, key: Key) -> str:
        """The name that holds the tensor of a key."""
        name = self._name_at(key)
        assert name is not None, key
        return name

    def _inputs(self, op: Operation) -> tuple[str, ...]:
        """The names that hold the inputs of a node."""
        values = self._values
        return tuple([values.get(key) or self._value_at(key) for key in keys_of_inputs(op)])

    def _name_at(self, key: Key) -> str | None:
        """As `_value_at`; None for a tensor that is never computed."""
        while key not in self._values:
            if key not in self._aliases:
                return None
            key = key_of(self._aliases[key])
        return self._values[key]

    def bind(self, value: Any, hint: str) -> str:
        """The name of a global that refers to `value`."""
        name = self._bound.get(id(value))
        if name is None:
            name = self._bound[id(value)] = self._names.unique(hint)
            self.globals[name] = value
        return name

    def call(self, op: Operation, function: str, arguments: Sequence[str] | None = None) -> None:
        """A node that is computed by `function(step, *inputs)`, which gives its outputs as a tuple.

        `function` is an expression; `arguments` stand in for the inputs where given.
        """
        inputs = self._inputs(op) if arguments is None else arguments
        outputs = [(i,) for i in range(len(op.output_types))]
        self._assign(op, f"{function}({', '.join(['step', *inputs])})", outputs, flat=True)
        self.uses_step = True

    def call_function(
        self, op: Operation, function: str, arguments: Sequence[str] | None = None
    ) -> None:
        """As `call`, for a node that calls functions of the library, which may be watched."""
        watcher = None if self._watcher is None else self._watcher.call_watcher(op)
        if watcher is not None:
            function = f"{self.bind(partial(partial, watcher.call), 'watched')}({function})"
        self.call(op, function, arguments)

    def kernel(self, op: Operation, kernel: OpKernel, *, is_by_value: bool) -> None:
        """A node that is computed by its kernel; `is_by_value`: no input is a reference."""
        if not is_by_value:
            self._call_with_tuple(op, function_of_references(kernel))
        elif kernel.forwards_inputs:
            self.forwarding_kernel(op, kernel)
        elif isinstance(kernel, FunctionKernel):
            self._function_kernel(op, kernel)
        else:
            self._call_with_tuple(op, function_of_step(kernel))

    def dereference(self, op: Operation) -> None:
        """A node of control flow that passes on the value of its first input, a reference."""
        self._assign(op, self._input(op, 0), [(0,)], flat=False)
        for index in range(1, len(op.output_types)):
            self._values.setdefault((op.name, index), self._values[op.name, 0])

    def _as_number(self, name: str) -> str:
        """The name of a number of NumPy's, where a name is that of an array of rank 0."""
        value = self.globals.get(name)
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
            return name
        number = self._number_of.get(name)
        if number is None:
            number = self._number_of[name] = self.bind(value[()], name)
        return number

    def _input(self, op: Operation, index: int) -> str:
        """The expression of an input as a node of control flow wants it."""
        tensor, name = op.inputs[index], self.value(op.inputs[index])
        if not tensor.dtype.is_ref or op.input_types[index].is_ref:
            return name
        return f"{self.bind(referred_value, 'referred_value')}({name}, {tensor.op.name!r})"

    def _function_kernel(self, op: Operation, kernel: FunctionKernel) -> None:
        inputs = self._inputs(op)
        has_array = self._arrays.has_array(inputs)
        if has_array and kernel.is_trusted and is_ufunc(kernel):
            self._ufunc_of_arrays(op, kernel, inputs)
            return
        is_number = self._numbers.issuperset(inputs)
        operator = None if has_array else operator_of(kernel)
        if operator is not None:
            operands = map(self._as_number, inputs) if is_number else inputs
            target = self._output(op, 0)
            text = f"{target} = {operator.format(*operands)}"
            self._state(op, text, inputs, [target], inputs)
            if is_number:
                self._numbers.add(target)
        else:
            self._call_function_kernel(op, kernel, inputs, is_number)

    def _ufunc_of_arrays(
        self, op: Operation, kernel: FunctionKernel, inputs: Sequence[str]
    ) -> None:
        """A ufunc, which may write its result over an input that dies."""
        target = self._output(op, 0)
        places = self._arrays.compute(target, kernel, inputs)
        text = f"{target} = {self._expression(kernel, inputs)}"
        statement = self._state(op, text, inputs, [target], inputs, shares=False)
        if places:
            statement.places = places
            statement.out = "out=" if ufunc_of(kernel.function)[0] in BY_KEYWORD else ""

    def _expression(self, kernel: FunctionKernel, arguments: Sequence[str]) -> str:
        """The call of a kernel's function."""
        called, filled_in = ufunc_of(kernel.function)
        function = self._bound.get(id(called)) or self.bind(called, _function_name(kernel))
        if filled_in:
            arguments = [*(self.bind(value, "operand") for value in filled_in), *arguments]
        return f"{function}({', '.join(arguments)})"

    def _call_function_kernel(
        self, op: Operation, kernel: FunctionKernel, inputs: Sequence[str], is_number: bool
    ) -> None:
        arguments = [
            f"[{', '.join(inputs[arg.start : arg.stop])}]" if arg.is_list else inputs[arg.start]
            for arg in kernel.properties.input_args
        ]
        outputs = [
            tuple(range(arg.start, arg.stop)) if arg.is_list else (arg.start,)
            for arg in kernel.properties.output_args
        ]
        lists = [arg.is_list for arg in kernel.properties.output_args]
        expression = self._expression(kernel, arguments)
        statement = self._assign(op, expression, outputs, flat=False, lists=lists)
        if is_number and kernel.kind == "elementwise":
            self._numbers.update(statement.sets)
        if not kernel.is_trusted and not isinstance(kernel.function, np.ufunc):
            self._check_types(statement, kernel)

    def _check_types(self, statement: Statement, kernel: FunctionKernel) -> None:
        """Have a statement check that what it sets is of the types that the op declares."""
        for index, (name, dtype) in enumerate(
            zip(statement.sets, kernel.output_dtypes, strict=False)
        ):
            wanted, check = self.bind(dtype, str(dtype)), self.bind(check_type, "check_type")
            statement.text += f"; {name}.dtype is {wanted} or {check}({name}, {wanted}, {index})"

    def _call_with_tuple(self, op: Operation, function: Callable[..., Sequence[Any]]) -> None:
        """A node that is computed by a function of the step and of a tuple of its inputs."""
        inputs = "".join(f"{name}, " for name in self._inputs(op))
        self.call(op, self.bind(function, op.type), [f"({inputs})"])

    def forwarding_kernel(
        self, op: Operation, kernel: OpKernel, compute: Computer | None = None
    ) -> None:
        """A kernel that may take over buffers of inputs: it gets the last references to them.

        `compute` stands in for the kernel's own where given.
        """
        box = self._local(f"{op.name}_inputs")
        function = self.bind(function_of_step(kernel, compute), op.type)
        outputs = [(i,) for i in range(len(op.output_types))]
        inputs = ", ".join(self._inputs(op))
        self.uses_step = True
        statement = self._assign(op, f"{function}(step, {box})", outputs, flat=True)
        statement.before = f"{box} = [{inputs}]"
        statement.sets = [*statement.sets, box]
        self.node_inputs[-1] = [box]

    def _assign(
        self,
        op: Operation,
        expression: str,
        outputs: Sequence[tuple[int, ...]],
        *,
        flat: bool,
        lists: Sequence[bool] = (),
    ) -> Statement:
        """`targets = expression`.

        `outputs` are the flat output indices of each value that the expression gives, `lists` says
        which of them are lists; `flat`: it gives a tuple of them even where there is just one.
        """
        names = [[self._output(op, i) for i in group] for group in outputs]
        target = _pattern(names, list(lists) or [False] * len(names), flat)
        sets = [name for group in names for name in group]
        reads = self._inputs(op)
        return self._state(op, f"{target} = {expression}" if target else expression, reads, sets)

    def _output(self, op: Operation, index: int) -> str:
        """The local that an output is assigned to; a fed output keeps its parameter."""
        key = op.name, index
        if key in self._announced:
            return self._announced.pop(key)
        if key in self._values:
            return self._local(f"{op.name}_fed")
        return self._set(op, index)

    def _set(self, op: Operation, index: int) -> str:
        hint = op.name if len(op.output_types) == 1 else f"{op.name}_{index}"
        name = self._values[op.name, index] = self._local(hint)
        return name

    def _local(self, hint: str) -> str:
        name = self._names.unique(hint)
        self._bound_on[name] = self._path
        return name

    def _state(
        self,
        op: Operation,
        text: str,
        reads: Iterable[str],
        sets: Sequence[str],
        inputs: Sequence[str] | None = None,
        *,
        shares: bool = True,
    ) -> Statement:
        """Add a statement.

        `inputs` are the names that hold the inputs, if these are known; `shares`: what it sets may
        refer to what it reads.
        """
        if shares:
            self._arrays.share(reads)
        comment = "" if sets and sets[0] == op.name else repr(op.name)
        node = self._node(op, inputs)
        statement = Statement(text, self._locals(reads), sets, node, comment)
        self._block.append(statement)
        return statement

    def _node(self, op: Operation, inputs: Sequence[str] | None = None) -> int:
        """A number for a node, by which lines of the plan refer to it."""
        if inputs is None:
            inputs = tuple([self._name_at(key) or "" for key in keys_of_inputs(op)])
        self.nodes.append(op)
        self.node_inputs.append(inputs)
        return len(self.nodes) - 1

    def _locals(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of some names that are locals."""
        return tuple([name for name in names if name in self._bound_on])


def _pattern(names: Sequence[Sequence[str]], lists: Sequence[bool], flat: bool) -> str:
    """The assignment target, or tuple, for the values of an expression."""
    items = [
        f"({', '.join(group)}{',' if len(group) == 1 else ''})" if is_list else group[0]
        for group, is_list in zip(names, lists, strict=True)
    ]
    if len(items) == 1 and not flat:
        return items[0]
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})" if items else ""


def _function_name(kernel: FunctionKernel) -> str:
    function = getattr(kernel.function, "func", kernel.function)
    return getattr(function, "__name__", kernel.type_string)
