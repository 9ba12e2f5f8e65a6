"""Uniformly quantised sums, products and convolutions. Literals are TensorFlow's answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.ops.quantized.calls import f32, plain, quantized

from opkernel import errors, raw_ops
from opkernel.kernel import allocation_limit
from opkernel.proto import UniformQuantizedConvolutionDimensionNumbersAttr

INT32 = np.iinfo(np.int32)
NHWC = UniformQuantizedConvolutionDimensionNumbersAttr(
    input_batch_dimension=0,
    input_feature_dimension=3,
    input_spatial_dimensions=[1, 2],
    kernel_input_feature_dimension=2,
    kernel_output_feature_dimension=3,
    kernel_spatial_dimensions=[0, 1],
    output_batch_dimension=0,
    output_feature_dimension=3,
    output_spatial_dimensions=[1, 2],
).SerializeToString()


def _limits(*sides: str) -> dict[str, int]:
    """Limits that no kernel reads, except those of an output, which are int32's."""
    unread = {f"{side}_quantization_{end}_val": 0 for side in sides for end in ("min", "max")}
    ends = {"output_quantization_min_val": INT32.min, "output_quantization_max_val": INT32.max}
    return unread | ends if "lhs" in sides else unread


def _scales(**values: Any) -> dict[str, Any]:
    """`lhs=(scales, zero points)` as the inputs of that name."""
    inputs = {}
    for side, (scales, zero_points) in values.items():
        inputs[f"{side}_scales"] = f32(scales)
        inputs[f"{side}_zero_points"] = np.asarray(zero_points, np.int32)
    return inputs


ONE = (1.0, 0)


def add(lhs, rhs, lhs_by=ONE, rhs_by=ONE, output_by=ONE, **attrs):
    scales = _scales(lhs=lhs_by, rhs=rhs_by, output=output_by)
    lhs, rhs = quantized("qint32", lhs), quantized("qint32", rhs)
    attrs = _limits("lhs", "rhs") | attrs
    return plain(raw_ops.UniformQuantizedAdd(lhs=lhs, rhs=rhs, **scales, **attrs))


def dot(lhs, rhs, lhs_by=ONE, rhs_by=ONE, output_by=ONE, **attrs):
    scales = _scales(lhs=lhs_by, rhs=rhs_by, output=output_by)
    lhs, rhs = quantized("qint8", lhs), quantized("qint8", rhs)
    attrs = _limits("lhs", "rhs") | attrs
    return plain(raw_ops.UniformQuantizedDot(lhs=lhs, rhs=rhs, Tout="qint32", **scales, **attrs))


def convolution(lhs, rhs, lhs_by=ONE, rhs_by=ONE, output_by=ONE, **attrs):
    scales = _scales(lhs=lhs_by, rhs=rhs_by, output=output_by)
    lhs, rhs = quantized("qint8", lhs), quantized("qint8", rhs)
    attrs = _limits("lhs", "rhs") | {"padding": "VALID"} | attrs
    return plain(
        raw_ops.UniformQuantizedConvolution(lhs=lhs, rhs=rhs, Tout="qint32", **scales, **attrs)
    )


def clip(operand, low, high, scales, zero_points, axis=-1):
    operand, low, high = (quantized("qint32", x) for x in (operand, low, high))
    return plain(
        raw_ops.UniformQuantizedClipByValue(
            operand=operand,
            min=low,
            max=high,
            scales=f32(scales),
            zero_points=np.asarray(zero_points, np.int32),
            quantization_axis=axis,
            quantization_min_val=0,
            quantization_max_val=0,
        )
    )


LHS, RHS = [[1, -2, 3], [4, 5, -128]], [[10, 20], [-30, 40], [50, -60]]


class TestAdd:
    X = ((100, -7, 5), (40, 3, -9))

    def test_operands_take_the_scale_of_the_output(self):
        found = add(self.X, [10, 20, 30], (0.5, 3), (2, -1), (0.75, 7))
        assert found.tolist() == [[101, 56, 91], [61, 63, 82]]

    def test_channels_have_scales_and_limits_hold(self):
        found = add(
            self.X,
            [[10, 20, 30]],
            ([0.5, 1, 2], [0, 1, 2]),
            (2, -1),
            ([0.75, 0.5, 3], [7, 8, 9]),
            lhs_quantization_axis=1,
            output_quantization_axis=1,
            output_quantization_min_val=-100,
            output_quantization_max_val=60,
        )
        assert found.tolist() == [[60, 60, 32], [60, 60, 23]]

    def test_integers_pass_through_float(self):
        assert add([16777217, 3], [0, 0]).tolist() == [16777216, 3]

    def test_of_limits_in_the_wrong_order_one_holds_after_the_other(self):
        ends = {"output_quantization_min_val": 10, "output_quantization_max_val": -10}
        assert add([-5, 0, 5, 100], [0] * 4, **ends).tolist() == [10, 10, 10, -10]

    def test_lhs_with_one_scale_has_no_channels_of_the_output(self):
        channels = ([1.0, 2.0, 3.0], [0, 0, 0])
        with pytest.raises(errors.InvalidArgumentError, match="3 channels"):
            add(self.X, self.X, output_by=channels, output_quantization_axis=1)

    @pytest.mark.parametrize(
        ("call", "fact"),
        [
            ({"lhs_by": ([1.0], [0])}, "shape \\[\\], got \\[1\\]"),
            ({"lhs_by": (1.0, [0])}, "zero_points must have shape"),
            ({"rhs_by": (0.0, 0)}, "rhs scales .* positive"),
            ({"output_by": (np.nan, 0)}, "output scales .* positive"),
            ({"lhs_by": (1e-44, 0)}, "lhs scales .* positive"),
            ({"lhs_by": (np.inf, 0)}, "finite"),
            ({"lhs_quantization_axis": 2}, "in range \\[0, input.rank\\)"),
            ({"output_quantization_axis": -2}, "must be >= -1"),
            ({"output_quantization_max_val": 2**31}, "int32"),
        ],
    )
    def test_wrong_calls(self, call, fact):
        with pytest.raises(errors.InvalidArgumentError, match=fact):
            add(self.X, self.X, **call)

    def test_shapes_that_do_not_broadcast(self):
        with pytest.raises(errors.InvalidArgumentError, match=r"Cannot Add .*\[2,3\] \[2\]"):
            add(self.X, [1, 2])


class TestClip:
    def test_one_pair_of_ends(self):
        assert clip([16777217, 5, 2**24], 7, 16777217, 1, 0).tolist() == [16777217, 7, 2**24]

    def test_the_upper_end_wins(self):
        assert clip([1, 5, 9], 6, 4, 1, 0).tolist() == [4, 4, 4]

    def test_each_channel_has_ends(self):
        found = clip([[1, 5, 9], [-1, -5, -9]], [0, 6], [4, 8], [1, 1], [0, 0], axis=0)
        assert found.tolist() == [[1, 4, 4], [6, 6, 6]]

    def test_ends_are_as_many_as_scales(self):
        with pytest.raises(errors.InvalidArgumentError, match="must have shape"):
            clip([1, 2], [0], [4], [1, 1], [0, 0], axis=0)


class TestDot:
    def test_one_scale(self):
        found = dot(LHS, RHS, (0.5, 1), (0.25, -3), (2, 10))
        assert found.tolist() == [[22, -5], [-422, 485]]

    def test_a_scale_for_each_column(self):
        found = dot(
            LHS,
            RHS,
            (0.5, 1),
            ([0.25, 4], [-3, 2]),
            ([2, 1], [10, -10]),
            rhs_quantization_axis=1,
            output_quantization_axis=1,
            output_quantization_min_val=-500,
            output_quantization_max_val=1000,
        )
        assert found.tolist() == [[22, -486], [-422, 1000]]

    def test_sums_are_rounded_to_float_where_there_is_one_scale(self):
        lhs, rhs = [[127] * 3], [[127]] * 3
        assert dot(lhs, rhs, (1, -4000), (1, -4002)).tolist() == [[51121152]]
        exact = 3 * 4127 * 4129
        assert dot(lhs, rhs, (1, -4000), ([1], [-4002])).tolist() == [[exact]]

    @pytest.mark.parametrize(
        ("left", "right"), [(50000, 50001), (2**31 - 8, 3), (5, 2**31 - 9), (2**31 - 8, 2**31 - 9)]
    )
    def test_sums_wrap_around(self, left, right):
        found = dot([[0] * 3], [[0]] * 3, (1, -left), ([1], [-right]))
        assert found.tolist() == [[(3 * left * right + 2**31) % 2**32 - 2**31]]

    @given(st.integers(0, 3), st.integers(0, 5), st.integers(0, 3), st.integers(0, 2**32 - 1))
    def test_columns_are_independent(self, m, k, n, seed):
        rng = np.random.default_rng(seed)
        lhs, rhs = rng.integers(-128, 128, (m, k)), rng.integers(-128, 128, (k, n))
        scales, zeros = 10.0 ** rng.uniform(-2, 2, n), rng.integers(-128, 128, n)
        whole = dot(lhs, rhs, (0.5, 3), (scales, zeros))
        assert whole.shape == (m, n)
        for i in range(n):
            column = dot(lhs, rhs[:, i : i + 1], (0.5, 3), (scales[i], zeros[i]))
            np.testing.assert_array_equal(whole[:, i : i + 1], column)

    @pytest.mark.parametrize(
        ("call", "fact"),
        [
            ({"lhs_by": ([1.0, 1.0], [0, 0])}, "must have shape \\[\\]"),
            ({"output_by": ([1.0, 1.0], [0, 0])}, "output must be also per-tensor"),
            ({"rhs_by": ([1.0], [0])}, "must have shape \\[2\\]"),
            ({"lhs_quantization_axis": 0}, "must be -1"),
            ({"rhs_quantization_axis": 0}, "must be 1 .* or -1"),
            ({"rhs_by": (-1.0, 0)}, "rhs scales .* positive"),
        ],
    )
    def test_wrong_calls(self, call, fact):
        with pytest.raises(errors.InvalidArgumentError, match=fact):
            dot(LHS, RHS, **call)

    def test_memory_is_asked_for_first(self):
        with allocation_limit(10**6), pytest.raises(errors.ResourceExhaustedError):
            dot(np.zeros((1000, 0)), np.zeros((0, 1000)))


class TestDotHybrid:
    def test_rows_are_quantised_over_their_own_range(self):
        found = raw_ops.UniformQuantizedDotHybrid(
            lhs=f32([[1, -2.5, 3], [0, 0, 0], [-1, -2, -3]]),
            rhs=quantized("qint8", RHS),
            Tout="float",
            rhs_quantization_axis=1,
            **_scales(rhs=([0.25, 4], [-3, 2])),
            **_limits("rhs"),
        )
        assert found.tolist() == [
            [59.83676528930664, -1052.37646484375],
            [0.0, 0.0],
            [-29.5, 368.0],
        ]

    @given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 2**32 - 1))
    def test_the_error_is_that_of_steps(self, m, k, seed):
        rng = np.random.default_rng(seed)
        lhs, rhs = f32(rng.normal(size=(m, k))), rng.integers(-128, 128, (k, 3))
        found = raw_ops.UniformQuantizedDotHybrid(
            lhs=lhs,
            rhs=quantized("qint8", rhs),
            Tout="float",
            **_scales(rhs=(0.5, 7)),
            **_limits("rhs"),
        )
        width = np.maximum(lhs.max(1), 0) - np.minimum(lhs.min(1), 0)
        weights = (rhs - 7) * 0.5
        bound = np.outer(width / 255, np.abs(weights).sum(0)) * 1.01 + 1e-4
        assert (np.abs(found - lhs @ weights) <= bound).all()


def _sums(images, filters, strides, before, image_dilation, filter_dilation, groups, counts):
    """The definition: the sums of [batch, channels, *space] and [out, channels, *space], number by number."""
    features, batches = groups
    outputs, depth, *window = filters.shape
    batch = len(images) // batches
    sums = np.zeros((batch, outputs, *counts), np.int64)
    for image, out, *place in np.ndindex(*sums.shape):
        lhs_image = out // (outputs // batches) * batch + image
        first = out // (outputs // features) * depth
        for channel, *at in np.ndindex(depth, *window):
            spots = []
            for i, element in enumerate(at):
                spot = place[i] * strides[i] + element * filter_dilation[i] - before[i]
                spots.append(spot // image_dilation[i] if spot % image_dilation[i] == 0 else -1)
            inside = all(0 <= s < size for s, size in zip(spots, images.shape[2:], strict=True))
            if inside:
                value = int(images[(lhs_image, first + channel, *spots)])
                sums[(image, out, *place)] += value * int(filters[(out, channel, *at)])
    return sums


class TestConvolution:
    def test_one_dimension(self):
        by = ((0.5, 300), (0.25, 1), (2, 5))
        found = convolution([[[1, 2, 3, 4]]], [[[1, -1]]], *by, padding="SAME")
        assert found.tolist() == [[[42, 42, 42, 37]]]
        found = convolution(
            [[[1, 2, 3, 4]]],
            [[[1, -1]]],
            *by,
            padding="EXPLICIT",
            explicit_padding=[2, 1],
            lhs_dilation=[2],
            window_strides=[2],
        )
        assert found.tolist() == [[[37, 37, 37, 37, 37]]]

    @given(st.data())
    def test_sums_are_those_of_the_definition(self, data):
        def draw(low, high):
            return data.draw(st.integers(low, high))

        features, batches = draw(1, 2), draw(1, 2)
        shape = (draw(1, 2) * batches, draw(1, 2) * features, draw(1, 5), draw(1, 4))
        window = (draw(1, 2) * features * batches, shape[1] // features, draw(1, 3), draw(1, 2))
        strides, image_dilation, filter_dilation, before = (
            [draw(low, low + 2) for _ in range(2)] for low in (1, 1, 1, 0)
        )
        rng = np.random.default_rng(draw(0, 1000))
        images, filters = (rng.integers(-128, 128, each) for each in (shape, window))
        sizes = [
            (n - 1) * d + 1 + b for n, d, b in zip(shape[2:], image_dilation, before, strict=True)
        ]
        reach = [(n - 1) * d for n, d in zip(window[2:], filter_dilation, strict=True)]
        assume(all(size > more for size, more in zip(sizes, reach, strict=True)))
        counts = [
            -(-(size - more) // stride)
            for size, more, stride in zip(sizes, reach, strides, strict=True)
        ]
        found = convolution(
            images,
            filters,
            (1, -2),
            (1, 5),
            padding="EXPLICIT",
            explicit_padding=[before[0], 0, before[1], 0],
            window_strides=strides,
            lhs_dilation=image_dilation,
            rhs_dilation=filter_dilation,
            feature_group_count=features,
            batch_group_count=batches,
        )
        groups, dilations = (features, batches), (image_dilation, filter_dilation)
        expected = _sums(images + 2, filters - 5, strides, before, *dilations, groups, counts)
        np.testing.assert_array_equal(found, expected)

    def test_layouts_only_move_dimensions(self):
        rng = np.random.default_rng(3)
        images, filters = rng.integers(-128, 128, (2, 3, 5, 4)), rng.integers(-9, 9, (6, 3, 2, 3))
        by = (
            (0.5, 3),
            (np.linspace(0.1, 2, 6), np.arange(6)),
            (np.linspace(1, 2, 6), np.arange(6)),
        )
        attrs = {"padding": "SAME", "window_strides": [2, 1]}
        found = convolution(
            images, filters, *by, rhs_quantization_axis=0, output_quantization_axis=1, **attrs
        )
        other = convolution(
            images.transpose(0, 2, 3, 1),
            filters.transpose(2, 3, 1, 0),
            *by,
            rhs_quantization_axis=3,
            output_quantization_axis=3,
            dimension_numbers=NHWC,
            **attrs,
        )
        np.testing.assert_array_equal(found, other.transpose(0, 3, 1, 2))

    def test_hybrid_images_are_quantised_over_their_own_range(self):
        rng = np.random.default_rng(4)
        images, filters = f32(rng.normal(size=(3, 2, 4, 4))), rng.integers(-128, 128, (5, 2, 4, 4))
        scales = _scales(rhs=(np.linspace(0.1, 2, 5), np.arange(5)))
        whole = {"rhs_quantization_axis": 0, "padding": "VALID", **_limits("rhs")}
        found = raw_ops.UniformQuantizedConvolutionHybrid(
            lhs=images, rhs=quantized("qint8", filters), Tout="float", **scales, **whole
        )
        product = raw_ops.UniformQuantizedDotHybrid(
            lhs=images.reshape(3, -1),
            rhs=quantized("qint8", filters.reshape(5, -1).T),
            Tout="float",
            rhs_quantization_axis=1,
            **scales,
            **_limits("rhs"),
        )
        np.testing.assert_array_equal(found.reshape(3, 5), product)

    @pytest.mark.parametrize(
        ("images", "filters", "expected"),
        [
            ((0, 1, 3), (2, 1, 2), (0, 2, 2)),
            ((1, 1, 3), (0, 1, 2), (1, 0, 2)),
            ((1, 1, 1), (1, 1, 2), (1, 1, 0)),
            ((1, 2, 3), (1, 2, 0), (1, 1, 4)),
        ],
    )
    def test_nothing_to_add_up(self, images, filters, expected):
        found = convolution(np.ones(images), np.ones(filters))
        assert found.shape == expected
        assert not found.any()

    @pytest.mark.parametrize(
        ("attrs", "fact"),
        [
            ({"padding": "FULL"}, "one of \\[EXPLICIT"),
            ({"explicit_padding": [1, 1]}, "must be empty"),
            ({"padding": "EXPLICIT", "explicit_padding": [1]}, "must be 2 \\* \\(rank - 2\\)"),
            ({"padding": "EXPLICIT", "explicit_padding": [-1, 1]}, "must be >= 0"),
            ({"window_strides": [0]}, "must be >= 1"),
            ({"lhs_dilation": [1, 1]}, "dims - 2"),
            ({"rhs_dilation": [2**31]}, "int32"),
            ({"feature_group_count": 0}, "positive"),
            ({"feature_group_count": 2}, "divide"),
            ({"batch_group_count": 2}, "divide"),
            ({"dimension_numbers": b"\xff"}, "dimension numbers"),
            ({"dimension_numbers": NHWC}, "region \\[0, rank\\)"),
            ({"lhs_quantization_axis": 0}, "must be -1"),
            ({"rhs_quantization_axis": 1}, "must be -1 \\(per-tensor\\) or"),
            ({"output_quantization_axis": 0}, "must be -1 \\(per-tensor\\) or"),
            ({"rhs_quantization_axis": 0}, "must have shape \\[1\\]"),
        ],
    )
    def test_wrong_calls(self, attrs, fact):
        with pytest.raises(errors.InvalidArgumentError, match=fact):
            convolution([[[1, 2, 3]]], [[[1, 2]]], **attrs)

    def test_two_dimensions_with_one_number(self):
        numbers = UniformQuantizedConvolutionDimensionNumbersAttr(
            input_spatial_dimensions=[2],
            kernel_spatial_dimensions=[2],
            output_spatial_dimensions=[2],
        )
        with pytest.raises(errors.InvalidArgumentError, match="one dimension number"):
            convolution([[[1, 2, 3]]], [[[1, 2]]], dimension_numbers=numbers.SerializeToString())

    @pytest.mark.parametrize("padding", [[2**31 - 1, 0], [10**7, 10**7]])
    def test_memory_is_asked_for_first(self, padding):
        with allocation_limit(10**8), pytest.raises(errors.ResourceExhaustedError):
            convolution([[[1]]], [[[1]]], padding="EXPLICIT", explicit_padding=padding)
