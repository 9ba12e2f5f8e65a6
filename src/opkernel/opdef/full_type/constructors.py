"""Type constructors: an op's declaration of the full type of its first output.

Each function here makes one, for `register_op(type_constructor=...)`. The types that they declare
are patterns: TFT_VAR stands for the value of an attr, `specialize_type` fills it in.

Source: TensorFlow core/framework/full_type_util.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.core.op_def_builder import OpTypeConstructor
from opkernel.opdef.full_type.type_id import FullTypeId
from opkernel.proto import FullTypeDef, OpDef


def no_op() -> OpTypeConstructor | None:
    """No type constructor: types come from elsewhere."""
    return None


def no_outputs() -> OpTypeConstructor:
    """For an op without outputs."""
    return _declare_nothing


def nullary(type_id: int) -> OpTypeConstructor:
    """For an output of type `type_id`, without arguments."""
    return _declare(FullTypeDef(type_id=type_id))


def unary(type_id: int, var_name: str) -> OpTypeConstructor:
    """For an output of type `type_id[var_name]`, where `var_name` is a type attr."""
    return _declare(FullTypeDef(type_id=type_id, args=[_var(var_name)]))


def unary_generic(type_id: int) -> OpTypeConstructor:
    """For an output of type `type_id[TFT_ANY]`."""
    return _declare(FullTypeDef(type_id=type_id, args=[FullTypeDef(type_id=FullTypeId.TFT_ANY)]))


def unary_tensor_container(type_id: int, element: int | str) -> OpTypeConstructor:
    """For an output of type `type_id[TFT_TENSOR[element]]`: a FullTypeId, or a type attr's name."""
    element_type = _var(element) if isinstance(element, str) else FullTypeDef(type_id=element)
    return _declare(FullTypeDef(type_id=type_id, args=[_tensor(element_type)]))


def variadic_tensor_container(type_id: int, var_name: str) -> OpTypeConstructor:
    """For an output that holds one tensor for each type in the list attr `var_name`.

    The type is `type_id[TFT_PRODUCT[TFT_TENSOR[t0], TFT_TENSOR[t1], ...]]`.
    """
    product = FullTypeDef(type_id=FullTypeId.TFT_PRODUCT)
    template = [product, _tensor(_var(var_name)), _var(var_name)]
    for_each = FullTypeDef(type_id=FullTypeId.TFT_FOR_EACH, args=template)
    return _declare(FullTypeDef(type_id=type_id, args=[for_each]))


def _var(name: str) -> FullTypeDef:
    return FullTypeDef(type_id=FullTypeId.TFT_VAR, s=name)


def _tensor(element: FullTypeDef) -> FullTypeDef:
    return FullTypeDef(type_id=FullTypeId.TFT_TENSOR, args=[element])


def _declare_nothing(op_def: OpDef) -> None:
    pass


def _declare(full_type: FullTypeDef) -> OpTypeConstructor:
    def construct(op_def: OpDef) -> None:
        if not op_def.output_arg:
            raise InvalidArgumentError(
                f"Op {op_def.name} has a type constructor for its first output, but no output"
            )
        op_def.output_arg[0].experimental_full_type.CopyFrom(full_type)

    return construct
