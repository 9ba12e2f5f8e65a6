"""Variables of a While that nothing needs, once it is known what its arguments are.

The loop of a gradient takes shapes from lists, turn by turn. Where these are constants nothing needs the
lists any more: the loop gets a body that neither takes nor gives them, and so the loop that filled
them need not do so.

Source: TensorFlow core/common_runtime/lower_while_op.cc (pruning), core/grappler/optimizers/loop_optimizer.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph import Operation, Tensor, graph_to_function_def, instantiate_function
from opkernel.graph.core.edges import reached
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.edit.prune import prune_and_order
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.opdef import attr_from_python
from opkernel.optimization.optimize import OptimizedGraph, optimize_graph
from opkernel.proto import AttrValue, NameAttrList

_PASSES = (
    "arithmetic",
    "constant_folding",
    "identities",
    "shape_materialization",
    "shape_specialization",
)
"""The passes that remove shapes, and the nodes computed from shapes."""


def drop_variables(editor: GraphEditor, loop: Operation, facts: Sequence[TensorFacts]) -> None:
    """Have a StatelessWhile compute only the variables that are needed.

    Args:
        editor: the graph.
        loop: the operation.
        facts: what is known of its variables at every turn.
    """
    used = {index for index, tensor in enumerate(loop.outputs) if editor.consumers(tensor)}
    if loop in editor.preserved or len(used) == len(loop.outputs):
        return
    try:
        parts = {attr: _optimized(editor, loop, attr, facts) for attr in ("cond", "body")}
    except OpError:  # the step that runs the loop raises the error
        return
    kept = _kept(parts["cond"], parts["body"], used)
    if len(kept) < len(loop.outputs):
        _replace(editor, loop, kept, parts)


def _optimized(
    editor: GraphEditor, loop: Operation, attr: str, facts: Sequence[TensorFacts]
) -> OptimizedGraph:
    """The condition or the body, for arguments of which this is known."""
    function = loop.attr[attr].func
    body = instantiate_function(editor.graph.function_library, function)
    if len(body.inputs) != len(facts) or (attr == "body" and len(body.outputs) != len(facts)):
        raise InvalidArgumentError(f"{function.name!r} does not fit the variables of {loop.name!r}")
    return optimize_graph(
        body.graph,
        body.outputs,
        body.inputs,
        body.targets,
        passes=_PASSES,
        feed_facts=facts,
    )


def _kept(condition: OptimizedGraph, body: OptimizedGraph, used: set[int]) -> list[int]:
    """The variables that decide how often the loop turns, or what is used of its results."""
    deciding = _arguments_of(condition, condition.fetches)
    kept = reached([*used, *deciding], lambda index: _arguments_of(body, [body.fetches[index]]))
    return sorted(kept)


def _arguments_of(graph: OptimizedGraph, results: Sequence[Tensor]) -> list[int]:
    """The arguments that results, and what runs in any case, depend on."""
    reached = set(prune_and_order(results, graph.targets, ()))
    return [index for index, tensor in enumerate(graph.feeds) if tensor.op in reached]


def _replace(
    editor: GraphEditor, loop: Operation, kept: Sequence[int], parts: dict[str, OptimizedGraph]
) -> None:
    """Put a loop with these variables in the place of the loop."""
    attrs = editor.attrs(loop)
    for attr, part in parts.items():
        results = part.fetches if attr == "cond" else [part.fetches[index] for index in kept]
        attrs[attr] = _function(editor, loop, attr, part, kept, results)
    inputs = [loop.inputs[index] for index in kept]
    attrs["T"] = attr_from_python([tensor.dtype.base for tensor in inputs], "list(type)")
    shapes = attrs.get("output_shapes", AttrValue()).list.shape
    if shapes:
        chosen = AttrValue()
        chosen.list.shape.extend([shapes[index] for index in kept])
        attrs["output_shapes"] = chosen
    controls = loop.control_inputs
    smaller = editor.add(loop.type, inputs, f"{loop.name}/needed", attrs, loop.device, controls)
    for index, output in zip(kept, smaller.outputs, strict=True):
        editor.redirect(loop.outputs[index], output)
    editor.note(loop, f"has {len(loop.outputs) - len(kept)} variables that nothing needs")


def _function(
    editor: GraphEditor,
    loop: Operation,
    attr: str,
    part: OptimizedGraph,
    kept: Sequence[int],
    results: Sequence[Tensor],
) -> AttrValue:
    """A function of some arguments of the condition or the body; what names it."""
    name = loop.attr[attr].func.name
    arguments = [part.feeds[index] for index in kept]
    given = {tensor.op for tensor in part.feeds}
    needed = prune_and_order(results, part.targets, ())
    function = graph_to_function_def(
        part.graph,
        f"{name}_needed",
        arguments,
        results,
        body=[op for op in needed if op not in given],
        append_hash_to_fn_name=True,
    )
    library = editor.graph.function_library
    for added in part.graph.function_library.keys() - library.keys():
        library.add_function(part.graph.function_library[added])
    library.add_function(function)
    return AttrValue(func=NameAttrList(name=function.signature.name))
