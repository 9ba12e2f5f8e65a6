import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel.registry.kernel_def import KernelDefBuilder, Name, summarize_kernel_def
from opkernel.kernel.registry.registration import violated_constraint
from opkernel.proto import AttrValue, KernelDef, NodeDef
from opkernel.types import DataType

FLOAT = AttrValue(type=DataType.DT_FLOAT)
INT32 = AttrValue(type=DataType.DT_INT32)


def node(**attrs):
    return NodeDef(name="n", op="A", attr=attrs)


def types(*dtypes):
    return AttrValue(list=AttrValue.ListValue(type=dtypes))


def text(builder):
    return summarize_kernel_def(builder.build())


class TestKernelDefBuilder:
    def test_a_chain_sets_every_field(self):
        built = (
            KernelDefBuilder("A")
            .device("GPU")
            .type_constraint("T", [DataType.DT_FLOAT, DataType.DT_HALF])
            .type_constraint("U", DataType.DT_STRING)
            .host_memory("a")
            .host_memory("b")
            .label("x")
            .priority(-1)
        )
        assert text(built) == (
            'op: "A" device_type: "GPU" '
            'constraint { name: "T" allowed_values { list { type: DT_FLOAT type: DT_HALF } } } '
            'constraint { name: "U" allowed_values { list { type: DT_STRING } } } '
            'host_memory_arg: "a" host_memory_arg: "b" label: "x" priority: -1'
        )

    @pytest.mark.parametrize("spelling", ["double", "float64", np.float64, np.dtype("f8")])
    def test_types_are_spelled_as_everywhere(self, spelling):
        expected = 'op: "A" constraint { name: "T" allowed_values { list { type: DT_DOUBLE } } }'
        assert text(KernelDefBuilder("A").type_constraint("T", spelling)) == expected
        assert text(KernelDefBuilder("A").type_constraint("T", [spelling])) == expected

    def test_a_set_of_types_is_written_in_the_order_of_the_enum(self):
        built = KernelDefBuilder("A").type_constraint(
            "T", frozenset({DataType.DT_HALF, DataType.DT_INT32, DataType.DT_FLOAT})
        )
        assert list(built.build().constraint[0].allowed_values.list.type) == [1, 3, 19]

    def test_constraints_on_one_attr_add_up(self):
        built = KernelDefBuilder("A").type_constraint("T", "float").type_constraint("T", "int32")
        assert [one.name for one in built.build().constraint] == ["T", "T"]

    @pytest.mark.parametrize(
        ("allowed", "expected"),
        [
            ([1, 2], "i: 1 i: 2"),
            (-7, "i: -7"),
            (["a", "b"], 's: "a" s: "b"'),
            ("ab", 's: "ab"'),
            (True, "b: true"),
            ([True, False], "b: true b: false"),
        ],
    )
    def test_attr_constraint(self, allowed, expected):
        assert text(KernelDefBuilder("A").attr_constraint("n", allowed)) == (
            'op: "A" constraint { name: "n" allowed_values { list { ' + expected + " } } }"
        )

    @pytest.mark.parametrize("allowed", [[1, "a"], [1, True], [1.5]])
    def test_attr_constraint_takes_one_type(self, allowed):
        with pytest.raises(InvalidArgumentError, match="'n'"):
            KernelDefBuilder("A").attr_constraint("n", allowed)

    def test_a_second_label_is_refused(self):
        with pytest.raises(InvalidArgumentError, match=r"second time: 'y'.*label: \"x\""):
            KernelDefBuilder("A").label("x").label("y")

    def test_an_empty_label_is_none(self):
        assert KernelDefBuilder("A").label("").label("x").build().label == "x"

    def test_build_gives_what_later_calls_do_not_change(self):
        builder = KernelDefBuilder("A")
        built = builder.build()
        builder.device("CPU")
        assert built == KernelDef(op="A")

    def test_name_is_the_builder(self):
        assert Name is KernelDefBuilder


class TestViolatedConstraint:
    def test_without_constraints_everything_fits(self):
        assert violated_constraint(KernelDef(op="A"), node()) is None

    @pytest.mark.parametrize(
        ("value", "violated"),
        [
            (FLOAT, None),
            (INT32, 0),
            (AttrValue(type=DataType.DT_FLOAT_REF), 0),
            (types(), None),
            (types(DataType.DT_FLOAT, DataType.DT_HALF), None),
            (types(DataType.DT_FLOAT, DataType.DT_INT32), 0),
        ],
    )
    def test_types_and_each_element_of_lists_of_types(self, value, violated):
        kernel_def = KernelDefBuilder("A").type_constraint("T", ["float", "half"]).build()
        assert violated_constraint(kernel_def, node(T=value)) == violated

    @pytest.mark.parametrize(
        ("allowed", "value", "violated"),
        [
            ([1, 2], AttrValue(i=2), None),
            ([1, 2], AttrValue(i=3), 0),
            (["a", "b"], AttrValue(s=b"b"), None),
            (["a", "b"], AttrValue(s=b"ab"), 0),
            (True, AttrValue(b=True), None),
            (True, AttrValue(b=False), 0),
        ],
    )
    def test_other_values(self, allowed, value, violated):
        kernel_def = KernelDefBuilder("A").attr_constraint("x", allowed).build()
        assert violated_constraint(kernel_def, node(x=value)) == violated

    def test_the_first_violated_constraint_ends_the_check(self):
        kernel_def = (
            KernelDefBuilder("A")
            .type_constraint("T", "float")
            .type_constraint("U", "float")
            .type_constraint("missing", "float")
            .build()
        )
        assert violated_constraint(kernel_def, node(T=INT32)) == 0
        assert violated_constraint(kernel_def, node(T=FLOAT, U=INT32)) == 1
        with pytest.raises(InvalidArgumentError) as error:
            violated_constraint(kernel_def, node(U=FLOAT, T=FLOAT))
        assert str(error.value).startswith(
            "OpKernel 'A' has constraint on attr 'missing' not in NodeDef "
            "'[T=DT_FLOAT, U=DT_FLOAT]', KernelDef: 'op: \"A\""
        )

    @pytest.mark.parametrize("value", [AttrValue(i=7), AttrValue(type=DataType.DT_INVALID)])
    def test_a_type_constraint_on_an_attr_of_another_type(self, value):
        kernel_def = KernelDefBuilder("A").type_constraint("T", "float").build()
        with pytest.raises(InvalidArgumentError, match=r"does not have type 'type' or 'list\(type"):
            violated_constraint(kernel_def, node(T=value))

    @pytest.mark.parametrize(("allowed", "name"), [(1, "int"), ("a", "string"), (True, "bool")])
    def test_a_value_constraint_on_an_attr_of_another_type(self, allowed, name):
        kernel_def = KernelDefBuilder("A").attr_constraint("x", allowed).build()
        with pytest.raises(InvalidArgumentError, match=f"does not have type '{name}'"):
            violated_constraint(kernel_def, node(x=AttrValue(f=1.0)))

    def test_a_constraint_that_allows_nothing(self):
        kernel_def = KernelDefBuilder("A").type_constraint("T", []).build()
        with pytest.raises(UnimplementedError, match="attr 'T' with unsupported type"):
            violated_constraint(kernel_def, node(T=FLOAT))

    def test_a_constraint_with_values_of_two_types(self):
        kernel_def = KernelDefBuilder("A").attr_constraint("x", 1).build()
        kernel_def.constraint[0].allowed_values.list.s.append(b"a")
        with pytest.raises(InvalidArgumentError, match="more than one value type"):
            violated_constraint(kernel_def, node(x=AttrValue(i=1)))
