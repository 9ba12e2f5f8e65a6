import numpy as np
import pytest

from opkernel.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
)
from opkernel.graph import node_def
from opkernel.opdef import (
    InferenceContext,
    OpDefBuilder,
    OpRegistrationData,
    ShapeAndType,
    ShapeHandle,
    UnsetOutputError,
    infer_call,
    run_shape_fn,
)
from opkernel.opdef.full_type import FullTypeId, unary
from opkernel.opdef.shapes.input_values import InputShape
from opkernel.types import DataType, PartialTensorShape, TensorShape

F, I32 = DataType.DT_FLOAT, DataType.DT_INT32


def int_vector(*values, dtype=np.int32):
    return np.array(values, dtype)


class TestInputsAndOutputs:
    def test_shapes_may_be_given_as_handles_or_values(self):
        op = OpDefBuilder("Test").input("a: N * float").attr("N: int").finalize()
        handle = ShapeHandle()
        node = node_def("n", "Test", N=4)
        shapes: list[InputShape] = [handle, TensorShape([2]), PartialTensorShape([None]), [1, None]]
        c = InferenceContext(op.op_def, node, shapes)
        assert c.input(0) is handle
        assert [repr(c.input(i)) for i in (1, 2, 3)] == ["[2]", "[?]", "[1,?]"]

    def test_arguments_are_found_by_name_and_lists_have_several_tensors(self):
        builder = OpDefBuilder("Test").input("a: float").input("b: N * float").attr("N: int")
        op_def = builder.output("x: N * float").output("y: float").finalize().op_def
        node = node_def("n", "Test", N=2)
        c = InferenceContext(op_def, node, [[1], [2], [3]])
        assert (c.num_inputs(), c.num_outputs()) == (3, 3)
        assert [repr(s) for s in c.input("b")] == ["[2]", "[3]"]
        assert [repr(s) for s in c.input("a")] == ["[1]"]
        c.set_output("x", c.input("b"))
        c.set_output("y", c.input(0))
        assert [c.output(i) for i in range(3)] == [c.input(1), c.input(2), c.input(0)]
        assert c.output("x") == c.input("b")
        with pytest.raises(InvalidArgumentError, match="Unknown input name: z"):
            c.input("z")
        with pytest.raises(InvalidArgumentError, match="Unknown output name: z"):
            c.set_output("z", [])
        with pytest.raises(InvalidArgumentError, match="Must have exactly 2 shapes"):
            c.set_output("x", [c.scalar()])

    def test_a_wrong_number_of_inputs_is_refused(self, context):
        op_def = context(["?"]).op_def
        with pytest.raises(InvalidArgumentError, match="inputs passed: 2 while 1 expected"):
            InferenceContext(op_def, node_def("n", "Test"), [None, None])

    def test_inputs_and_outputs_that_the_node_has_not(self, context):
        c = context(["?", "?"], outputs=1)
        for ask, message in (
            (lambda: c.input(2), "Test has no input 2: it has 2 inputs, numbers 0 to 1"),
            (lambda: c.output(1), "Test has no output 1: it has 1 output, number 0"),
            (
                lambda: c.set_output(3, c.scalar()),
                "Test has no output 3: it has 1 output, number 0",
            ),
            (lambda: c.doubt_output(1), "Test has no output 1: it has 1 output, number 0"),
            (lambda: c.doubt_output(-1), "Test has no output -1: it has 1 output, number 0"),
            (lambda: context(outputs=0).output(0), "Test has no output 0: it has 0 outputs"),
        ):
            with pytest.raises(InvalidArgumentError) as raised:
                ask()
            assert raised.value.message == message

    def test_one_output_has_one_shape(self, context):
        c = context(["?"])
        with pytest.raises(
            InvalidArgumentError, match=r"Output 0 must have exactly 1 shape.*\[2\]"
        ):
            c.set_output(0, [2])
        op_def = OpDefBuilder("Test").output("y: float").finalize().op_def
        c = InferenceContext(op_def, node_def("n", "Test"), [])
        c.set_output("y", c.scalar())
        assert repr(c.output(0)) == "[]"

    def test_shapes_that_are_doubted_are_not_relied_on(self, context):
        c = context(["[2]"], outputs=3)
        for i in range(3):
            c.set_output(i, c.input(0))
        assert not c.has_doubts
        c.doubt_output(1)
        assert c.has_doubts
        assert c.reliable_outputs() == [c.input(0), None, c.input(0)]
        assert c.outputs() == [c.input(0)] * 3
        c.forget_doubts()
        assert c.reliable_outputs() == [c.input(0)] * 3

    def test_an_input_may_be_replaced(self, context):
        c = context(["[2]", "[3]"])
        c.set_input(0, c.input(1))
        assert c.input(0) is c.input(1)

    def test_merge_and_relax_input(self, context):
        c = context(["[1,?]", "[?,2]", "[3,3]"])
        assert not c.merge_input(0, c.input(2))
        assert c.merge_input(0, c.input(1))
        assert repr(c.input(0)) == "[1,2]"
        assert not c.relax_input(0, c.make_shape([1, 2]))
        assert c.relax_input(0, c.input(2))
        assert repr(c.input(0)) == "[?,?]"


class TestAttrs:
    def test_values_come_as_python_objects_once(self, context):
        c = context(attrs={"n": 3, "s": "abc", "list": [1, 2], "T": F, "none": []})
        assert [c.get_attr(n) for n in ("n", "s", "list", "T")] == [3, "abc", [1, 2], F]
        assert c.get_attr("none") == []
        assert c.get_attr("list") is c.get_attr("list")

    def test_the_declared_default_stands_in_for_a_missing_attr(self):
        op = OpDefBuilder("Test").attr("n: int = 7").attr("m: int").finalize()
        c = InferenceContext(op.op_def, node_def("node", "Test"), [])
        assert c.get_attr("n") == 7
        assert c.find_attr("m", 1) == 1
        with pytest.raises(NotFoundError, match="No attr named 'm' in NodeDef: node"):
            c.get_attr("m")

    def test_the_full_types_of_outputs_are_those_declared(self):
        builder = OpDefBuilder("Test").output("y: T").attr("T: type")
        builder.set_type_constructor(unary(FullTypeId.TFT_RAGGED, "T"))
        c = InferenceContext(builder.finalize().op_def, node_def("n", "Test", T=F), [])
        (output,) = c.ret_types().args
        assert output.type_id == FullTypeId.TFT_RAGGED
        assert output.args[0].type_id == FullTypeId.TFT_FLOAT


class TestShapesFromTensors:
    @pytest.mark.parametrize("dtype", [np.int32, np.int64])
    def test_a_vector_holds_a_shape(self, context, dtype):
        c = context(["[3]"], constants={0: int_vector(1, -1, 3, dtype=dtype)})
        assert repr(c.make_shape_from_shape_tensor(0)) == "[1,?,3]"

    def test_only_its_length_is_known(self, context):
        c = context(["[3]", "[?]", "?"])
        shapes = [c.make_shape_from_shape_tensor(i) for i in range(3)]
        assert [repr(s) for s in shapes] == ["[?,?,?]", "?", "?"]

    def test_a_partial_value_goes_before_the_tensor(self, context):
        c = context(["[2]"], constants={0: int_vector(8, 9)}, as_shapes={0: "[4,?]"})
        assert repr(c.make_shape_from_shape_tensor(0)) == "[4,?]"
        assert c.requested_input_tensor_as_partial_shape(0)
        assert not c.requested_input_tensor(0)
        c = context(["[2]"], constants={0: int_vector(8, 9)}, as_shapes={0: "?"})
        assert repr(c.make_shape_from_shape_tensor(0)) == "[8,9]"
        assert c.requested_input_tensor(0)

    def test_values_may_come_once_they_were_asked_for(self, context):
        c = context(["[2]", "[2]", "[2]"])
        assert c.requests == set()
        c.request_input_tensor(0)
        c.request_input_tensor_as_partial_shape(1)
        assert c.requests == {(0, False), (1, True)}
        c.set_input_tensors([int_vector(4, 5), None, None])
        c.set_input_tensors_as_shapes([None, [6, None], TensorShape([7, 8])])
        assert repr(c.make_shape_from_shape_tensor(0)) == "[4,5]"
        assert repr(c.make_shape_from_shape_tensor(1)) == "[6,?]"
        assert repr(c.make_shape_from_shape_tensor(2)) == "[7,8]"
        read = c.make_shape_from_shape_tensor_treat_scalar_as_unknown_shape
        assert repr(read(1)) == "[6,?]"

    def test_more_sizes_than_a_tensor_has_say_nothing(self, context):
        for count, expected in ((254, 254), (255, None)):
            sizes = int_vector(*[1] * count)
            c = context([f"[{count}]", f"[{count}]"], constants={0: sizes})
            for i in (0, 1):
                dims = c.make_shape_from_shape_tensor(i).dims
                assert (None if dims is None else len(dims)) == expected
        with pytest.raises(InvalidArgumentError, match="-2"):
            context(["[255]"], constants={0: int_vector(*[-2] * 255)}).make_shape_from_shape_tensor(
                0
            )

    def test_nothing_is_requested_before_it_is_asked_for(self, context):
        c = context(["[2]", "[2]"])
        assert c.input_tensor(1) is None
        assert [c.requested_input_tensor(i) for i in (0, 1)] == [False, True]
        c.request_input_tensor_as_partial_shape(0)
        assert [c.requested_input_tensor_as_partial_shape(i) for i in (0, 1)] == [True, False]

    @pytest.mark.parametrize(
        ("shape", "value", "facts"),
        [
            ("[1]", int_vector(-2), "Invalid value in tensor used for shape: -2"),
            ("[1]", np.array([1.0], np.float32), "must be int32 or int64, but was float"),
            ("[1]", np.array([1], np.int16), "must be int32 or int64, but was int16"),
            ("[]", np.int32(5), "Shape must be rank 1 but is rank 0"),
            ("[2,2]", None, "Shape must be rank 1 but is rank 2"),
            ("?", np.zeros((2, 2), np.int32), "rank 1, but was rank 2"),
        ],
    )
    def test_what_holds_no_shape_is_refused(self, context, shape, value, facts):
        c = context([shape], constants={0: value})
        with pytest.raises(InvalidArgumentError, match=facts):
            c.make_shape_from_shape_tensor(0)

    def test_an_absurd_number_of_unknown_dimensions_is_refused(self, context):
        c = context([f"[{1 << 25}]"])
        with pytest.raises(InternalError, match="33554432"):
            c.make_shape_from_shape_tensor(0)

    def test_a_scalar_may_stand_for_an_unknown_shape(self, context):
        c = context(["[]", "[]", "[]", "[2]"], constants={0: np.int32(-1), 1: np.int64(5)})
        read = c.make_shape_from_shape_tensor_treat_scalar_as_unknown_shape
        assert repr(read(0)) == "?"
        assert repr(read(2)) == "?"
        assert repr(read(3)) == "[?,?]"
        with pytest.raises(InvalidArgumentError, match=r"rank 0 it must have value -1.*5"):
            read(1)
        with pytest.raises(InvalidArgumentError, match="at most rank 1 but is rank 2"):
            context(["[1,1]"]).make_shape_from_shape_tensor_treat_scalar_as_unknown_shape(0)


class TestDimsFromScalars:
    def test_a_scalar_holds_a_size(self, context):
        c = context(["[]"] * 5, constants={0: np.int32(7), 1: np.array(0), 2: np.int32(-1)})
        assert c.make_dim_for_scalar_input(0).value == 7
        assert c.make_dim_for_scalar_input(1).value == 0
        assert c.make_dim_for_scalar_input(3).value == -1
        with pytest.raises(InvalidArgumentError, match="input 2, must be non-negative but is -1"):
            c.make_dim_for_scalar_input(2)

    @pytest.mark.parametrize(
        ("value", "rank", "axis"), [(2, 3, 2), (-1, 3, 2), (-3, 3, 0), (9, -1, 9), (-4, -1, -1)]
    )
    def test_a_scalar_holds_an_axis(self, context, value, rank, axis):
        c = context(["[]"], constants={0: np.int32(value)})
        assert c.make_dim_for_scalar_input_with_negative_indexing(0, rank).value == axis

    @pytest.mark.parametrize("value", [3, -4])
    def test_an_axis_out_of_range_is_refused(self, context, value):
        c = context(["[]"], constants={0: np.int32(value)})
        with pytest.raises(InvalidArgumentError, match=rf"{value} must be in range \[-3, 3\)"):
            c.make_dim_for_scalar_input_with_negative_indexing(0, 3)

    def test_what_is_no_integer_scalar_is_refused(self, context):
        c = context(["?", "?"], constants={0: int_vector(3), 1: np.float32(3)})
        with pytest.raises(InvalidArgumentError, match="must be scalar but has rank 1"):
            c.make_dim_for_scalar_input(0)
        with pytest.raises(InvalidArgumentError, match="must be int16, int32 or int64"):
            c.make_dim_for_scalar_input(1)
        assert c.get_scalar_from_tensor(int_vector(3, 4), 1) == 4
        assert c.get_scalar_from_tensor(int_vector(3, 4), 0) == 3
        for index in (2, -1):
            with pytest.raises(InvalidArgumentError, match=f"index {index} for Tensor of size 2"):
                c.get_scalar_from_tensor(int_vector(3, 4), index)
        with pytest.raises(InvalidArgumentError, match="must be 1D but has rank 0"):
            c.get_scalar_from_tensor(np.int32(3), 0)

    def test_an_axis_that_is_not_known(self, context):
        c = context(["[]"])
        assert c.make_dim_for_scalar_input_with_negative_indexing(0, 3).value == -1


class TestHandles:
    def test_what_inputs_hold_is_refined_by_merging(self, context):
        c = context(["[]"])
        assert c.input_handle_shapes_and_types(0) is None
        held = [ShapeAndType(c.make_shape([1, None]), DataType.DT_INVALID)]
        assert c.merge_input_handle_shapes_and_types(0, held)
        refined = [ShapeAndType(c.make_shape([None, 2]), F)]
        assert c.merge_input_handle_shapes_and_types(0, refined)
        (found,) = c.input_handle_shapes_and_types(0)
        assert (repr(found.shape), found.dtype) == ("[1,2]", F)
        assert not c.merge_input_handle_shapes_and_types(0, refined)

    def test_what_contradicts_is_left_aside(self, context):
        c = context(["[]"])
        shape = c.make_shape([1, 2])
        c.set_input_handle_shapes_and_types(0, [ShapeAndType(shape, F)])
        for other in (
            [],
            [ShapeAndType(shape, I32)],
            [ShapeAndType(c.make_shape([1, 3]), F)],
            [ShapeAndType(c.make_shape([1, 2]), F)],
        ):
            assert not c.merge_input_handle_shapes_and_types(0, other)
            assert c.input_handle_shapes_and_types(0) == [ShapeAndType(shape, F)]

    def test_relaxing_forgets_sizes_but_no_types(self, context):
        c = context(["[]"])
        c.set_output_handle_shapes_and_types(0, [ShapeAndType(c.make_shape([1, 2]), F)])
        new = c.make_shape([1, 3])
        assert c.relax_output_handle_shapes_and_merge_types(0, [ShapeAndType(new, F)])
        assert repr(c.output_handle_shapes_and_types(0)[0].shape) == "[1,?]"
        assert not c.relax_output_handle_shapes_and_merge_types(0, [ShapeAndType(new, I32)])
        assert c.merge_output_handle_shapes_and_types(0, [ShapeAndType(c.make_shape([1, 4]), F)])
        assert repr(c.output_handle_shapes_and_types(0)[0].shape) == "[1,4]"

    def test_inputs_are_relaxed_too(self, context):
        c = context(["[]"])
        held = [ShapeAndType(c.make_shape([1, 2]), F)]
        assert c.relax_input_handle_shapes_and_merge_types(0, held)
        assert c.input_handle_shapes_and_types(0) == held
        new = [ShapeAndType(c.make_shape([1, 3]), F)]
        assert c.relax_input_handle_shapes_and_merge_types(0, new)
        assert repr(c.input_handle_shapes_and_types(0)[0].shape) == "[1,?]"
        assert not c.relax_input_handle_shapes_and_merge_types(0, [*new, *new])
        c.set_output_handle_shapes_and_types(0, held)
        assert dict(c.held_by_outputs()) == {0: held}

    def test_they_are_given_as_shape_and_dtype(self, context):
        c = context(["[]", "[]"], handle_shapes=[[(TensorShape([2]), F)]])
        assert repr(c.input_handle_shapes_and_types(0)[0].shape) == "[2]"
        assert c.input_handle_shapes_and_types(1) is None


class TestRunShapeFn:
    def test_one_call(self):
        def shape_fn(c):
            c.set_output(0, c.make_shape_from_shape_tensor(1))
            c.set_output(1, c.vector(c.graph_def_version))

        op = OpDefBuilder("Test").input("x: float").input("s: int32").output("y: float")
        data = op.output("z: float").set_shape_fn(shape_fn).finalize()
        node = node_def("n", "Test")
        for value, found in (
            (int_vector(2, 3), "[2,3]"), (None, "[?,?]"), (np.array([4, 5]), "[4,5]")
        ):  # fmt: skip
            c = infer_call(data, node, [[1], [2]], [None, value], 7)
            assert [repr(shape) for shape in c.outputs()] == [found, "[7]"]
        assert repr(infer_call(data, node, [None, None], [], 7).output(0)) == "?"
        for wrong in (int_vector(-2, 3), np.array([1.5])):
            with pytest.raises(InvalidArgumentError):
                infer_call(data, node, [[1], [None]], [None, wrong], 7)

    def test_outputs_left_alone_become_unknown(self, context):
        c = context(["[2]"], outputs=2)
        run_shape_fn(OpRegistrationData(c.op_def, lambda c: c.set_output(1, c.input(0))), c)
        assert repr(c.output(0)) == "?"
        assert c.output(1) is c.input(0)

    def test_values_of_a_call_stand_for_shapes_where_they_can(self):
        seen = []
        op = OpDefBuilder("Test").input("s: T").attr("T: type")
        op.set_shape_fn(lambda c: seen.append(c.input_tensors_as_shape(0)))
        node = node_def("n", "Test", T=I32)
        for value, found in (
            (int_vector(2, 0, 3), "[2,0,3]"), (np.array([4]), "[4]"), (int_vector(), "[]"),
            (int_vector(2, -1), "None"), (np.array([1.5]), "None"), (np.int32(3), "None"),
            (np.array([1], np.int16), "None"), (None, "None"),
        ):  # fmt: skip
            infer_call(op.finalize(), node, [None], [value], 7)
            assert repr(seen.pop()) == found

    def test_an_error_names_node_shapes_and_the_constants_used(self, context):
        def shape_fn(c):
            c.make_shape_from_shape_tensor(1)
            c.make_shape_from_shape_tensor(2)
            c.with_rank(c.input(0), 1)

        c = context(
            ["[2,?]", "[2]", "[1]", "[1]"],
            attrs={"n": 3},
            constants={1: int_vector(4, 5), 3: int_vector(6)},
            as_shapes={2: "[7]"},
        )
        with pytest.raises(InvalidArgumentError) as error:
            run_shape_fn(OpRegistrationData(c.op_def, shape_fn), c)
        assert str(error.value) == (
            "Shape must be rank 1 but is rank 2 for '{{node test}} = Test[n=3]()' with input "
            "shapes: [2,?], [2], [1], [1] and with computed input tensors: input[1] = <4 5> and "
            "with input tensors computed as partial shapes: input[2] = [7]."
        )
        assert (error.value.node, error.value.op) == ("test", "Test")

    def test_an_error_shows_the_first_values_of_long_constants(self, context):
        def shape_fn(c):
            c.input_tensor(0)
            c.with_rank(c.input(0), 2)

        for count, end in ((256, " 254 255>."), (257, " 254 255...>."), (300, " 254 255...>.")):
            c = context([f"[{count}]"], constants={0: np.arange(count)})
            with pytest.raises(InvalidArgumentError) as error:
                run_shape_fn(OpRegistrationData(c.op_def, shape_fn), c)
            assert str(error.value).endswith(end)

    def test_an_op_without_a_shape_function_says_so(self, context):
        c = context()
        with pytest.raises(FailedPreconditionError, match="op 'Test' was registered without"):
            run_shape_fn(OpRegistrationData(c.op_def), c)

    def test_a_returned_shape_is_not_taken_for_a_set_one(self, context):
        c = context(["[2]"], outputs=2)

        def shape_fn(c):
            c.set_output(0, c.input(0))
            return c.input(0)

        with pytest.raises(UnsetOutputError) as error:
            run_shape_fn(OpRegistrationData(c.op_def, shape_fn), c)
        assert str(error.value) == (
            "the shape function of Test returned [2] and left output 2 of 2 without a shape; it must "
            "call c.set_output(1, shape): nothing uses a returned value"
        )

    def test_what_is_returned_beside_set_shapes_does_no_harm(self, context):
        c = context(["[2]"])

        def shape_fn(c):
            c.set_output(0, c.input(0))
            return c.input(0)

        run_shape_fn(OpRegistrationData(c.op_def, shape_fn), c)
        assert c.output(0) is c.input(0)
