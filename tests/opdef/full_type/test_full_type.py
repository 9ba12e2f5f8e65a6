import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.opdef import OpDefBuilder, OpRegistrationData, full_type
from opkernel.opdef.full_type import FullTypeId
from opkernel.proto import AttrValue, FullTypeDef, NodeDef, OpDef
from opkernel.types import DataType


def t(name, *args, s=None):
    return FullTypeDef(type_id=FullTypeId[f"TFT_{name}"], args=args, s=s)


def tensor(element):
    return t("TENSOR", t(element))


def dataset(*elements):
    return t("DATASET", t("PRODUCT", *elements))


# Neither encoded values nor variants of unknown content, which the rules of subtypes make exceptions
# for.
LEAVES = st.sampled_from(["ANY", "INT32", "FLOAT", "STRING", "MUTEX_LOCK"]).map(t)
FULL_TYPES = st.recursive(
    LEAVES,
    lambda args: st.builds(
        lambda name, inner: t(name, *inner),
        st.sampled_from(["TENSOR", "ARRAY", "PRODUCT", "DATASET"]),
        st.lists(args, max_size=3),
    ),
    max_leaves=8,
)


def test_the_ids_are_those_of_the_proto():
    described = FullTypeDef.DESCRIPTOR.fields_by_name["type_id"].enum_type
    assert described is not None
    assert {value.name: value.number for value in described.values} == {
        member.name: member.value for member in FullTypeId
    }


@pytest.mark.parametrize(
    ("dtype", "element"),
    [
        (DataType.DT_FLOAT, "FLOAT"),
        (DataType.DT_BOOL, "BOOL"),
        (DataType.DT_HALF, "HALF"),
        (DataType.DT_COMPLEX128, "COMPLEX128"),
        (DataType.DT_VARIANT, "LEGACY_VARIANT"),
        (DataType.DT_BFLOAT16, "UNSET"),
        (DataType.DT_RESOURCE, "UNSET"),
        (DataType.DT_QINT8, "UNSET"),
        (999, "UNSET"),
    ],
)
def test_dtypes_as_element_types(dtype, element):
    assert full_type.map_dtype_to_child_of_tensor(dtype) == t("TENSOR", t(element))


class TestRelations:
    def test_missing_unset_and_any_arguments_are_equal(self):
        types = [t("ARRAY"), t("ARRAY", t("UNSET")), t("ARRAY", t("ANY"))]
        assert all(full_type.is_equal(one, other) for one in types for other in types)
        assert not full_type.is_equal(t("ARRAY"), t("ARRAY", tensor("INT32")))
        assert not full_type.is_equal(t("VAR", s="T"), t("VAR", s="U"))

    @pytest.mark.parametrize(
        ("sub", "super_"),
        [
            (tensor("INT32"), t("ANY")),
            (tensor("INT32"), t("UNSET")),
            (tensor("INT32"), t("TENSOR")),
            (dataset(tensor("INT32")), tensor("LEGACY_VARIANT")),
            (t("ENCODED", dataset(), t("STRING")), t("STRING")),
        ],
    )
    def test_proper_subtypes(self, sub, super_):
        assert full_type.is_subtype(sub, super_)
        assert not full_type.is_subtype(super_, sub)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (t("ARRAY"), t("DATASET")),
            (tensor("INT32"), tensor("FLOAT")),
            (dataset(tensor("INT32")), dataset(tensor("FLOAT"))),
            (t("PRODUCT", tensor("INT32")), t("PRODUCT", t("ARRAY"))),
            (t("ENCODED", tensor("INT32"), t("STRING")), tensor("INT32")),
        ],
    )
    def test_types_that_have_nothing_to_do_with_each_other(self, one, other):
        for covariant in (True, False):
            assert not full_type.is_subtype(one, other, covariant)
            assert not full_type.is_subtype(other, one, covariant)
        assert not full_type.is_equal(one, other)

    def test_contravariant_arguments(self):
        general, special = t("CALLABLE", t("ANY")), t("CALLABLE", tensor("INT32"))
        assert full_type.is_subtype(general, special, covariant=False)
        assert not full_type.is_subtype(special, general, covariant=False)

    @given(FULL_TYPES)
    def test_subtyping_is_reflexive(self, one):
        assert full_type.is_subtype(one, one)
        assert full_type.is_equal(one, one)

    @given(FULL_TYPES, FULL_TYPES, FULL_TYPES)
    def test_subtyping_is_transitive(self, one, two, three):
        if full_type.is_subtype(one, two) and full_type.is_subtype(two, three):
            assert full_type.is_subtype(one, three)

    @given(FULL_TYPES, FULL_TYPES)
    def test_subtypes_of_each_other_are_equal(self, one, other):
        mutual = full_type.is_subtype(one, other) and full_type.is_subtype(other, one)
        assert mutual == full_type.is_equal(one, other)

    def test_arguments_beyond_the_last(self):
        assert full_type.get_arg_default_any(t("ARRAY", t("UNSET")), 0) == t("ANY")
        assert full_type.get_arg_default_any(t("ARRAY"), 0) == t("ANY")
        assert full_type.get_arg_default_unset(t("ARRAY"), 0) == FullTypeDef()

    @pytest.mark.parametrize(
        ("given_type", "on_host"),
        [
            (tensor("STRING"), True),
            (tensor("INT32"), False),
            (dataset(tensor("INT32")), True),
            (t("ARRAY", tensor("STRING")), True),
            (t("ITERATOR", t("PRODUCT", tensor("FLOAT"), tensor("STRING"))), True),
            (t("OPTIONAL"), False),
            (t("MUTEX_LOCK"), True),
            (t("SHAPE_TENSOR", t("STRING")), False),
        ],
    )
    def test_host_memory(self, given_type, on_host):
        assert full_type.is_host_memory_type(given_type) == on_host

    def test_text(self):
        listed = t("PRODUCT", dataset(t("TENSOR", t("VAR", s="T"))), FullTypeDef(type_id=77))
        expected = 'TFT_PRODUCT[TFT_DATASET[TFT_PRODUCT[TFT_TENSOR[TFT_VAR["T"]]]], 77]'
        assert full_type.full_type_string(listed) == expected


class TestConstructors:
    @pytest.mark.parametrize(
        ("constructor", "text"),
        [
            (full_type.nullary(FullTypeId.TFT_MUTEX_LOCK), "TFT_MUTEX_LOCK"),
            (full_type.unary(FullTypeId.TFT_RAGGED, "T"), 'TFT_RAGGED[TFT_VAR["T"]]'),
            (full_type.unary_generic(FullTypeId.TFT_DATASET), "TFT_DATASET[TFT_ANY]"),
            (
                full_type.unary_tensor_container(FullTypeId.TFT_DATASET, FullTypeId.TFT_STRING),
                "TFT_DATASET[TFT_TENSOR[TFT_STRING]]",
            ),
            (
                full_type.unary_tensor_container(FullTypeId.TFT_ARRAY, "T"),
                'TFT_ARRAY[TFT_TENSOR[TFT_VAR["T"]]]',
            ),
            (
                full_type.variadic_tensor_container(FullTypeId.TFT_OPTIONAL, "T"),
                'TFT_OPTIONAL[TFT_FOR_EACH[TFT_PRODUCT, TFT_TENSOR[TFT_VAR["T"]], TFT_VAR["T"]]]',
            ),
        ],
    )
    def test_declared_types(self, constructor, text):
        op_def = OpDef(name="A", output_arg=[OpDef.ArgDef(), OpDef.ArgDef()])
        constructor(op_def)
        assert full_type.full_type_string(op_def.output_arg[0].experimental_full_type) == text
        assert not op_def.output_arg[1].HasField("experimental_full_type")

    def test_without_effect(self):
        assert full_type.no_op() is None
        op_def = OpDef(name="A")
        full_type.no_outputs()(op_def)
        assert op_def == OpDef(name="A")

    def test_an_op_without_outputs_has_no_type_to_declare(self):
        builder = OpDefBuilder("A").set_type_constructor(full_type.nullary(1))
        with pytest.raises(InvalidArgumentError, match="Op A has a type constructor"):
            builder.finalize()

    def test_the_last_functions_count(self):
        builder = OpDefBuilder("A").output("a: variant").input("b: variant")
        builder.set_type_constructor(full_type.unary_generic(FullTypeId.TFT_DATASET))
        builder.set_type_constructor(full_type.nullary(FullTypeId.TFT_OPTIONAL))
        first, second = full_type.replicate_input(), full_type.merge()
        data = builder.set_forward_type_fn(first).set_forward_type_fn(second).finalize()
        assert data.op_def.output_arg[0].experimental_full_type == t("OPTIONAL")
        assert data.forward_type_fn is second
        data = builder.set_reverse_type_fn(1, first).finalize()
        assert (data.reverse_type_input, data.reverse_type_fn) == (1, first)


def op_with(declared, *attrs):
    op_def = OpDef(name="A", output_arg=[OpDef.ArgDef(name="a")], attr=attrs)
    op_def.output_arg[0].experimental_full_type.CopyFrom(declared)
    return op_def


def node_with(**attrs):
    node = NodeDef(name="n", op="A")
    for name, value in attrs.items():
        node.attr[name].CopyFrom(value)
    return node


def types(*dtypes):
    return AttrValue(list=AttrValue.ListValue(type=dtypes))


INT32 = AttrValue(type=DataType.DT_INT32)
TENSOR_OF_T = t("TENSOR", t("VAR", s="T"))
EACH_OF_T = t("FOR_EACH", t("PRODUCT"), TENSOR_OF_T, t("VAR", s="T"))


class TestSpecialize:
    @pytest.mark.parametrize(
        ("declared", "value", "expected"),
        [
            (t("VAR", s="T"), INT32, t("INT32")),
            (t("ARRAY", TENSOR_OF_T), INT32, t("ARRAY", tensor("INT32"))),
            (t("VAR", s="T"), types(DataType.DT_STRING), t("STRING")),
            (t("DATASET", EACH_OF_T), INT32, dataset(tensor("INT32"))),
            (
                t("DATASET", EACH_OF_T),
                types(DataType.DT_FLOAT, DataType.DT_VARIANT),
                dataset(tensor("FLOAT"), tensor("LEGACY_VARIANT")),
            ),
            (t("ARRAY", TENSOR_OF_T, t("ANY")), AttrValue(type=DataType.DT_VARIANT), t("ARRAY")),
            (t("NAMED", s="x"), INT32, t("NAMED", s="x")),
            (TENSOR_OF_T, types(DataType.DT_INT32), tensor("INT32")),
        ],
    )
    def test_variables_take_the_values_of_attrs(self, declared, value, expected):
        result = full_type.specialize_type(node_with(T=value), op_with(declared))
        assert result == t("PRODUCT", expected)

    @given(FULL_TYPES)
    def test_types_without_variables_stay_as_they_are(self, declared):
        result = full_type.specialize_type(node_with(), op_with(declared))
        assert result == t("PRODUCT", declared)

    @given(st.lists(st.sampled_from([1, 2, 3, 7, 14, 20])))
    def test_specialising_again_changes_nothing(self, dtypes):
        node = node_with(T=types(*dtypes, DataType.DT_INT32))
        once = full_type.specialize_type(node, op_with(t("DATASET", EACH_OF_T)))
        assert len(once.args[0].args[0].args) == len(dtypes) + 1
        assert full_type.specialize_type(node, op_with(once.args[0])) == once

    def test_defaults_stand_for_attrs_that_are_left_out(self):
        attr = OpDef.AttrDef(name="T", type="type", default_value=INT32)
        op_def = op_with(TENSOR_OF_T, attr)
        assert full_type.specialize_type(node_with(), op_def) == t("PRODUCT", tensor("INT32"))
        node = node_with(T=AttrValue(type=DataType.DT_BOOL))
        assert full_type.specialize_type(node, op_def) == t("PRODUCT", tensor("BOOL"))

    def test_each_output_has_its_place(self):
        op_def = op_with(t("DATASET"))
        op_def.output_arg.add(name="b")
        assert full_type.specialize_type(node_with(), op_def) == t(
            "PRODUCT", t("DATASET"), t("UNSET")
        )

    @pytest.mark.parametrize(
        ("declared", "value", "error", "message"),
        [
            (t("VAR", t("ANY"), s="T"), INT32, InvalidArgumentError, "expected args_size 0"),
            (t("VAR", s="U"), INT32, InvalidArgumentError, "attribute for key 'U'"),
            (t("FOR_EACH", t("PRODUCT")), INT32, InvalidArgumentError, "expected 3 args, got 1"),
            (t("VAR", s="T"), types(), UnimplementedError, "other than one type element"),
            (t("VAR", s="T"), types(1, 3), UnimplementedError, "other than one type element"),
            (t("VAR", s="T"), AttrValue(i=3), UnimplementedError, "unsupported attribute type i"),
            (EACH_OF_T, types(), UnimplementedError, "unsupported list attribute type"),
            (EACH_OF_T, AttrValue(b=True), UnimplementedError, "unsupported attribute type b"),
        ],
    )
    def test_what_does_not_fit(self, declared, value, error, message):
        with pytest.raises(error, match=message) as caught:
            full_type.specialize_type(node_with(T=value), op_with(declared))
        assert "while expanding vars of TFT_" in str(caught.value)
        assert "{{node n}}" in str(caught.value)


class TestTypeOfNode:
    def test_what_the_node_carries_comes_first(self):
        node = node_with()
        node.experimental_type.CopyFrom(t("PRODUCT", t("ARRAY")))
        registration = OpRegistrationData(op_with(t("DATASET")))
        assert full_type.full_type_of_node(node, registration) == t("PRODUCT", t("ARRAY"))

    def test_what_the_op_declares(self):
        registration = OpRegistrationData(op_with(t("DATASET")))
        assert full_type.full_type_of_node(node_with(), registration) == t("PRODUCT", t("DATASET"))
        registration.is_function_op = True
        assert full_type.full_type_of_node(node_with(), registration) is None
        assert full_type.full_type_of_node(node_with(), OpRegistrationData(OpDef())) is None

    def test_errors_name_the_node(self):
        registration = OpRegistrationData(op_with(t("VAR", s="T")))
        with pytest.raises(InvalidArgumentError, match=r"^type error: could not find") as caught:
            full_type.full_type_of_node(node_with(), registration)
        assert (caught.value.node, caught.value.op) == ("n", "A")
