"""The full types of one node: the types that its op declares, with the node's attrs filled in.

Source: TensorFlow core/framework/full_type_util.cc, core/graph/graph.cc (AddNode).
"""

from collections.abc import Mapping

from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.opdef.core.attr_value_check import with_context
from opkernel.opdef.core.op_def_builder import OpRegistrationData
from opkernel.opdef.full_type.relations import full_type_string, is_legacy_variant
from opkernel.opdef.full_type.type_id import FullTypeId, map_dtype_to_tensor
from opkernel.opdef.text.summary import format_node_def_for_error
from opkernel.proto import AttrValue, FullTypeDef, NodeDef, OpDef


def full_type_of_node(node_def: NodeDef, registration: OpRegistrationData) -> FullTypeDef | None:
    """The full type of a node by itself: the type that it carries, or the declaration of its op.

    Returns:
        A TFT_PRODUCT of one type for each output argument; None where nothing is declared.

    Raises:
        InvalidArgumentError: the op's types do not fit the attrs.
    """
    if node_def.HasField("experimental_type"):
        return node_def.experimental_type
    if not _declares_types(registration):
        return None
    try:
        return specialize_type(node_def, registration.op_def)
    except OpError as error:
        message = f"type error: {error.message}"
        raise InvalidArgumentError(message, node=node_def.name, op=node_def.op) from error


def _declares_types(registration: OpRegistrationData) -> bool:
    if registration.is_function_op:
        return False
    outputs = registration.op_def.output_arg
    return registration.type_constructor is not None or any(
        output.HasField("experimental_full_type") for output in outputs
    )


def specialize_type(node_def: NodeDef, op_def: OpDef) -> FullTypeDef:
    """A TFT_PRODUCT of the types that an op declares for its outputs, for one node.

    In them a TFT_VAR becomes the type in the attr it names, and a TFT_FOR_EACH one copy of its
    template for each type in a list. A container of variants that tell nothing loses its
    arguments. Attrs that the node leaves out count with their defaults.

    Raises:
        InvalidArgumentError: a declared type is malformed or names an attr that is missing.
        UnimplementedError: it names an attr that holds no type, or no list of types.
    """
    attrs = {
        attr.name: attr.default_value for attr in op_def.attr if attr.HasField("default_value")
    }
    attrs.update(node_def.attr)
    product = FullTypeDef(type_id=FullTypeId.TFT_PRODUCT)
    for output in op_def.output_arg:
        declared = output.experimental_full_type
        try:
            product.args.append(_substitute(attrs, declared))
        except OpError as error:
            context = (
                f"while expanding vars of {full_type_string(declared)} "
                f"from {format_node_def_for_error(node_def)}"
            )
            raise with_context(error, context) from None
    return product


def _substitute(attrs: Mapping[str, AttrValue], declared: FullTypeDef) -> FullTypeDef:
    if declared.type_id == FullTypeId.TFT_VAR:
        return _substitute_var(attrs, declared)
    if declared.type_id == FullTypeId.TFT_FOR_EACH:
        return _substitute_for_each(attrs, declared)
    result = FullTypeDef(type_id=declared.type_id)
    if declared.HasField("s"):
        result.s = declared.s
    for arg in declared.args:
        result.args.append(_substitute(attrs, arg))
        if is_legacy_variant(result.args[-1]):
            del result.args[:]
            break
    return result


def _substitute_var(attrs: Mapping[str, AttrValue], var: FullTypeDef) -> FullTypeDef:
    if var.args:
        raise InvalidArgumentError(
            f"Unexpected Var type, expected args_size 0, found {len(var.args)}"
        )
    types, is_list = _types_of(attrs, var.s)
    if is_list and len(types) != 1:
        raise UnimplementedError(f"lists or other than one type element: attr '{var.s}'")
    return FullTypeDef(type_id=map_dtype_to_tensor(types[0]))


def _substitute_for_each(attrs: Mapping[str, AttrValue], for_each: FullTypeDef) -> FullTypeDef:
    if len(for_each.args) != 3:
        raise InvalidArgumentError(
            f"illegal FOR_EACH type, expected 3 args, got {len(for_each.args)}"
        )
    container, template, var = for_each.args
    types, is_list = _types_of(attrs, var.s)
    if is_list and not types:
        raise UnimplementedError(f"unsupported list attribute type: attr '{var.s}'")
    bindings = [{**attrs, var.s: AttrValue(type=dtype)} for dtype in types]
    args = [_substitute(binding, template) for binding in bindings]
    return FullTypeDef(type_id=container.type_id, args=args)


def _types_of(attrs: Mapping[str, AttrValue], name: str) -> tuple[list[int], bool]:
    """The types that an attr holds, and whether they are a list."""
    if name not in attrs:
        raise InvalidArgumentError(f"could not find an attribute for key '{name}'")
    value = attrs[name]
    kind = value.WhichOneof("value")
    if kind not in ("type", "list"):
        raise UnimplementedError(f"unsupported attribute type {kind} for name '{name}'")
    return (list(value.list.type), True) if kind == "list" else ([value.type], False)
