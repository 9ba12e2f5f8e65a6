import pytest

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.opdef import full_type
from opkernel.opdef.full_type import FullTypeId
from opkernel.proto import FullTypeDef

ARRAY, DATASET, ITERATOR = FullTypeId.TFT_ARRAY, FullTypeId.TFT_DATASET, FullTypeId.TFT_ITERATOR


def t(name, *args):
    return FullTypeDef(type_id=FullTypeId[f"TFT_{name}"], args=args)


UNSET = FullTypeDef()
INT, FLOAT = t("TENSOR", t("INT32")), t("TENSOR", t("FLOAT"))
INTS = t("DATASET", t("PRODUCT", INT))


def infer(fn, *inputs):
    """The text of what a function infers."""

    def infer_function_rets(attr, types):
        return t("PRODUCT", t("CALLABLE", *types)) if attr == "f" else UNSET

    return full_type.full_type_string(fn(inputs, infer_function_rets))


@pytest.mark.parametrize(
    ("fn", "inputs", "outputs"),
    [
        (full_type.tensor(FullTypeId.TFT_INT32), [], "TFT_PRODUCT[TFT_TENSOR[TFT_INT32]]"),
        (full_type.replicate_input(), [t("ARRAY")], "TFT_PRODUCT[TFT_ARRAY]"),
        (full_type.replicate_input(1, 2), [UNSET, t("ARRAY")], "TFT_PRODUCT[TFT_ARRAY, TFT_ARRAY]"),
        (full_type.replicate_input(), [UNSET], "TFT_UNSET"),
        (full_type.merge(), [t("DATASET"), UNSET, INTS, t("ANY"), UNSET], None),
        (full_type.merge(), [INTS, t("DATASET")], None),
        (full_type.merge(), [UNSET, UNSET], "TFT_UNSET"),
        (full_type.merge(), [t("ANY"), UNSET], "TFT_PRODUCT[TFT_ANY]"),
        (
            full_type.encode(FullTypeId.TFT_STRING, 0),
            [t("DATASET")],
            "TFT_PRODUCT[TFT_ENCODED[TFT_DATASET, TFT_STRING]]",
        ),
        (full_type.encode(FullTypeId.TFT_STRING, 0), [UNSET], "TFT_UNSET"),
        (full_type.decode(FullTypeId.TFT_STRING, 0), [t("ENCODED", INTS, t("STRING"))], None),
        (full_type.decode(FullTypeId.TFT_STRING, 0), [UNSET], "TFT_UNSET"),
        (
            full_type.decode(FullTypeId.TFT_STRING, 0),
            [t("TENSOR", t("STRING"))],
            "TFT_PRODUCT[TFT_STRING]",
        ),
        (
            full_type.unary_container_create(ARRAY, 0),
            [INT],
            "TFT_PRODUCT[TFT_ARRAY[TFT_TENSOR[TFT_INT32]]]",
        ),
        (full_type.unary_container_create(ARRAY, 0), [UNSET], "TFT_PRODUCT[TFT_ARRAY[TFT_UNSET]]"),
        (
            full_type.multiary_unstack(DATASET, full_type.unstack_tensor),
            [INT, UNSET],
            "TFT_PRODUCT[TFT_DATASET[TFT_PRODUCT[TFT_TENSOR[TFT_INT32], TFT_UNSET]]]",
        ),
        (full_type.container_map(DATASET, 0, full_type.batch_tensor), [INTS], None),
        (full_type.container_map(DATASET, 0, full_type.shard_tensor), [UNSET], "TFT_UNSET"),
        (
            full_type.container_map(DATASET, 0, full_type.shard_tensor),
            [t("DATASET")],
            "TFT_PRODUCT[TFT_DATASET]",
        ),
        (
            full_type.container_map(DATASET, 0, lambda element: t("RAGGED", *element.args)),
            [INTS],
            "TFT_PRODUCT[TFT_DATASET[TFT_PRODUCT[TFT_RAGGED[TFT_INT32]]]]",
        ),
        (full_type.map_covariant(DATASET, DATASET, 0), [INTS], None),
        (full_type.map_covariant(DATASET, ITERATOR, 0), [UNSET], "TFT_UNSET"),
        (
            full_type.map_covariant(DATASET, ITERATOR, 0),
            [t("DATASET")],
            "TFT_PRODUCT[TFT_ITERATOR]",
        ),
        (full_type.function_call("f"), [INT], "TFT_PRODUCT[TFT_CALLABLE[TFT_TENSOR[TFT_INT32]]]"),
        (
            full_type.tuple_func([full_type.replicate_input(0, 2), full_type.merge()]),
            [t("ARRAY")],
            "TFT_PRODUCT[TFT_ARRAY, TFT_ARRAY, TFT_ARRAY]",
        ),
        (
            full_type.tuple_func([full_type.tensor(FullTypeId.TFT_INT32), full_type.merge()]),
            [UNSET],
            "TFT_UNSET",
        ),
    ],
)
def test_outputs(fn, inputs, outputs):
    """None stands for one output, a dataset of tensors of int32."""
    ints = "TFT_PRODUCT[TFT_DATASET[TFT_PRODUCT[TFT_TENSOR[TFT_INT32]]]]"
    assert infer(fn, *inputs) == (outputs or ints)


@pytest.mark.parametrize(
    ("container", "element", "output"),
    [
        (UNSET, UNSET, "TFT_ARRAY"),
        (UNSET, INT, "TFT_ARRAY[TFT_TENSOR[TFT_INT32]]"),
        (t("ARRAY"), INT, "TFT_ARRAY[TFT_TENSOR[TFT_INT32]]"),
        (t("ARRAY", INT), UNSET, "TFT_ARRAY[TFT_TENSOR[TFT_INT32]]"),
        (t("ARRAY", t("TENSOR")), INT, "TFT_ARRAY[TFT_TENSOR]"),
    ],
)
def test_adding_to_a_container(container, element, output):
    add = full_type.unary_container_add(ARRAY, 1, 0, homogeneous=True)
    assert infer(add, element, container) == f"TFT_PRODUCT[{output}]"


def test_keeping_is_no_function():
    assert full_type.keep_existing() is None


@pytest.mark.parametrize(
    ("fn", "inputs", "message"),
    [
        (
            full_type.merge(),
            [INTS, t("ARRAY")],
            r"compatible input types, but input 1: TFT_ARRAY is neither a subtype nor a supertype",
        ),
        (
            full_type.decode(FullTypeId.TFT_STRING, 0),
            [t("ENCODED", INTS, t("INT32"))],
            "expected encoded type TFT_STRING for input 0",
        ),
        (
            full_type.unary_container_add(ARRAY, 0, 1, homogeneous=True),
            [INTS, INT],
            "expected container type TFT_ARRAY for input 0, got TFT_DATASET",
        ),
        (
            full_type.unary_container_add(ARRAY, 0, 1, homogeneous=True),
            [t("ARRAY", INT), FLOAT],
            r"expected a subtype of TFT_TENSOR\[TFT_INT32\] for input 1 of a homogeneous",
        ),
        (
            full_type.container_map(DATASET, 1, full_type.batch_tensor),
            [UNSET, t("ARRAY")],
            "expected type TFT_DATASET for input 1, got TFT_ARRAY",
        ),
        (
            full_type.container_map(DATASET, 0, full_type.batch_tensor),
            [t("DATASET", INT)],
            "expected PRODUCT element type for input 0",
        ),
        (full_type.map_covariant(DATASET, ITERATOR, 0), [t("ARRAY")], "expected type TFT_DATASET"),
        (
            full_type.tuple_func([full_type.tensor(1), full_type.merge()]),
            [t("ARRAY"), INTS],
            "for Tuple type inference function 1",
        ),
        (
            full_type.tuple_func([lambda types, infer: INT]),
            [],
            r"to start with TFT_PRODUCT not TFT_TENSOR\[TFT_INT32\]",
        ),
    ],
)
def test_inputs_that_break_a_rule(fn, inputs, message):
    with pytest.raises(InvalidArgumentError, match=message):
        infer(fn, *inputs)


def test_heterogeneous_containers_are_not_implemented():
    add = full_type.unary_container_add(ARRAY, 0, 1, homogeneous=False)
    with pytest.raises(UnimplementedError, match="need union types"):
        infer(add, t("ARRAY", INT), FLOAT)
