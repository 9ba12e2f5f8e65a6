"""Which arguments of a function must be known when XLA compiles it.

A kernel that needs the value of an input asks for it, and for all that this value is computed from, but for what only
shapes matter of.

Source: BackwardsConstAnalysis in TensorFlow compiler/tf2xla/const_analysis.cc.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from opkernel.graph import FunctionBody, FunctionLibraryDefinition, Operation, instantiate_function
from opkernel.graph.edit.subgraph import prune_and_order
from opkernel.proto import NameAttrList
from opkernel.xla.compilability import functions_called
from opkernel.xla.op_registry import XlaOpRegistry

_Called = dict[bytes, frozenset[int]]
"""What is known of functions that are called, by the attr that names them: each is looked at once."""


def backwards_const_analysis(
    body: FunctionBody, registry: XlaOpRegistry, called: _Called | None = None
) -> frozenset[int]:
    """The arguments of a function whose values the compiler must know.

    Raises:
        OpError: a function that it calls is wrong.
    """
    order = prune_and_order(body.outputs, body.targets, body.inputs)
    known = must_be_constant([*body.arg_nodes, *order], registry, called)
    return frozenset(index for index, arg in enumerate(body.arg_nodes) if arg in known)


def must_be_constant(
    order: Sequence[Operation], registry: XlaOpRegistry, called: _Called | None = None
) -> set[Operation]:
    """The operations whose outputs the compiler must know; `order` has inputs before consumers."""
    called = {} if called is None else called
    found: set[Operation] = set()
    for op in reversed(order):
        if op in found:
            if not registry.is_metadata_op(op.type):
                found.update(op.edges[::2])
        else:
            found.update(op.edges[2 * index] for index in _constant_inputs(op, registry, called))
    return found


def _constant_inputs(op: Operation, registry: XlaOpRegistry, called: _Called) -> list[int]:
    """The inputs whose values the kernel of an operation must know."""
    library = op.graph.function_library
    calls = "function" if op.type in library else op.traits.calls
    if not calls:
        names = registry.compile_time_constant_input_arg_names(op.type)
        return registry.compile_time_constant_inputs(op.node_def, op.op_def) if names else []
    found = set[int]().union(
        *(_constant_arguments(library, one, registry, called) for one in functions_called(op))
    )
    if calls == "while":  # what changes from turn to turn is known in none
        body = instantiate_function(library, op.message.attr["body"].func)
        return sorted(found & passed_on(body))
    return sorted(i + op.traits.chooses_function for i in found)


def _constant_arguments(
    library: FunctionLibraryDefinition,
    function: NameAttrList,
    registry: XlaOpRegistry,
    called: _Called,
) -> frozenset[int]:
    """The arguments of a called function whose values the compiler must know."""
    key = function.SerializeToString(deterministic=True)
    if key not in called:
        body = instantiate_function(library, function)
        called[key] = backwards_const_analysis(body, registry, called)
    return called[key]


def passed_on(
    body: FunctionBody, through: Container[str] = frozenset({"Identity"})
) -> frozenset[int]:
    """The arguments that the body of a loop gives back as they are, through ops of some types."""

    def source(op: Operation) -> Operation:
        while op.type in through:
            op = op.edges[0]
        return op

    pairs = enumerate(zip(body.arg_nodes, body.outputs, strict=True))
    return frozenset(index for index, (arg, output) in pairs if source(output.op) is arg)
