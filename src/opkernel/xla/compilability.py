"""Which operations XLA compiles, and which of them it is given without having been asked.

Source: RecursiveCompilabilityChecker in TensorFlow compiler/jit/compilability_check_util.cc.
"""

from __future__ import annotations

from opkernel.device.budget import check_time
from opkernel.errors import OpError
from opkernel.graph import FunctionBody, Operation, instantiate_function
from opkernel.graph.core.edges import edges_of
from opkernel.graph.core.structural_ops import LOW_LEVEL_CONTROL_FLOW, STRUCTURAL_OPS
from opkernel.graph.inference.constant_values import constant_value
from opkernel.kernel.registry.lookup import kernel_def_if_available
from opkernel.opdef import OpTraits
from opkernel.optimization.clusters.before_marking import SIZE_INPUTS
from opkernel.optimization.clusters.resource_operations import is_list
from opkernel.proto import AttrValue, NameAttrList
from opkernel.types import DataType
from opkernel.xla.op_registry import DeviceRegistration, XlaOpRegistry

_MAX_DEPTH = 50
"""Functions that call each other more deeply are not compiled; those that call themselves are among these."""

_MOST_NODES = 50_000
"""Calls that a program would take apart into more nodes are not compiled."""
_TRACES_OF_LOOP = 3
"""So often the functions of a loop are taken apart."""

_GROWING = ("dynamic_size", "resize_if_index_out_of_bounds")
_PLACED_OUTPUTS = ("_scoped_allocator", "_forward_from")

FILTER_OF = {
    "assertion": ("elide_assert_and_checknumerics", "it checks values"),
    "dynamic": ("", "the size of its result depends on values"),
    "inaccurate": ("", "XLA computes it with other results"),
    "slow": ("", "XLA computes it slowly"),
    "stack": ("cluster_stack_ops", "it works on a stack"),
    "stateful_random": ("cluster_stateful_rng_ops", "it draws random numbers with state"),
    "tensor_array": ("cluster_tensor_array_ops", "it works on a TensorArray"),
}
"""The field of DeviceRegistration that allows ops of a kind (`OpTraits.clustering`), and why they are refused otherwise.

Kinds without a field are compiled only where that is asked for.
"""


class _CalledFunctions:
    """The functions that an operation calls, and those that they call; each is looked at once.

    Attributes:
        known: Why a function is not compiled, and how many nodes it is with those that it calls, by the attr that names it.
        depth: How deep in calls the operation is that is looked at.
        num_nodes: How many nodes are added to a program, up to there: a function as often as it is called.
    """

    def __init__(self) -> None:
        self.known: dict[bytes, tuple[str, int]] = {}
        self.depth = self.num_nodes = 0

    def refusal(self) -> str:
        """Why so many nodes are not compiled; empty where they are few enough."""
        few = self.num_nodes <= _MOST_NODES
        return "" if few else f"it is {self.num_nodes} nodes with all that it calls"


class RecursiveCompilabilityChecker:
    """Tells whether XLA compiles an operation, with the functions that it calls.

    Args:
        registry: The kernels.
        registration: The compilation device, and which operations may be in clusters.
        takes_all: Whether whatever has a kernel may be compiled, since that was asked for.
    """

    def __init__(
        self, registry: XlaOpRegistry, registration: DeviceRegistration, *, takes_all: bool
    ) -> None:
        self._registry, self._registration, self._takes_all = registry, registration, takes_all
        self._types = registry.supported_types(registration.compilation_device_name)

    def _allows(self, field: str) -> bool:
        """Whether the operations may be compiled that a field of the registration is about."""
        return self._takes_all or bool(field and getattr(self._registration, field))

    def refusal(self, op: Operation) -> str:
        """Why an operation is not compiled; empty where it is."""
        called = _CalledFunctions()
        return self._refusal(op, called) or called.refusal()

    def _refusal(self, op: Operation, called: _CalledFunctions) -> str:
        depth = called.depth
        called.num_nodes += 1
        if op.type in STRUCTURAL_OPS or (depth and op.type in ("Placeholder", "Const")):
            return self._constant_refusal(op)
        attrs = op.message.attr
        if any(name in attrs for name in _PLACED_OUTPUTS):
            return "its output has a place in another array"
        if any(dtype.is_ref for dtype in (*op.input_types, *op.output_types)):
            return "it takes or gives a reference"
        why = self._kind_refusal(op) or self._resource_refusal(op, depth)
        if why or not functions_called(op):
            return why or self._kernel_refusal(op)
        return self._call_refusal(op, called)

    @staticmethod
    def _constant_refusal(op: Operation) -> str:
        is_text = op.type == "Const" and op.output_types[0] == DataType.DT_STRING
        return "XLA has no strings" if is_text else ""

    def _kind_refusal(self, op: Operation) -> str:
        op_type = op.type
        if op_type == "ControlTrigger":
            return "" if self._allows("cluster_control_trigger") else "it starts a loop's side work"
        if op_type in LOW_LEVEL_CONTROL_FLOW:
            return "it is control flow of TensorFlow 1"
        kind = op.traits.clustering
        if kind and not self._allows(FILTER_OF[kind][0]):
            return FILTER_OF[kind][1]
        if op_type in SIZE_INPUTS and _has_no_largest_size(op):
            return "its list has no largest size"
        if any(op.message.attr[name].b for name in _GROWING if name in op.message.attr):
            return "its list gets longer where it is written"
        has_variants = DataType.DT_VARIANT in (*op.input_types, *op.output_types)
        is_refused = has_variants and not self._allows("cluster_variant_ops")
        return "it takes or gives a variant" if is_refused else ""

    def _resource_refusal(self, op: Operation, depth: int) -> str:
        if DataType.DT_RESOURCE in op.output_types and not op.input_types:
            return "it makes a resource"
        is_free = self._allows("cluster_resource_variable_ops_unsafely")
        if is_free or DataType.DT_RESOURCE not in op.input_types:
            return ""
        if not depth:
            return "its list may come from outside" if _may_take_list_of_others(op) else ""
        # Of a call in a function, the operations of the function called tell.
        is_harmless = op.traits.passes_on or _works_on_list(op.traits) or bool(functions_called(op))
        return "" if is_harmless else "a function works on resources"

    def _call_refusal(self, op: Operation, called: _CalledFunctions) -> str:
        if called.depth >= _MAX_DEPTH:
            return "functions call each other too deeply"
        for function in functions_called(op):
            key = function.SerializeToString(deterministic=True)
            why, num_nodes = called.known.get(key) or self._look_at(op, function, called)
            called.known[key] = why, num_nodes
            called.num_nodes += num_nodes
            if why:
                return f"{function.name} is not compiled: {why}"
        return ""

    def _look_at(
        self, op: Operation, function: NameAttrList, called: _CalledFunctions
    ) -> tuple[str, int]:
        """Why a function that an operation calls is not compiled, and how many nodes it is."""
        try:
            body = instantiate_function(op.graph.function_library, function)
        except OpError as error:
            return f"it cannot be called: {error.message}", 0
        check_time("looking for clusters in", function.name)
        before, called.num_nodes = called.num_nodes, 0
        called.depth += 1
        why = self._body_refusal(body, called)
        called.depth -= 1
        num_nodes, called.num_nodes = called.num_nodes, before
        return why, num_nodes * (_TRACES_OF_LOOP if op.traits.calls == "while" else 1)

    def _body_refusal(self, body: FunctionBody, called: _CalledFunctions) -> str:
        for op in body.graph.get_operations():
            why = self._refusal(op, called)
            if why:
                return f"{op.name} ({op.type}): {why}"
        return ""

    def _kernel_refusal(self, op: Operation) -> str:
        if op.type == "NoOp":
            return ""
        if op.type == "Const":
            return self._constant_refusal(op)
        kernels = self._registry.kernels
        device_type = self._registration.compilation_device_name
        if kernel_def_if_available(device_type, op.node_def, registry=kernels) is None:
            return self._registry.rules.missing(op.type)
        rules = self._registry.registrations(op.type)[0]
        refused = rules.refused_type((*op.input_types, *op.output_types), self._types)
        return "" if refused is None else f"XLA computes nothing of type {refused.string} with it"


def functions_called(op: Operation) -> list[NameAttrList]:
    """The functions that an operation calls."""
    attrs = op.message.attr
    if op.type in op.graph.function_library:
        return [NameAttrList(name=op.type, attr=attrs)]
    if not op.traits.calls:
        return []
    found: list[NameAttrList] = []
    for attr in op.op_def.attr:
        value: AttrValue = attrs[attr.name]
        if attr.type == "func":
            found.append(value.func)
        elif attr.type == "list(func)":
            found += value.list.func
    return found


def _works_on_list(traits: OpTraits) -> bool:
    return traits.clustering in ("stack", "tensor_array")


def _may_take_list_of_others(op: Operation) -> bool:
    """Whether a handle of which nobody knows where it was made may be that of a TensorArray or a stack."""
    handles = [e for e in edges_of(op) if e[0].output_types[e[1]] == DataType.DT_RESOURCE]
    if all(is_list(*edge) for edge in handles):
        return False
    library = op.graph.function_library
    ops = library.ops_reached([op.message])
    return _works_on_list(op.traits) or any(map(_works_on_list, map(library.traits, ops)))


def _has_no_largest_size(op: Operation) -> bool:
    size = op.edges[2 * SIZE_INPUTS[op.type]]
    if size.type != "Const":
        return False
    value = constant_value(size.message)
    return value is None or bool((value < 0).any())
