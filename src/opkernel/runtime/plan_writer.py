"""PlanWriter: turns nodes into the statements of a plan.

State: `_values` maps each tensor to the name that holds it, which is a local of the plan or, for
constants, a global; `globals` are the objects that the text refers to, `_bound` their names; `_maybe_dead` are the
locals that may hold DEAD; `_witness` maps an operation to a local that is DEAD where the operation
was not run, for what depends on it by a control edge alone.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.graph import Operation, Tensor
from opkernel.kernel import FunctionKernel, OpKernel, forward_input
from opkernel.kernel.context import function_of_step
from opkernel.runtime.plan_source import Names, Part, Statement, write_parts
from opkernel.runtime.references import function_of_references

__all__ = ["DEAD", "PlanWriter"]


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
    """Collects the statements of one plan and the objects that they refer to."""

    def __init__(self) -> None:
        self.nodes: list[tuple[Operation, list[str]]] = []
        self.uses_step = False
        self.globals: dict[str, Any] = {"DEAD": DEAD, "check_alive": check_alive}
        self._names = Names(["step", "plan", "__plan__", *self.globals])
        self._bound: dict[int, str] = {}
        self._values: dict[tuple[str, int], str] = {}
        self._witness: dict[str, str] = {}
        self._locals: set[str] = set()
        self._maybe_dead: set[str] = set()
        self._statements: list[Statement] = []

    def parameter(self, tensor: Tensor) -> str:
        """A parameter of the plan, which holds a fed tensor."""
        return self._set(tensor.op, tensor.value_index)

    def value(self, tensor: Tensor) -> str:
        """The name that holds a tensor."""
        return self._values[_key(tensor)]

    def bind(self, value: Any, hint: str) -> str:
        """The name of a global that refers to `value`."""
        name = self._bound.get(id(value))
        if name is None:
            name = self._bound[id(value)] = self._names.unique(hint)
            self.globals[name] = value
        return name

    def call(
        self,
        op: Operation,
        function: str,
        arguments: Sequence[str] | None = None,
        *,
        may_be_dead: bool = False,
    ) -> None:
        """A node that is computed by `function(step, *inputs)`, which gives its outputs as a tuple.

        `arguments` stand in for the inputs where given; `may_be_dead`: outputs may be DEAD.
        """
        inputs = [self.value(t) for t in op.inputs] if arguments is None else arguments
        outputs = [(i,) for i in range(len(op.outputs))]
        self._assign(op, f"{function}({', '.join(['step', *inputs])})", outputs, flat=True)
        self.uses_step = True
        if may_be_dead:
            self._maybe_dead.update(self._values[op.name, i] for (i,) in outputs)

    def kernel(self, op: Operation, kernel: OpKernel) -> None:
        """A node that is computed by its kernel."""
        if kernel.const_tensor is not None:
            self._constant(op, kernel.const_tensor)
        elif any(tensor.dtype.is_ref for tensor in op.inputs):
            self._call_with_tuple(op, function_of_references(kernel))
        elif kernel.forwards_inputs:
            self._forwarding_kernel(op, kernel)
        elif not isinstance(kernel, FunctionKernel):
            self._call_with_tuple(op, function_of_step(kernel))
        elif kernel.function is forward_input:
            self.forward(op)
        else:
            self._function_kernel(op, kernel)

    def forward(self, op: Operation) -> None:
        """A node that passes its inputs on: other names for the same values."""
        sources = [self.value(tensor) for tensor in op.inputs]
        if self._guards(op, without=sources[0] if len(sources) == 1 else ""):
            outputs = [(index,) for index in range(len(sources))]
            self._assign(op, f"({', '.join(sources)},)", outputs, flat=True)
        else:
            for index, source in enumerate(sources):
                self._alias(op, index, source)

    def no_op(self, op: Operation) -> None:
        """A node that computes nothing; others may wait for it."""
        if self._guards(op):
            self._assign(op, "None", [], flat=False)

    def merge(self, op: Operation, function: str) -> None:
        """A node that passes on whichever of its inputs is alive."""
        inputs = [self.value(t) for t in op.inputs]
        names = [self._output(op, i) for i in range(len(op.outputs))]
        text = f"({', '.join(names)}) = {function}({', '.join(inputs)})"
        self._state(op, text, inputs, names)
        if all(name in self._maybe_dead for name in inputs):
            self._maybe_dead.update(names)

    def finish(self, parameters: Sequence[str], fetches: Sequence[Tensor]) -> list[Part]:
        """The functions of the plan; the last is the one to call."""
        results = [self.value(tensor) for tensor in fetches]
        for tensor, name in zip(fetches, results, strict=True):
            if name in self._maybe_dead:
                self._state(tensor.op, f"check_alive({name}, {tensor.name!r})", [name], [])
        return write_parts(self._statements, parameters, results)

    def _function_kernel(self, op: Operation, kernel: FunctionKernel) -> None:
        function = self.bind(kernel.function, _function_name(kernel))
        inputs = [self.value(tensor) for tensor in op.inputs]
        arguments = [
            f"[{', '.join(inputs[arg.start : arg.stop])}]" if arg.is_list else inputs[arg.start]
            for arg in kernel.properties.input_args
        ]
        outputs = [
            tuple(range(arg.start, arg.stop)) if arg.is_list else (arg.start,)
            for arg in kernel.properties.output_args
        ]
        lists = [arg.is_list for arg in kernel.properties.output_args]
        self._assign(op, f"{function}({', '.join(arguments)})", outputs, flat=False, lists=lists)
        if not kernel.is_trusted and not isinstance(kernel.function, np.ufunc):
            self._check_types(kernel)

    def _check_types(self, kernel: FunctionKernel) -> None:
        """Have the last statement check that what it sets is of the types that the op declares."""
        statement = self._statements[-1]
        for index, (name, dtype) in enumerate(
            zip(statement.sets, kernel.output_dtypes, strict=False)
        ):
            wanted, check = self.bind(dtype, str(dtype)), self.bind(check_type, "check_type")
            test = f"{name}.dtype is {wanted} or {check}({name}, {wanted}, {index})"
            if name in self._maybe_dead:
                test = f"{name} is DEAD or {test}"
            statement.text += f"; {test}"

    def _call_with_tuple(self, op: Operation, function: Callable[..., Sequence[Any]]) -> None:
        """A node that is computed by a function of the step and of a tuple of its inputs."""
        inputs = "".join(f"{self.value(tensor)}, " for tensor in op.inputs)
        self.call(op, self.bind(function, op.type), [f"({inputs})"])

    def _forwarding_kernel(self, op: Operation, kernel: OpKernel) -> None:
        """A kernel that may take over buffers of inputs: it gets the last references to them."""
        box = self._local(f"{op.name}_inputs")
        function = self.bind(function_of_step(kernel), op.type)
        outputs = [(i,) for i in range(len(op.outputs))]
        inputs = ", ".join(self.value(tensor) for tensor in op.inputs)
        self.uses_step = True
        self._assign(op, f"{function}(step, {box})", outputs, flat=True)
        statement = self._statements[-1]
        statement.before = f"{box} = [{inputs}]"
        statement.sets = [*statement.sets, box]
        self.nodes[-1] = op, [box]

    def _constant(self, op: Operation, value: Any) -> None:
        name = self.bind(value, op.name)
        if self._guards(op):
            self._assign(op, name, [(0,)], flat=False)
        else:
            self._values.setdefault((op.name, 0), name)

    def _alias(self, op: Operation, index: int, source: str) -> None:
        self._values.setdefault((op.name, index), source)
        if source in self._maybe_dead:
            self._witness[op.name] = source

    def _assign(
        self,
        op: Operation,
        expression: str,
        outputs: Sequence[tuple[int, ...]],
        *,
        flat: bool,
        lists: Sequence[bool] = (),
    ) -> None:
        """`targets = expression`, guarded where an input may be dead.

        `outputs` are the flat output indices of each value that the expression gives; `flat`: it
        gives a tuple of them even where there is just one.
        """
        names = [[self._output(op, i) for i in group] for group in outputs]
        is_list = list(lists) or [False] * len(names)
        guards = self._guards(op)
        if not names:
            names, is_list = ([[self._local(op.name)]], [False]) if guards else (names, is_list)
            flat = flat and not guards
        target = _pattern(names, is_list, flat)
        if guards:
            dead = _pattern([["DEAD"] * len(group) for group in names], is_list, flat)
            test = " or ".join(f"{name} is DEAD" for name in guards)
            expression = f"{dead} if {test} else {expression}"
        sets = [name for group in names for name in group]
        self._state(op, f"{target} = {expression}" if target else expression, self._reads(op), sets)
        if guards:
            self._maybe_dead.update(sets)
            self._witness[op.name] = sets[0]

    def _reads(self, op: Operation) -> list[str]:
        """The locals that a node reads: its inputs, and the witnesses of its control inputs."""
        controls = [self._witness[c.name] for c in op.control_inputs if c.name in self._witness]
        return [self.value(tensor) for tensor in op.inputs] + controls

    def _guards(self, op: Operation, without: str = "") -> list[str]:
        """The locals that a node reads and that may be dead."""
        if not self._maybe_dead:
            return []
        reads = dict.fromkeys(self._reads(op))
        return [name for name in reads if name in self._maybe_dead and name != without]

    def _output(self, op: Operation, index: int) -> str:
        """The local that an output is assigned to; a fed output keeps its parameter."""
        if (op.name, index) in self._values:
            return self._local(f"{op.name}_fed")
        return self._set(op, index)

    def _set(self, op: Operation, index: int) -> str:
        hint = op.name if len(op.outputs) == 1 else f"{op.name}_{index}"
        name = self._values[op.name, index] = self._local(hint)
        return name

    def _local(self, hint: str) -> str:
        name = self._names.unique(hint)
        self._locals.add(name)
        return name

    def _state(self, op: Operation, text: str, reads: Sequence[str], sets: Sequence[str]) -> None:
        reads = [name for name in reads if name in self._locals]
        comment = "" if sets and sets[0] == op.name else repr(op.name)
        self._statements.append(Statement(text, reads, sets, len(self.nodes), comment))
        self.nodes.append((op, [self._values.get(_key(t), "") for t in op.inputs]))


def _key(tensor: Tensor) -> tuple[str, int]:
    return tensor.op.name, tensor.value_index


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
