"""PlanBuilder: turns nodes into the statements of a plan's tree.

Nothing of a model becomes code: names of nodes enter texts as identifiers cut down to ASCII letters,
digits and underscores (`Identifiers`), or through `repr`.

State: `_values` maps each tensor to the name that holds it: a local of the plan or, for a constant, a
global. `_aliases` holds the tensors that are other names for tensors. `_globals` holds the meanings of
global names, and `_bound` these names by the ids of the objects. `_hints` holds the texts that names were
made of. `_announced` holds the locals of outputs whose nodes come later. `_block` takes the statements,
and `_path` the branches that it is on. `_bound_on` tells the branches on which each local is set.
`_numbers` holds the names of values that seem to have rank 0; only speed depends on it. `_placed_forms` holds what
is known about the functions of element-wise kernels, by their ids and those of their contracts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.device.work_clock import in_time
from opkernel.errors import UnimplementedError
from opkernel.graph import Operation, Tensor
from opkernel.kernel import FunctionKernel, OpKernel
from opkernel.kernel.context.op_kernel_context import function_of_step
from opkernel.runtime.plan import tree
from opkernel.runtime.plan.keys import (
    Key,
    RequiredOutputs,
    function_of_references,
    key_of,
    referred_value,
)
from opkernel.runtime.plan.lifetimes import ArraysOfPlan, mark_lifetimes
from opkernel.runtime.plan.pointwise import (
    as_number,
    fills_out,
    operator_of,
    takes_out_by_keyword,
    ufunc_of,
)
from opkernel.runtime.plan.text import Identifiers
from opkernel.runtime.plan.tree import Block, Expression, Item, Name, Path, Statement

if TYPE_CHECKING:
    from opkernel.kernel import AsyncOpKernel
    from opkernel.runtime.watch.kernel_watcher import Computer, KernelWatcher


_PlacedForm = tuple[Name, tuple[Name, ...], bool]
"""An element-wise function, its operands that are filled in, and whether it takes `out` by keyword."""

_OF_OUTPUT = 1 << 13
"""The work that naming an output is."""


class NotRaisedError(UnimplementedError):
    """The control flow of a graph has no form in Python: the dataflow executor runs it."""

    def __init__(self, reason: str, op: Operation) -> None:
        super().__init__(
            f"{op.type}: plans do not run this control flow, the dataflow executor does: {reason} "
            f"(node {op.name!r})",
            node=op.name,
            op=op.type,
        )


class PlanBuilder:
    """Collects the statements of one plan and the objects that they refer to.

    Args:
        aliases: The tensors that are other names for tensors.
        required: The outputs that somebody takes.
        watcher: Watches the nodes that call functions, where given.
    """

    def __init__(
        self,
        aliases: Mapping[Key, Tensor],
        required: RequiredOutputs,
        watcher: KernelWatcher | None = None,
    ) -> None:
        self._params = required.params
        self._uses_step = False
        self._globals: dict[Name, tree.Global] = {}
        self._aliases = aliases
        self._watcher = watcher
        self._names = Identifiers(["step", "plan", "__plan__"])
        self._inputs_by_value: dict[str, tuple[Name, ...]] = {}
        self._hints: dict[Name, str] = {}
        self._bound: dict[int, Name] = {}
        self._values: dict[Key, Name] = {}
        self._fed: set[Key] = set()
        self._numbers: set[Name] = set()
        self._number_of: dict[Name, Name] = {}
        self._arrays = ArraysOfPlan()
        self._placed_forms: dict[tuple[int, int], _PlacedForm | None] = {}
        self._announced: dict[Key, Name] = {}
        self._block: Block = []
        self._path: Path = frozenset()
        self._bound_on: dict[Name, Path] = {}

    def items(self, items: Sequence[Any], build: Callable[[Operation], None]) -> None:
        """Add operations, in order; `build` adds the statements of one."""
        for op in items:
            build(op)

    def finish(self, parameters: Sequence[Name], fetches: Sequence[Tensor]) -> tree.PlanTree:
        """The plan.

        Args:
            parameters: The names of the fed tensors.
            fetches: The tensors that are returned.
        """
        results = [self._result(key_of(tensor)) for tensor in fetches]
        mark_lifetimes(self._block, self._bound_on, set(results))
        return tree.PlanTree(
            "plan",
            ["step", *parameters],
            self._block,
            results,
            self._globals,
            self._hints,
            self._uses_step,
        )

    def _result(self, key: Key) -> Name:
        """The value that a plan returns for a tensor."""
        return self._value_at(key)

    def parameter(self, tensor: Tensor) -> Name:
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

    def value(self, tensor: Tensor) -> Name:
        """The name that holds a tensor."""
        return self._value_at(key_of(tensor))

    def _value_at(self, key: Key) -> Name:
        """The name that holds the tensor of a key."""
        name = self._name_at(key)
        assert name is not None, key
        return name

    def inputs(self, op: Operation) -> tuple[Name, ...]:
        """The names that hold the inputs of a node; empty for a node that is never computed."""
        read = self._inputs_by_value
        if read and op.name in read:
            return read[op.name]
        values, edges, names = self._values, iter(op.edges), []
        for source in edges:
            key = source.name, next(edges)
            names.append(values.get(key) or self._name_at(key) or "")
        return tuple(names)

    def read_references(self, op: Operation) -> None:
        """Read the references that a node takes by value; `inputs` gives their values from here on."""
        names = [*self.inputs(op)]
        for index, (tensor, wanted) in enumerate(zip(op.inputs, op.input_types, strict=True)):
            if tensor.dtype.is_ref and not wanted.is_ref:
                value, target = self._input(op, index), self._local(f"{tensor.op.name}_value")
                self._state(tree.Assign(op, (names[index],), (target,), (value,)))
                names[index] = target
        self._inputs_by_value[op.name] = tuple(names)

    def _name_at(self, key: Key) -> Name | None:
        """As `_value_at`; None for a tensor that is never computed."""
        while key not in self._values:
            if key not in self._aliases:
                return None
            key = key_of(self._aliases[key])
        return self._values[key]

    def bind(
        self, value: Any, hint: str, kind: tree.Kind = "constant", kernel: OpKernel | None = None
    ) -> Name:
        """The name of a global that refers to `value`."""
        name = self._bound.get(id(value))
        if name is None:
            name = self._bound[id(value)] = self._name(hint)
            self._globals[name] = tree.Global(value, kind, kernel=kernel)
        return name

    def service(self, value: Any, name: str = "") -> Name:
        """The name of the global that is a service: by itself, or as its function is called."""
        return self.bind(value, name or value.__name__, "service")

    def call(
        self,
        op: Operation,
        function: Name,
        arguments: Sequence[Expression],
        kind: type[tree.Call] = tree.Call,
        **more: Any,
    ) -> tree.Call:
        """A node that is computed by a function of the step, which gives its outputs as a tuple.

        `arguments` stand behind the step; `kind` is what becomes of it, and `more` what that asks for.
        """
        if self._watcher is not None and issubclass(kind, tree.FunctionCall):
            watcher = self._watcher.call_watcher(op)
            if watcher is not None:
                more["watcher"] = self.service(partial(partial, watcher.call), "watched")
        inputs, results = self.inputs(op), self._outputs(op)
        call = kind(op, inputs, results, function, ("step", *arguments), results, **more)
        self._state(call)
        self._uses_step = True
        return call

    def kernel(self, op: Operation, kernel: OpKernel, *, is_by_value: bool) -> None:
        """A node that is computed by its kernel; `is_by_value`: no input is a reference."""
        if not is_by_value:
            self._call_with_tuple(op, kernel, function_of_references(kernel, self._params(op)))
        elif kernel.contract.forwards_inputs:
            self.forwarding_kernel(op, kernel)
        elif isinstance(kernel, FunctionKernel):
            self._function_kernel(op, kernel)
        else:
            run = function_of_step(kernel, params=self._params(op))
            self._call_with_tuple(op, kernel, run)

    def dereference(self, op: Operation) -> None:
        """A node of control flow that passes on the value of its first input, a reference."""
        inputs, value = self.inputs(op), self._input(op, 0)
        self._state(tree.Assign(op, inputs, (self._output(op, 0),), (value,)))
        for index in range(1, len(op.output_types)):
            self._values.setdefault((op.name, index), self._values[op.name, 0])

    def _as_number(self, name: Name) -> Name:
        """The name of NumPy's number for an array of rank 0; other names stay as they are."""
        bound = self._globals.get(name)
        value = None if bound is None else bound.value
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
            return name
        number = self._number_of.get(name)
        if number is None:
            number = self._number_of[name] = self.bind(value[()], name)
        return number

    def _input(self, op: Operation, index: int) -> Expression:
        """An input as a node of control flow wants it."""
        tensor, name = op.inputs[index], self.value(op.inputs[index])
        if not tensor.dtype.is_ref or op.input_types[index].is_ref:
            return name
        return tree.Apply(self.service(referred_value), (name, tree.Plain(tensor.op.name)))

    def _function_kernel(self, op: Operation, kernel: FunctionKernel) -> None:
        inputs = self.inputs(op)
        has_array = self._arrays.has_array(inputs)
        if has_array:
            form = self._placed_form(kernel)
            if form is not None:
                self._function_of_arrays(op, kernel, inputs, *form)
                return
        is_number = self._numbers.issuperset(inputs)
        operator = None if has_array else operator_of(kernel)
        if operator is None:
            self._call_function_kernel(op, kernel, inputs, is_number)
            return
        operands = tuple(map(self._as_number, inputs))
        target = self._output(op, 0)
        self._state(tree.OperatorCall(op, inputs, (target,), operator, operands))
        if is_number:
            self._numbers.add(target)

    def _placed_form(self, kernel: FunctionKernel) -> _PlacedForm | None:
        """How an element-wise kernel is called that may write over an input. Kernels of one form share the answer."""
        key = id(kernel.function), id(kernel.contract)  # which the kernels keep alive
        try:
            return self._placed_forms[key]
        except KeyError:
            form = None
        if fills_out(kernel):
            by_keyword = takes_out_by_keyword(kernel.function)
            form = *self._called(kernel.function, kernel), by_keyword
        self._placed_forms[key] = form
        return form

    def _function_of_arrays(
        self,
        op: Operation,
        kernel: FunctionKernel,
        inputs: tuple[Name, ...],
        function: Name,
        filled_in: tuple[Name, ...],
        by_keyword: bool,
    ) -> None:
        """An element-wise function, which may write its result over an input that dies."""
        target = self._output(op, 0)
        places = self._arrays.compute(target, kernel, inputs)
        arguments = (*filled_in, *inputs) if filled_in else inputs
        call = tree.PlacedCall(op, inputs, (target,), function, arguments, target)
        self._add(call, inputs)
        if places:
            call.places = call.reads if places == call.reads else places
            call.by_keyword = by_keyword

    def _called(
        self, function: Callable[..., Any], kernel: FunctionKernel
    ) -> tuple[Name, tuple[Name, ...]]:
        """The name of a function of a kernel, and those of its first operands where they are filled in."""
        called, filled_in = ufunc_of(function)
        name = self._bound.get(id(called))
        if name is None:
            name = self.bind(called, _function_name(kernel), "kernel", kernel)
        return name, tuple([self.bind(value, "operand") for value in filled_in])

    def _call_function_kernel(
        self, op: Operation, kernel: FunctionKernel, inputs: tuple[Name, ...], is_number: bool
    ) -> None:
        arguments: list[Expression] = [
            list(inputs[arg.start : arg.stop]) if arg.is_list else inputs[arg.start]
            for arg in kernel.properties.input_args
        ]
        outputs = kernel.properties.output_args
        called, filled_in = self._called(kernel.function, kernel)
        results = [
            tuple([self._output(op, i) for i in range(arg.start, arg.stop)])
            if arg.is_list
            else self._output(op, arg.start)
            for arg in outputs
        ]
        sets = tuple([n for one in results for n in ((one,) if isinstance(one, str) else one)])
        pattern = results[0] if len(results) == 1 else tuple(results)
        if is_number and kernel.contract.elementwise:
            self._numbers.update(sets)
        self._state(tree.Call(op, inputs, sets, called, [*filled_in, *arguments], pattern))

    def _call_with_tuple(
        self, op: Operation, kernel: OpKernel, function: Callable[..., Sequence[Any]]
    ) -> None:
        """A node that is computed by a function of the step and of a tuple of its inputs."""
        self.call(op, self.bind(function, op.type, "kernel", kernel), [self.inputs(op)])

    def forwarding_kernel(
        self, op: Operation, kernel: OpKernel, compute: Computer | None = None
    ) -> None:
        """A kernel that may take over buffers of inputs: it gets the last references to them.

        `compute` stands in for the kernel's own where given.
        """
        run = function_of_step(kernel, compute, self._params(op))
        self._call_with_list(op, kernel, run, tree.ForwardingCall)

    def awaited_kernel(self, op: Operation, kernel: AsyncOpKernel) -> None:
        """A kernel that may wait: the plan, a generator then, yields it and its inputs, and is sent its outputs."""
        from opkernel.runtime.plan.awaited_kernel import AwaitedKernel  # few plans are suspended

        run = AwaitedKernel(op, kernel, self._params(op))
        self._call_with_list(op, kernel, run, tree.AwaitedCall)

    def _call_with_list(
        self,
        op: Operation,
        kernel: OpKernel,
        run: Callable[..., Any],
        kind: type[tree.ForwardingCall],
    ) -> None:
        """A node that is computed by a function of the step and of a list of its inputs."""
        box = self._local(f"{op.name}_inputs")
        function = self.bind(run, op.type, "kernel", kernel)
        call = self.call(op, function, [list(self.inputs(op))], kind, box=box)
        call.inputs, call.sets = (box,), (*call.sets, box)

    def _outputs(self, op: Operation) -> tuple[Name, ...]:
        """The locals that the outputs are assigned to."""
        return tuple(
            [self._output(op, i) for i in in_time(range(len(op.output_types)), _OF_OUTPUT)]
        )

    def _output(self, op: Operation, index: int) -> Name:
        """The local that an output is assigned to; a fed output keeps its parameter."""
        key = op.name, index
        if key in self._values:
            return self._announced.pop(key, "") or self._local(f"{op.name}_fed")
        return self._set(op, index)

    def _set(self, op: Operation, index: int) -> Name:
        node = op.name
        hint = node if len(op.signature.output_types) == 1 else f"{node}_{index}"
        name = self._values[node, index] = self._local(hint)
        return name

    def _local(self, hint: str) -> Name:
        name = self._names.unique(hint)
        if name != hint:
            self._hints[name] = hint
        self._bound_on[name] = self._path
        return name

    def _name(self, hint: str) -> Name:
        """A name that nothing else has."""
        name = self._names.unique(hint)
        if name != hint:
            self._hints[name] = hint
        return name

    def _state(self, statement: Statement, reads: Sequence[Name] | None = None) -> None:
        """Add a statement. Its results may refer to the tensors that it reads: its inputs, by default."""
        self._add(statement, statement.inputs if reads is None else reads)
        self._arrays.share(statement.reads)

    def _add(self, item: Item, reads: Sequence[Name]) -> None:
        """Add an item, given the names that it reads; globals may be among them."""
        item.reads = self._locals(reads)
        self._block.append(item)

    def _locals(self, names: Sequence[Name]) -> Sequence[Name]:
        """The names that are locals; the same object if all are, for plans keep it."""
        bound = self._bound_on
        found = [name for name in names if name in bound]
        return names if len(found) == len(names) else tuple(found)


def _function_name(kernel: FunctionKernel) -> str:
    function = getattr(kernel.unchecked, "func", kernel.unchecked)
    return getattr(function, "__name__", kernel.type_string)
