"""Which operations XLA compiles, and which of them it is given without having been asked.

Source: RecursiveCompilabilityChecker in TensorFlow compiler/jit/compilability_check_util.cc.
"""

from __future__ import annotations

from opkernel.device.budget import check_time
from opkernel.errors import OpError
from opkernel.graph import FunctionBody, Operation, instantiate_function
from opkernel.graph.core.control_flow_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.core.edges import edges_of
from opkernel.graph.core.structural_ops import STRUCTURAL_OPS
from opkernel.graph.inference.constant_values import constant_value
from opkernel.kernel.registry.lookup import kernel_def_if_available
from opkernel.opdef import OpTraits
from opkernel.optimization.clusters.bounded_lists import SIZE_INPUTS
from opkernel.optimization.clusters.list_ties import is_list
from opkernel.proto import AttrValue, NameAttrList
from opkernel.records import dataclass
from opkernel.registrations import no_rule
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
    "assertion": ("assert_and_checknumerics", "it checks values"),
    "dynamic": ("dynamic_ops", "the size of its result depends on values"),
    "inaccurate": ("inaccurate_ops", "XLA computes it with other results"),
    "slow": ("slow_ops", "XLA computes it slowly"),
    "stack": ("stack_ops", "it works on a stack"),
    "stateful_random": ("stateful_rng_ops", "it draws random numbers with state"),
    "tensor_array": ("tensor_array_ops", "it works on a TensorArray"),
}
"""The field of the filter that allows ops of a kind (`OpTraits.clustering`), and why they are refused otherwise."""


@dataclass(frozen=True)
class OperationFilter:
    """Which operations may be in clusters, of those that XLA compiles.

    Attributes:
        resource_ops_in_called_functions: Operations on resources in functions, where the order of reads and
            assignments is hard to follow.
        stack_ops, tensor_array_ops, variant_ops, stateful_rng_ops, control_trigger: Operations of these kinds.
        assert_and_checknumerics: Assertions, which a program does not check.
        dynamic_ops: Operations whose results have sizes that depend on values: compiled where these are known.
        slow_ops, inaccurate_ops: Operations that XLA computes slowly, or with other results.
    """

    resource_ops_in_called_functions: bool = False
    stack_ops: bool = False
    tensor_array_ops: bool = False
    variant_ops: bool = False
    stateful_rng_ops: bool = False
    control_trigger: bool = False
    assert_and_checknumerics: bool = False
    dynamic_ops: bool = False
    slow_ops: bool = False
    inaccurate_ops: bool = False

    @classmethod
    def of(cls, registration: DeviceRegistration) -> OperationFilter:
        """The filter for operations on the devices of a type."""
        return cls(
            registration.cluster_resource_variable_ops_unsafely,
            registration.cluster_stack_ops,
            registration.cluster_tensor_array_ops,
            registration.cluster_variant_ops,
            registration.cluster_stateful_rng_ops,
            registration.cluster_control_trigger,
            registration.elide_assert_and_checknumerics,
        )

    @classmethod
    def everything(cls) -> OperationFilter:
        """The filter for what has to be compiled."""
        return cls(*([True] * 10))


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
        return (
            ""
            if self.num_nodes <= _MOST_NODES
            else f"it is {self.num_nodes} nodes with all that it calls"
        )


class RecursiveCompilabilityChecker:
    """Tells whether XLA compiles an operation, with the functions that it calls.

    Args:
        registry: The kernels.
        device_type: The compilation device.
        allowed: Which operations may be compiled.
    """

    def __init__(self, registry: XlaOpRegistry, device_type: str, allowed: OperationFilter) -> None:
        self._registry, self._device_type, self._allowed = registry, device_type, allowed
        self._types = registry.supported_types(device_type)

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
        return (
            self._kind_refusal(op)
            or self._resource_refusal(op, depth)
            or (self._call_refusal(op, called) if _functions(op) else self._kernel_refusal(op))
        )

    @staticmethod
    def _constant_refusal(op: Operation) -> str:
        is_text = op.type == "Const" and op.output_types[0] == DataType.DT_STRING
        return "XLA has no strings" if is_text else ""

    def _kind_refusal(self, op: Operation) -> str:
        allowed, op_type = self._allowed, op.type
        if op_type == "ControlTrigger":
            return "" if allowed.control_trigger else "it starts a loop's side work"
        if op_type in LOW_LEVEL_CONTROL_FLOW:
            return "it is control flow of TensorFlow 1"
        kind = op.traits.clustering
        if kind and not getattr(allowed, FILTER_OF[kind][0]):
            return FILTER_OF[kind][1]
        if op_type in SIZE_INPUTS and _has_no_largest_size(op):
            return "its list has no largest size"
        if any(op.message.attr[name].b for name in _GROWING if name in op.message.attr):
            return "its list gets longer where it is written"
        has_variants = DataType.DT_VARIANT in (*op.input_types, *op.output_types)
        return "it takes or gives a variant" if has_variants and not allowed.variant_ops else ""

    def _resource_refusal(self, op: Operation, depth: int) -> str:
        if DataType.DT_RESOURCE in op.output_types and not op.input_types:
            return "it makes a resource"
        if self._allowed.resource_ops_in_called_functions:
            return ""
        if DataType.DT_RESOURCE not in op.input_types:
            return ""
        if not depth:
            return "its list may come from outside" if _may_take_list_of_others(op) else ""
        # Of a call in a function, the operations of the function called tell.
        is_harmless = op.traits.passes_on or _works_on_list(op.traits) or bool(_functions(op))
        return "" if is_harmless else "a function works on resources"

    def _call_refusal(self, op: Operation, called: _CalledFunctions) -> str:
        if called.depth >= _MAX_DEPTH:
            return "functions call each other too deeply"
        for function in _functions(op):
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
        if kernel_def_if_available(self._device_type, op.node_def, registry=kernels) is None:
            return no_rule("XLA", op.type)
        rules = self._registry.registrations(op.type)[0]
        refused = rules.refused_type((*op.input_types, *op.output_types), self._types)
        return "" if refused is None else f"XLA computes nothing of type {refused.string} with it"


def _functions(op: Operation) -> list[NameAttrList]:
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
    called = library.reachable_definitions([op.message]).values()
    nodes = {node.op for function in called for node in function.node_def}
    return _works_on_list(op.traits) or any(map(_works_on_list, map(library.traits, nodes)))


def _has_no_largest_size(op: Operation) -> bool:
    size = op.edges[2 * SIZE_INPUTS[op.type]]
    if size.type != "Const":
        return False
    value = constant_value(size.message)
    return value is None or bool((value < 0).any())
