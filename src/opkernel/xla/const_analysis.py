"""Which arguments of a function must be known when XLA compiles it.

A kernel that needs the value of an input asks for it, and for all that this value is computed from, but for what only
shapes matter of.

Source: BackwardsConstAnalysis in TensorFlow compiler/tf2xla/const_analysis.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

from opkernel.graph import (
    FunctionBody,
    FunctionLibraryDefinition,
    Operation,
    instantiate_function,
)
from opkernel.graph.edit.prune import prune_and_order
from opkernel.proto import NameAttrList
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
    attrs, library = op.message.attr, op.graph.function_library
    calls = "function" if op.type in library else op.traits.calls
    if not calls:
        names = registry.compile_time_constant_input_arg_names(op.type)
        return registry.compile_time_constant_inputs(op.node_def, op.op_def) if names else []
    if op.type in library:
        functions = [NameAttrList(name=op.type, attr=attrs)]
    elif calls == "case":
        functions = [*attrs["branches"].list.func]
    else:
        names_of = {
            "function": ["f"],
            "if": ["then_branch", "else_branch"],
            "while": ["body", "cond"],
        }
        functions = [attrs[name].func for name in names_of.get(calls, ())]
    found = set[int]().union(
        *(_constant_arguments(library, one, registry, called) for one in functions)
    )
    if calls == "while":  # what changes from turn to turn is known in none
        body = instantiate_function(library, functions[0])
        return sorted(i for i in found if _passes_on(body, i))
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


def _passes_on(body: FunctionBody, index: int) -> bool:
    """Whether a function gives an argument back as it is."""
    op = body.outputs[index].op
    while op.type == "Identity":
        op = op.edges[0]
    return op is body.arg_nodes[index]
