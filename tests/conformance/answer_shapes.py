"""Answers about shape inference: methods of InferenceContext, and shape functions of ops."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf import text_format

import opkernel  # noqa: F401  # connects the global registries with the catalogue of ops
from opkernel.errors import NotFoundError, OpError
from opkernel.opdef import (
    GRAPH_DEF_VERSION,
    DimensionHandle,
    InferenceContext,
    OpRegistrationData,
    ShapeHandle,
    add_defaults_to_node_def,
    global_op_registry,
    in_out_types_for_node,
    run_shape_fn,
    validate_node_def,
)
from opkernel.opdef.common_shapes import (
    broadcast_binary_op_output_shape,
    get_windowed_output_size_from_dims,
)
from opkernel.opdef.common_shapes.windows import Padding, get_windowed_output_size
from opkernel.proto import AttrValue, NodeDef, OpDef, TensorProto, TensorShapeProto
from opkernel.types import DataType, tensor_from_proto

OK = {"ok": True}
UNSUPPORTED = {"unsupported": True}


def refusal(error: OpError) -> dict[str, Any]:
    """The status object of an error."""
    return {"ok": False, "error_code": error.code.name, "error_text": str(error)}


def parse_shape(text: str) -> list[int | None] | None:
    """The shape written `[2,?]`, or `?`."""
    if text == "?":
        return None
    sizes = text.strip("[]")
    return [None if size == "?" else int(size) for size in sizes.split(",")] if sizes else []


def tensors_by_index(request: dict[str, Any]) -> list[Any]:
    texts = request.get("const_inputs", {})
    return [
        tensor_from_proto(text_format.Parse(texts[str(i)], TensorProto()))
        if str(i) in texts
        else None
        for i in range(len(request["inputs"]))
    ]


def partial_shapes_by_index(request: dict[str, Any]) -> list[ShapeHandle | None]:
    texts = request.get("inputs_as_shapes", {})
    return [
        shape_handle(texts[str(i)]) if str(i) in texts else None
        for i in range(len(request["inputs"]))
    ]


def shape_handle(text: str) -> ShapeHandle:
    sizes = parse_shape(text)
    return ShapeHandle() if sizes is None else InferenceContext.make_shape(sizes)


# Calls of the methods of InferenceContext


def ctx_ops(request: dict[str, Any]) -> Any:
    """The result of each call on one context."""
    op_def = OpDef(name="Test")
    for i in range(len(request["inputs"])):
        op_def.input_arg.add(name=f"in{i}", type=DataType.DT_FLOAT)
    context = InferenceContext(
        op_def,
        NodeDef(name="test", op="Test"),
        [shape_handle(text) for text in request["inputs"]],
        tensors_by_index(request),
        partial_shapes_by_index(request),
    )
    calls = Calls(context)
    return {"results": [calls.answer(call) for call in request["calls"]]}


class Calls:
    """Calls on one context, and the handles they returned by name."""

    def __init__(self, context: InferenceContext) -> None:
        self.context = context
        self.handles: dict[str, ShapeHandle | DimensionHandle] = {
            f"in{i}": context.input(i) for i in range(context.num_inputs())
        }

    def answer(self, call: dict[str, Any]) -> dict[str, Any]:
        """Status and result of a call; the result is kept under its name."""
        args = [self._argument(call["fn"], arg) for arg in call["args"]]
        special = getattr(self, "_" + snake_case(call["fn"]), None)
        try:
            result = special(*args) if special else self._method(call["fn"])(*args)
        except OpError as error:
            return {"status": refusal(error), "out_is_unset": True}
        name = call.get("as", "_")
        answer: dict[str, Any] = {"status": OK}
        if call["fn"] == "MergePrefix":
            result, prefix = result
            answer |= {"prefix": repr(prefix), "prefix_same": self._same(prefix)}
            self.handles[f"{name}_prefix"] = prefix
        answer |= self._describe(result)
        if isinstance(result, ShapeHandle | DimensionHandle):
            self.handles[name] = result
        return answer

    def _method(self, fn: str) -> Callable[..., Any]:
        name = {"MergeDim": "merge"}.get(fn, snake_case(fn))
        method: Callable[..., Any] = getattr(self.context, name)
        return method

    def _argument(self, fn: str, arg: Any) -> Any:
        if not isinstance(arg, str):
            return arg
        if arg == "?":
            return DimensionHandle()
        if fn == "MakeShapeFromShapeProto":
            return text_format.Parse(arg, TensorShapeProto())
        if arg in Padding.__members__:
            return Padding(arg)
        return self._named_handles()[arg]

    def _named_handles(self) -> dict[str, ShapeHandle | DimensionHandle]:
        """All handles by name, the dimensions of shapes as `name.index`."""
        named = dict(self.handles)
        for name, handle in self.handles.items():
            if isinstance(handle, ShapeHandle):
                named.update({f"{name}.{i}": dim for i, dim in enumerate(handle.dims or ())})
        return named

    def _same(self, handle: object) -> list[str]:
        return sorted(name for name, known in self._named_handles().items() if known is handle)

    def _describe(self, result: Any) -> dict[str, Any]:
        if isinstance(result, DimensionHandle):
            return {"dim": repr(result), "same": self._same(result)}
        if isinstance(result, ShapeHandle):
            dims_same = [self._same(dim) for dim in result.dims or ()]
            return {"shape": repr(result), "same": self._same(result), "dims_same": dims_same}
        if isinstance(result, TensorShapeProto):
            return {"value": text_format.MessageToString(result, as_one_line=True)}
        return dict(result) if isinstance(result, dict) else {"value": result}

    # Calls whose arguments or results are not those of a method

    def _make_shape(self, *dims: Any) -> ShapeHandle:
        return self.context.make_shape(dims)

    def _replace_dim(self, shape: ShapeHandle, index: int, dim: Any) -> ShapeHandle:
        return self.context.replace_dim(shape, index, dim)

    def _relax_input(self, index: int, shape: ShapeHandle) -> dict[str, Any]:
        changed = self.context.relax_input(index, shape)
        return {"value": changed, "input": repr(self.context.input(index))}

    def _merge_input(self, index: int, shape: ShapeHandle) -> dict[str, Any]:
        merged = self.context.merge_input(index, shape)
        return {"value": merged, "input": repr(self.context.input(index))}

    def _get_windowed_output_size(self, *args: Any) -> dict[str, Any]:
        size, padding = get_windowed_output_size(*args)
        return {"output_size": size, "padding": padding}

    def _get_windowed_output_size_from_dims(self, *args: Any) -> DimensionHandle:
        return get_windowed_output_size_from_dims(self.context, *args)

    def _broadcast_binary_op_output_shape_fn_helper(self, *args: Any) -> ShapeHandle:
        return broadcast_binary_op_output_shape(self.context, *args)


def snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


# Shape functions of ops


def shape_infer(request: dict[str, Any]) -> Any:
    """What the shape function of an op makes of its inputs, and what it asked for."""
    try:
        registration = global_op_registry().look_up(request["op"])
    except NotFoundError as error:
        return {"lookup": refusal(error)}
    if registration.shape_inference_fn is None:
        return UNSUPPORTED
    try:
        node_def = test_node(request, registration.op_def)
        validate_node_def(node_def, registration.op_def)
        types = in_out_types_for_node(node_def, registration.op_def)
        context = context_for(request, registration, node_def)
    except OpError as error:
        return {"node": refusal(error)}
    input_types, output_types = ([dtype.string for dtype in side] for side in types)
    answer: dict[str, Any] = {"input_types": input_types, "output_types": output_types}
    try:
        run_shape_fn(registration, context)
    except OpError as error:
        return {**answer, "status": refusal(error), **requested(context)}
    return {**answer, "status": OK, **requested(context), **outputs(context)}


def test_node(request: dict[str, Any], op_def: OpDef) -> NodeDef:
    node_def = NodeDef(name="test", op=request["op"])
    node_def.input.extend([f"in{i}" for i in range(len(request["inputs"]))])
    for name, text in request.get("attrs", {}).items():
        node_def.attr[name].CopyFrom(text_format.Parse(text, AttrValue()))
    add_defaults_to_node_def(node_def, op_def)
    return node_def


def context_for(
    request: dict[str, Any], registration: OpRegistrationData, node_def: NodeDef
) -> InferenceContext:
    held: dict[str, Sequence[Sequence[str]]] = request.get("handles", {})
    return InferenceContext(
        registration.op_def,
        node_def,
        [shape_handle(text) for text in request["inputs"]],
        tensors_by_index(request),
        partial_shapes_by_index(request),
        [
            [(parse_shape(shape), DataType.from_string(dtype)) for shape, dtype in held[str(i)]]
            if str(i) in held
            else None
            for i in range(len(request["inputs"]))
        ],
        request.get("graph_def_version", GRAPH_DEF_VERSION),
    )


def requested(context: InferenceContext) -> dict[str, Any]:
    """The inputs whose values the shape function asked for."""
    inputs = range(context.num_inputs())
    as_shape = context.requested_input_tensor_as_partial_shape
    return {
        "requested_tensors": [i for i in inputs if context.requested_input_tensor(i)],
        "requested_as_shape": [i for i in inputs if as_shape(i)],
    }


def outputs(context: InferenceContext) -> dict[str, Any]:
    """The shapes of the outputs, where their handles came from, and what they hold."""
    indices = range(context.num_outputs())
    shapes = [context.output(i) for i in indices]
    held = [context.output_handle_shapes_and_types(i) for i in indices]
    answer: dict[str, Any] = {
        "shapes": [repr(shape) for shape in shapes],
        "origins": [origin(context, shape) for shape in shapes],
    }
    if any(held):
        answer["handle_outputs"] = [
            None if pairs is None else [[repr(p.shape), p.dtype.string] for p in pairs]
            for pairs in held
        ]
    return answer


def origin(context: InferenceContext, shape: ShapeHandle | None) -> dict[str, Any]:
    """Which input shape a shape is, and for each of its dimensions which input dimensions."""
    assert shape is not None
    inputs = [context.input(i) for i in range(context.num_inputs())]
    dims = [
        "|".join(
            f"d{i}_{j}"
            for i, input_shape in enumerate(inputs)
            for j, input_dim in enumerate(input_shape.dims or ())
            if input_dim is dim
        )
        for dim in shape.dims or ()
    ]
    whole = "|".join(f"in{i}" for i, input_shape in enumerate(inputs) if input_shape is shape)
    return {"dims": dims, "whole": whole}
