"""FuncGraph: the body of a function while Python is traced into it, and the FunctionDef of it.

Tensors of the graphs around it that the body uses become its last inputs, the captures. What runs
for its effects runs in the order of the program.

State: `captures` maps each tensor from outside to the placeholder that stands for it;
`control_captures` are the operations from outside that the body waits for. `close` ends the trace.

Source: TensorFlow python/framework/func_graph.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opkernel.device.permissions import ORIGIN_ATTR, PROGRAM, with_plain_marks
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, OpError
from opkernel.graph.core.captured_value import CapturedValue
from opkernel.graph.core.create_op import as_tensor
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.node import NodeRequest, note_site
from opkernel.graph.core.operation import Operation, as_operation
from opkernel.graph.core.structural_ops import ENTER_OPS, SWITCH_OPS
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.functions.function_library import FunctionLibraryDefinition
from opkernel.graph.functions.graph_to_function import graph_to_function_def
from opkernel.graph.inference.shape_refiner import facts_of
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.graph.tracing.nested_structure import flatten, map_structure
from opkernel.graph.tracing.tensor_spec import TensorSpec
from opkernel.messages import short_repr
from opkernel.opdef.shapes.shape_algebra import make_shape_handle
from opkernel.proto import AttrValue, FunctionDef, NameAttrList
from opkernel.records import replace

if TYPE_CHECKING:
    from opkernel.opdef import OpRegistry


class FuncGraph(Graph):
    """The graph of a function's body.

    Attributes:
        name: what the function's name begins with.
        label: what to call it in messages: its name, and what it is traced for.
        outer_graph: the graph around it, until the trace has ended.
        inputs: the placeholders of the arguments, then those of the captures.
        outputs: the results, flat.
        structured_outputs: the results in the form in which Python returned them.
        structured_input_signature: the positional arguments and those by keyword, with specs for tensors.
        control_outputs: what runs though no result depends on it.
        captures: the tensors from outside, with what stands for them inside.
        captured_values: Python objects whose tensors it takes, such as variables, with what stands for them.
        control_captures: the operations from outside that it waits for.
        jit: the engine that compiles parts of it where Python calls it; what OPKERNEL_JIT says if empty.
        jit_compile: whether XLA compiles it where Python calls it, as its attr `_XlaMustCompile` says.
    """

    building_function = True

    def __init__(
        self,
        op_registry: OpRegistry | None = None,
        *,
        name: str = "",
        outer_graph: Graph | None = None,
        label: str = "",
        function_library: FunctionLibraryDefinition | None = None,
        is_called_by_name: bool = False,
    ) -> None:
        """A body.

        Args:
            op_registry: the ops; those of the graph around it if there is one.
            name: what the function's name begins with.
            outer_graph: the graph around it.
            label: what to call it in messages.
            function_library: the functions that it may call.
            is_called_by_name: other graphs call it, too, and hand it the variables that it uses; all
                else is part of the graph around it.
        """
        if outer_graph is not None:
            op_registry = outer_graph.op_registry
        super().__init__(op_registry, function_library=function_library)
        if outer_graph is not None:
            self.graph_def_versions.CopyFrom(outer_graph.graph_def_versions)
        self.name = name
        self.label = label or name
        self.outer_graph = outer_graph
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.structured_outputs: Any = None
        self.structured_input_signature: tuple[Any, Any] = ((), {})
        self.control_outputs: list[Operation] = []
        self.captures: dict[Tensor, Tensor] = {}
        self.captured_values: dict[CapturedValue, Tensor] = {}
        self._keeps_captured_values = is_called_by_name or outer_graph is None
        self.control_captures: dict[Operation, None] = {}
        self.jit_compile = False
        self.jit = ""

    def empty(self) -> FuncGraph:
        """An empty body that may call the same functions."""
        return FuncGraph(function_library=self.function_library)

    def add_input(self, spec: TensorSpec, name: str) -> Tensor:
        """A new argument."""
        tensor = self._placeholder(spec, name)
        self.inputs.append(tensor)
        return tensor

    def trace(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Run a Python function: its operations become the body, its return values the results.

        Raises:
            TypeError: it returns what makes no tensor.
            Exception: whatever the function raises.
        """
        try:
            with self.as_default():
                returned = function(*args, **kwargs)
                self.structured_outputs = map_structure(self._as_output, returned)
        except Exception as error:
            note_site(error, self.label)
            raise
        self.outputs = [leaf for leaf in flatten(self.structured_outputs) if leaf is not None]
        self.control_outputs = _order_stateful_ops(self)

    def close(self) -> None:
        """End the trace: no captures can be added any more."""
        self.finalize()
        self.outer_graph = None

    def capture(self, tensor: Tensor) -> Tensor:
        """The tensor of the body that stands for one from outside; made when it is first used.

        Raises:
            InvalidArgumentError: the tensor is of no graph around the function.
        """
        inside = self.captures.get(tensor)
        if inside is None:
            self._check_reachable(tensor)
            inside = self._placeholder(
                TensorSpec(tensor.shape, tensor.dtype.base), tensor.op.name.rpartition("/")[2]
            )
            facts = facts_of(tensor)
            self.refiner.define(inside.op, facts)
            self.captures[tensor] = inside
            self.inputs.append(inside)
        return inside

    def tensor_of(self, value: CapturedValue) -> Tensor:
        """The tensor of the body that stands for a Python object; made when it is first used."""
        inside = self.captured_values.get(value)
        if inside is not None:
            return inside
        if not self._keeps_captured_values:
            assert self.outer_graph is not None
            return self.capture(self.outer_graph.tensor_of(value))
        dtype, shape = value.captured_spec
        inside = self._placeholder(TensorSpec(shape, dtype), value.name)
        self.refiner.define(inside.op, TensorFacts(make_shape_handle(shape), value.handle_facts))
        self.captured_values[value] = inside
        self.inputs.append(inside)
        return inside

    def further_inputs(self, graph: Graph) -> list[Tensor]:
        """The values that a call in a graph passes after the arguments: the captures, in order."""
        outside = {inside: tensor for tensor, inside in self.captures.items()}
        values = {inside: value for value, inside in self.captured_values.items()}
        count = len(self.inputs) - len(outside) - len(values)
        return [
            outside[tensor] if tensor in outside else graph.tensor_of(values[tensor])
            for tensor in self.inputs[count:]
        ]

    def create_call(
        self,
        graph: Graph,
        op_type: str,
        reference: AttrValue,
        arguments: list[Tensor],
        control_inputs: Iterable[Operation] = (),
    ) -> Operation:
        """Add a node to a graph that calls the function."""
        attrs = {
            "Tin": [tensor.dtype for tensor in self.inputs],
            "Tout": [tensor.dtype for tensor in self.outputs],
            "f": reference,
        }
        op = graph.create_op(op_type, [arguments], attrs=attrs, control_inputs=control_inputs)
        for tensor, inside in zip(op.outputs, self.outputs, strict=True):
            tensor.set_shape(inside.shape)
        return op

    @property
    def is_stateful(self) -> bool:
        """Whether any operation of the body is."""
        return any(op.op_def.is_stateful for op in self._operations)

    @cached_property
    def function_def(self) -> FunctionDef:
        """The function. Its name ends in a hash of its content, so that equal functions are one."""
        import hashlib  # which takes longer to load than the rest of this room's tracing

        controls = {op.name: op for op in self.control_outputs}
        attrs = {"_XlaMustCompile": AttrValue(b=True)} if self.jit_compile else {}
        function = graph_to_function_def(
            self, "", self.inputs, self.outputs, control_outputs=controls, attrs=attrs
        )
        content = with_plain_marks(function.SerializeToString(deterministic=True))
        digest = hashlib.blake2b(content, digest_size=6).hexdigest()
        function.signature.name = f"{self.name}_{digest}"
        return function

    @property
    def reference(self) -> AttrValue:
        """The value of an attr that names the function."""
        return AttrValue(func=NameAttrList(name=self.function_def.signature.name))

    def add_to(self, graph: Graph) -> None:
        """Put the function, and those that it calls, into the library of a graph.

        Raises:
            InvalidArgumentError: another function of the library has the name of one of them.
        """
        library, function = graph.function_library, self.function_def
        if function.signature.name in library:  # the name has a hash of the content
            return
        for called in self.function_library.values():
            library.add_function(called)
        library.add_function(function)
        library.custom_gradients.update(self.function_library.custom_gradients)
        library.kept.update(self.function_library.kept)

    # What the ways into a graph do otherwise here.

    def control_dependencies(
        self, control_inputs: Iterable[Any] | None
    ) -> AbstractContextManager[None]:
        """Make new operations run after others; after those from outside, the whole function."""
        own = None if control_inputs is None else self._own_controls(control_inputs)
        return super().control_dependencies(own)

    def create_node(
        self, name: str, request: NodeRequest, control_inputs: Iterable[Any] = ()
    ) -> Operation:
        """Make an operation of the program's; control inputs from outside become those of the function."""
        if self.function_library.may_open_files(request.op_type):
            mark = AttrValue(s=PROGRAM)
            request = replace(request, attrs={ORIGIN_ATTR: mark, **request.attrs})
        return super().create_node(name, request, self._own_controls(control_inputs))

    def as_own(self, tensor: Tensor) -> Tensor:
        """The tensor itself, or the capture of one from outside."""
        return tensor if tensor.graph is self else self.capture(tensor)

    def _own_controls(self, control_inputs: Iterable[Any]) -> list[Operation]:
        ops = [as_operation(control) for control in control_inputs]
        self.control_captures.update(dict.fromkeys(op for op in ops if op.graph is not self))
        return [op for op in ops if op.graph is self]

    def check_not_finalized(self) -> None:
        """Raise FailedPreconditionError where the trace has ended."""
        if self.finalized:
            raise FailedPreconditionError(
                f"The trace of function {self.name!r} has ended: its tensors cannot be used outside "
                f"of it. Return what is wanted from the function"
            )

    def _check_reachable(self, tensor: Tensor) -> None:
        graph: Graph | None = self
        while isinstance(graph, FuncGraph):
            graph = graph.outer_graph
            if graph is tensor.graph:
                return
        home = tensor.graph
        place = f"function {home.name!r}" if isinstance(home, FuncGraph) else "another graph"
        raise InvalidArgumentError(
            f"{tensor.name!r} cannot be used in function {self.name!r}: it is a tensor of {place}, "
            f"which does not enclose {self.name!r}. Pass the tensor as an argument",
            node=tensor.op.name,
        )

    def _placeholder(self, spec: TensorSpec, name: str) -> Tensor:
        attrs = {"dtype": spec.dtype, "shape": spec.shape}
        with (
            self.scopes.in_name(""),
            self.scopes.after(None),
            self.scopes.on_device(None),
            self.scopes.beside(None, ignore_existing=True),
        ):
            name = re.sub(r"[^A-Za-z0-9_.\-]", "_", name)
            name = name if name[:1].isalnum() else f"arg{name}"
            return self.create_op("Placeholder", name=name, attrs=attrs).outputs[0]

    def _as_output(self, value: Any) -> Tensor | None:
        """The tensor of a result; None for None and for operations, which run anyway."""
        if value is None or isinstance(value, Operation):
            return None
        try:
            return as_tensor(self, "", value, "Const", None)
        except OpError as error:
            if isinstance(value, Tensor):
                raise
            raise TypeError(
                f"function {self.name!r} returned {short_repr(value)} of type {type(value).__name__}, which "
                "makes no tensor. Results are tensors, arrays, numbers, strings and None, in lists, "
                "tuples, dicts and objects with __tf_flatten__ and __tf_unflatten__"
            ) from error


def _order_stateful_ops(graph: Graph) -> list[Operation]:
    """Make each stateful operation wait for the one before it; the last of them, which is to run.

    TensorFlow (python/framework/auto_control_deps.py) makes a row for each resource; here there is one for all, since two handles may be of
    one resource. A graph with switches or frames of TensorFlow 1 keeps the order that it has: what
    waits for a dead operation is dead.
    """
    ops = graph.get_operations()
    if any(op.type in ENTER_OPS | SWITCH_OPS for op in ops):
        return []
    last = None
    for op in ops:
        if op.op_def.is_stateful and not op.traits.any_order:
            if last is not None:
                op.add_control_input(last)
            last = op
    return [] if last is None else [last]


def function_name(wanted: str) -> str:
    """A name that functions may have: of letters, digits and underscores."""
    return re.sub(r"[^A-Za-z0-9_.]+", "_", wanted).strip("_.") or "function"
