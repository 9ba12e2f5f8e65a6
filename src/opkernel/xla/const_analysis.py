"""Which arguments of a function must be known when XLA compiles it.

A kernel that needs the value of an input asks for it, and for all that this value is computed from, but for what only
shapes matter of.

Source: BackwardsConstAnalysis in TensorFlow compiler/tf2xla/const_analysis.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

from opkernel.graph import FunctionBody, Operation, instantiate_function
from opkernel.graph.edit.prune import prune_and_order
from opkernel.proto import NameAttrList
from opkernel.xla.op_registry import XlaOpRegistry

__all__ = ["backwards_const_analysis", "must_be_constant"]


def backwards_const_analysis(body: FunctionBody, registry: XlaOpRegistry) -> frozenset[int]:
    """The arguments of a function whose values the compiler must know.

    Raises:
        OpError: a function that it calls is wrong.
    """
    order = prune_and_order(body.outputs, body.targets, body.inputs)
    known = must_be_constant([*body.arg_nodes, *order], registry)
    return frozenset(index for index, arg in enumerate(body.arg_nodes) if arg in known)


def must_be_constant(order: Sequence[Operation], registry: XlaOpRegistry) -> set[Operation]:
    """The operations whose outputs the compiler must know; `order` has inputs before consumers."""
    found: set[Operation] = set()
    for op in reversed(order):
        if op in found:
            if not registry.is_metadata_op(op.type):
                found.update(op.edges[::2])
        else:
            found.update(op.edges[2 * index] for index in _constant_inputs(op, registry))
    return found


def _constant_inputs(op: Operation, registry: XlaOpRegistry) -> list[int]:
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
    bodies = [instantiate_function(library, one) for one in functions]
    found = set().union(*(backwards_const_analysis(body, registry) for body in bodies))
    if calls == "while":  # what changes from turn to turn is known in none
        return sorted(i for i in found if _passes_on(bodies[0], i))
    return sorted(i + op.traits.chooses_function for i in found)


def _passes_on(body: FunctionBody, index: int) -> bool:
    """Whether a function gives an argument back as it is."""
    op = body.outputs[index].op
    while op.type == "Identity":
        op = op.edges[0]
    return op is body.arg_nodes[index]
