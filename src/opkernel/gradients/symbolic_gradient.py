"""SymbolicGradient: the gradient of a function as a function, made of its body.

It takes the arguments of the function and the gradients of its results, and gives the gradients of
the arguments; it computes the function again on the way. A function that the library records as
the gradient of another is used as it stands.

Functions have fewer gradients than graphs have, as in TensorFlow: its C++ knows the gradients of few ops
(`OpTraits.function_gradient`), its Python many more. Gradients that users register are known in both.

Source: TensorFlow core/common_runtime/gradients.cc, core/common_runtime/function.cc, core/ops/math_grad.cc, array_grad.cc,
nn_grad.cc, functional_grad.cc, random_ops.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.gradients.backpropagation import Rules, backpropagate
from opkernel.gradients.frames_and_contexts import Unit
from opkernel.gradients.gradient_nodes import as_dense, nodes, zeros_like
from opkernel.gradients.registry import (
    GradientFunction,
    Gradients,
    is_of_catalogue,
    look_up_gradient,
    not_defined,
)
from opkernel.graph import (
    FunctionBody,
    FunctionLibraryDefinition,
    Graph,
    Operation,
    Tensor,
    instantiate_function,
)
from opkernel.graph.functions.function_library import GRADIENT_OP
from opkernel.opdef import (
    add_defaults_to_node_def,
    global_op_registry,
    in_out_types_for_node,
    name_ranges_for_node,
)
from opkernel.proto import FunctionDef, NameAttrList, NodeDef, OpDef
from opkernel.types import DataType


def _cast_gradient(op: Operation, grad: Tensor) -> Gradients:
    source = op.inputs[0].dtype
    return None if source.is_bool else nodes.Cast(grad, DstT=source)


UNLIKE_GRAPHS: Mapping[str, GradientFunction] = {
    "Acosh": lambda op, grad: nodes.Mul(grad, nodes.Sinh(op.outputs[0])),
    "Asinh": lambda op, grad: nodes.Mul(grad, nodes.Cosh(op.outputs[0])),
    "Cast": _cast_gradient,
}
"""Gradients of TensorFlow's C++ unlike its Python's: it multiplies where the derivatives of the
inverses of sinh and cosh are quotients, and casts to integers, too."""


def gradient_in_function(op_type: str) -> GradientFunction | None:
    """The gradient function of an op inside functions; None for an op whose gradient is zero.

    Raises:
        NotFoundError: the op has none.
    """
    known = global_op_registry().traits(op_type).function_gradient
    if known == "none":
        return None
    if not known and is_of_catalogue(op_type):
        raise not_defined(op_type)
    return UNLIKE_GRAPHS.get(op_type) or look_up_gradient(op_type)


def symbolic_gradient_body(
    library: FunctionLibraryDefinition, reference: NameAttrList
) -> FunctionBody:
    """The body of the function that a SymbolicGradient node calls.

    Args:
        library: the functions.
        reference: the attrs of the node: `f`, and the types `Tin` and `Tout`.

    Raises:
        NotFoundError: there is no function `f`, or an op in it has no gradient in functions.
        InvalidArgumentError: the function does not take tensors of these types, or does not give as many.
        InternalError: it gives tensors of other types.
    """
    function = reference.attr["f"].func
    gradient = library.find_gradient(function.name)
    tin, tout = (
        tuple([DataType(number) for number in reference.attr[name].list.type])
        for name in ("Tin", "Tout")
    )
    if gradient:
        body = instantiate_function(library, NameAttrList(name=gradient, attr=function.attr))
    else:
        forward = _forward_body(library, function)
        number = len(forward.arg_types)  # whatever the node says
        types = [*tout[:number], *[None] * (number - len(tout))]
        body = _derived(forward, types)
    if (body.arg_types, body.ret_types) != (tin, tout):
        is_one_type = body.arg_types == tin and len(body.ret_types) == len(tout)
        error = InternalError if is_one_type else InvalidArgumentError  # as TensorFlow
        raise error(
            f"The gradient of '{function.name}' takes {_names(body.arg_types)} and gives "
            f"{_names(body.ret_types)}; the node has Tin {_names(tin)} and Tout {_names(tout)}",
            op=GRADIENT_OP,
        )
    return body


def _forward_body(library: FunctionLibraryDefinition, function: NameAttrList) -> FunctionBody:
    if function.name in library:
        return instantiate_function(library, function)
    if gradient_in_function(function.name) is None:
        raise InvalidArgumentError(f"No gradient is defined for {function.name}", op=function.name)
    return instantiate_function(library, _function_of_op(library, function))


def _function_of_op(library: FunctionLibraryDefinition, reference: NameAttrList) -> FunctionDef:
    """An op with attrs as a function."""
    op_def = library.look_up_op_def(reference.name)
    node = NodeDef(name="node", op=reference.name, attr=reference.attr)
    add_defaults_to_node_def(node, op_def)
    types = in_out_types_for_node(node, op_def)
    arguments, results = (
        [OpDef.ArgDef(name=f"{letter}{i}", type=dtype) for i, dtype in enumerate(dtypes)]
        for letter, dtypes in zip("xy", types, strict=True)
    )
    node.input.extend([argument.name for argument in arguments])
    signature = OpDef(name=reference.name, input_arg=arguments, output_arg=results)
    outputs = [
        f"node:{label}:{offset}"
        for label, (start, stop) in name_ranges_for_node(node, op_def)[1].items()
        for offset in range(stop - start)
    ]
    returned = {arg.name: output for arg, output in zip(results, outputs, strict=True)}
    return FunctionDef(signature=signature, node_def=[node], ret=returned)


def _derived(forward: FunctionBody, tout: Sequence[DataType | None]) -> FunctionBody:
    """The gradient of a function from its body, to which the nodes are added."""
    graph, xs = forward.graph, list(forward.inputs)
    number = len(xs)
    arguments = [
        graph.create_op("_Arg", name=f"grad_{i}", attrs={"T": dtype, "index": number + i})
        for i, dtype in enumerate(forward.ret_types)
    ]
    grad_ys = [op.outputs[0] for op in arguments]
    with graph.as_default():
        found = backpropagate(forward.outputs, xs, grad_ys, rules=_rules(graph))
        results = [
            zeros_like(x, dtype) if gradient is None else as_dense(gradient)
            for x, gradient, dtype in zip(xs, found, tout, strict=True)
        ]
        returns = [
            graph.create_op("_Retval", [tensor], attrs={"index": i}, name=f"grad_{i}_RetVal")
            for i, tensor in enumerate(results)
        ]
    return FunctionBody(
        function_def=FunctionDef(signature=OpDef(name=f"{GRADIENT_OP}[{forward.name}]")),
        attrs=forward.attrs,
        graph=graph,
        arg_types=(*forward.arg_types, *forward.ret_types),
        ret_types=tuple([tensor.dtype for tensor in results]),
        arg_nodes=(*forward.arg_nodes, *arguments),
        ret_nodes=tuple(returns),
        control_ret_nodes=(),
    )


def _rules(graph: Graph) -> Rules:
    """Gradients pass tensors of all types, and through calls of functions as nodes like this one."""
    library = graph.function_library

    def gradient_function(op: Unit) -> GradientFunction | None:
        if op.type in library:
            return _call_gradient
        if op.type == GRADIENT_OP:
            raise InvalidArgumentError("Can't take gradient of SymbolicGradient", node=op.name)
        return gradient_in_function(op.type)

    return Rules(gradient_function, flows=lambda tensor: True, fills=True)


def _call_gradient(op: Operation, *grads: Tensor) -> Gradients:
    """The gradients of the arguments of a function that a node calls by its name."""
    function = NameAttrList(name=op.type, attr=op.node_def.attr)
    types = [tensor.dtype.base for tensor in op.inputs]
    return nodes.SymbolicGradient([*op.inputs, *grads], Tout=types, f=function)


def _names(types: Sequence[DataType]) -> str:
    return f"({', '.join(dtype.string for dtype in types)})"
