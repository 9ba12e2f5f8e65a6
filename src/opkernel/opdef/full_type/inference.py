"""Type inference functions: from the full types of a node's inputs to the types of its outputs.

Each function here makes one, for `register_op(forward_type_fn=...)`. The result is a TFT_PRODUCT
with the types of the outputs, or an unset type where nothing is known.

Source: TensorFlow core/framework/full_type_inference_util.cc.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.opdef.core.op_def_builder import FunctionTypeInferrer, TypeInferenceFn
from opkernel.opdef.core.validate import with_context
from opkernel.opdef.full_type.types import (
    FullTypeId,
    full_type,
    full_type_string,
    get_arg_default_unset,
    is_subtype,
    type_id_name,
)
from opkernel.proto import FullTypeDef

Types: TypeAlias = Sequence[FullTypeDef]
TypeMap: TypeAlias = Callable[[FullTypeDef], FullTypeDef]
"""The type that an element gets from the type it has."""


def keep_existing() -> TypeInferenceFn | None:
    """No inference: the node keeps the type that it has."""
    return None


def tensor(element: int) -> TypeInferenceFn:
    """One output, a tensor of that element type (a FullTypeId)."""
    return lambda types, infer: _product(full_type(FullTypeId.TFT_TENSOR, full_type(element)))


def replicate_input(index: int = 0, n: int = 1) -> TypeInferenceFn:
    """`n` outputs of the type of one input."""
    return lambda types, infer: _product_or_unset(types[index], *[types[index]] * n)


def merge() -> TypeInferenceFn:
    """One output of the most special type among the inputs.

    The function raises InvalidArgumentError if two of them are no subtypes of each other.
    """

    def infer_merged(types: Types, infer: FunctionTypeInferrer) -> FullTypeDef:
        merged = FullTypeDef()
        for index, given in enumerate(types):
            if given.type_id == FullTypeId.TFT_UNSET:
                continue
            if is_subtype(given, merged):
                merged = given
            elif not is_subtype(merged, given):
                raise InvalidArgumentError(
                    f"expected compatible input types, but input {index}: "
                    f"{full_type_string(given)} is neither a subtype nor a supertype of the "
                    f"combined inputs preceding it: {full_type_string(merged)}"
                )
        return _product_or_unset(merged, merged)

    return infer_merged


def encode(encoded_as: int, index: int) -> TypeInferenceFn:
    """One output: an input of type `T`, as TFT_ENCODED[T, encoded_as]."""
    written = full_type(encoded_as)
    return lambda types, infer: _product_or_unset(
        types[index], full_type(FullTypeId.TFT_ENCODED, types[index], written)
    )


def decode(encoded_as: int, index: int) -> TypeInferenceFn:
    """One output: the `T` of an input of type TFT_ENCODED[T, encoded_as].

    The function raises InvalidArgumentError if the input is written as another type.
    """

    def infer_decoded(types: Types, infer: FunctionTypeInferrer) -> FullTypeDef:
        given = types[index]
        written = get_arg_default_unset(given, 1).type_id
        if written not in (FullTypeId.TFT_UNSET, encoded_as):
            raise _unexpected(f"encoded type {type_id_name(encoded_as)}", index, given)
        return _product_or_unset(given, get_arg_default_unset(given, 0))

    return infer_decoded


def unary_container_create(container: int, element_index: int) -> TypeInferenceFn:
    """One output: a container of the type of one input."""
    return lambda types, infer: _product(full_type(container, types[element_index]))


def unary_container_add(
    container: int, container_index: int, element_index: int, homogeneous: bool
) -> TypeInferenceFn:
    """One output: a container like one input, to which another input was added.

    The function raises InvalidArgumentError if the one is another container, or the other no
    subtype of its elements; UnimplementedError for the latter if it is not `homogeneous`.
    """

    def infer_added(types: Types, infer: FunctionTypeInferrer) -> FullTypeDef:
        given = _input_of_type(types, container_index, container, "container type")
        added = types[element_index]
        element = get_arg_default_unset(given, 0)
        if element.type_id == FullTypeId.TFT_UNSET:
            is_known = added.type_id != FullTypeId.TFT_UNSET
            return _product(full_type(container, *[added] * is_known))
        if added.type_id != FullTypeId.TFT_UNSET and not is_subtype(added, element):
            raise _wrong_element(container, homogeneous, element_index, element, added)
        return _product(given)

    return infer_added


def _wrong_element(
    container: int, homogeneous: bool, index: int, element: FullTypeDef, added: FullTypeDef
) -> OpError:
    fact = (
        f"expected a subtype of {full_type_string(element)} for input {index} of a homogeneous "
        f"container {type_id_name(container)}, got {full_type_string(added)}"
    )
    if homogeneous:
        return InvalidArgumentError(fact)
    return UnimplementedError(f"need union types for heterogeneous containers: {fact}")


def multiary_unstack(container: int, unstack: TypeMap) -> TypeInferenceFn:
    """One output: a container whose elements are made of one slice of each input."""
    return lambda types, infer: _product(
        full_type(container, _product(*[unstack(given) for given in types]))
    )


def container_map(container: int, input_index: int, map_type: TypeMap) -> TypeInferenceFn:
    """One output: a container like one input, with its element types mapped by `map_type`.

    The function raises InvalidArgumentError if the input is another container, or its elements no
    TFT_PRODUCT.
    """

    def infer_mapped(types: Types, infer: FunctionTypeInferrer) -> FullTypeDef:
        given = _input_of_type(types, input_index, container)
        if given.type_id == FullTypeId.TFT_UNSET:
            return FullTypeDef()
        element = get_arg_default_unset(given, 0)
        if element.type_id == FullTypeId.TFT_UNSET:
            return _product(full_type(container))
        if element.type_id != FullTypeId.TFT_PRODUCT:
            raise _unexpected("PRODUCT element type", input_index, element)
        return _product(full_type(container, _product(*map(map_type, element.args))))

    return infer_mapped


def map_covariant(source: int, target: int, input_index: int) -> TypeInferenceFn:
    """One output: type `target` with the arguments that an input of type `source` has.

    The function raises InvalidArgumentError if the input is of another type.
    """

    def infer_repacked(types: Types, infer: FunctionTypeInferrer) -> FullTypeDef:
        given = _input_of_type(types, input_index, source)
        return _product_or_unset(given, full_type(target, *given.args))

    return infer_repacked


def function_call(func_attr_name: str) -> TypeInferenceFn:
    """The outputs of the function that an attr names, called with the inputs."""
    return lambda types, infer: infer(func_attr_name, types)


def tuple_func(func_list: Sequence[TypeInferenceFn]) -> TypeInferenceFn:
    """The outputs of several functions, one after the other; unset if one function's are unset."""

    def infer_concatenated(types: Types, infer: FunctionTypeInferrer) -> FullTypeDef:
        outputs: list[FullTypeDef] = []
        for func in func_list:
            try:
                result = func(types, infer)
            except OpError as error:
                context = f"for Tuple type inference function {len(outputs)}"
                raise with_context(error, context) from None
            if result.type_id == FullTypeId.TFT_UNSET:
                return FullTypeDef()
            if result.type_id != FullTypeId.TFT_PRODUCT:
                raise InvalidArgumentError(
                    "for Tuple type inference function, expected result of type inference "
                    f"function {len(outputs)} to start with TFT_PRODUCT not "
                    f"{full_type_string(result)}"
                )
            outputs += result.args
        return _product(*outputs)

    return infer_concatenated


def unstack_tensor(tensor_type: FullTypeDef) -> FullTypeDef:
    """The type of a slice of a tensor: its own, for types do not tell shapes."""
    return tensor_type


batch_tensor = unstack_tensor
"""The type of a batch of tensors: the type of each tensor."""
shard_tensor = unstack_tensor
"""The type of a part of a tensor: its own."""


def _product(*args: FullTypeDef) -> FullTypeDef:
    return full_type(FullTypeId.TFT_PRODUCT, *args)


def _product_or_unset(known: FullTypeDef, *outputs: FullTypeDef) -> FullTypeDef:
    """The outputs' types if there is one of the input that they follow from."""
    return FullTypeDef() if known.type_id == FullTypeId.TFT_UNSET else _product(*outputs)


def _input_of_type(types: Types, index: int, type_id: int, what: str = "type") -> FullTypeDef:
    """An input that is of this type, as far as known."""
    given = types[index]
    if given.type_id not in (FullTypeId.TFT_UNSET, type_id):
        raise _unexpected(f"{what} {type_id_name(type_id)}", index, given)
    return given


def _unexpected(what: str, index: int, given: FullTypeDef) -> InvalidArgumentError:
    return InvalidArgumentError(f"expected {what} for input {index}, got {full_type_string(given)}")
