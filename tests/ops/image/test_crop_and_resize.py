import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, OutOfRangeError
from opkernel.types import float32, half

NAN, INF = np.nan, np.inf
IMAGE = np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1)
WHOLE = [[0, 0, 1, 1]]


def f32(value):
    return np.asarray(value, np.float32)


def i32(value):
    return np.asarray(value, np.int32)


def crop(boxes, index=(0,), size=(2, 2), image=IMAGE, **attrs):
    return raw_ops.CropAndResize(
        image=image, boxes=f32(boxes), box_ind=i32(index), crop_size=i32(size), **attrs
    )


def grad_image(grads, boxes, index=(0,), size=(1, 3, 4, 1), T=float32, **attrs):
    return raw_ops.CropAndResizeGradImage(
        grads=f32(grads), boxes=f32(boxes), box_ind=i32(index), image_size=i32(size), T=T, **attrs
    )


def grad_boxes(grads, boxes, index=(0,), image=IMAGE):
    return raw_ops.CropAndResizeGradBoxes(
        grads=f32(grads), image=image, boxes=f32(boxes), box_ind=i32(index)
    )


@pytest.mark.parametrize(
    ("box", "size", "attrs", "expected"),
    [
        ([0, 0, 1, 1], (2, 2), {}, [0, 3, 8, 11]),
        ([1, 1, 0, 0], (2, 2), {}, [11, 8, 3, 0]),
        ([0, 0, 1, 1], (1, 1), {}, [5.5]),
        ([0.5, 0, 0.5, 0.5], (1, 2), {}, [4, 5.5]),
        ([0.5, 0, 0.5, 0.5], (1, 2), {"method": "nearest"}, [4, 6]),
        ([0.5, 0, 0.5, 1 / 6], (1, 2), {"method": "nearest"}, [4, 5]),
        ([0, 0, 0, 2], (1, 3), {"extrapolation_value": -7.0}, [0, 3, -7]),
        ([-1, 0, 1, 0], (2, 1), {"extrapolation_value": NAN}, [NAN, 8]),
    ],
)
def test_crops(box, size, attrs, expected):
    result = crop([box], size=size, **attrs)
    assert result.shape == (1, *size, 1)
    np.testing.assert_allclose(result.ravel(), expected, rtol=1e-6)


def test_boxes_of_several_images():
    images = np.stack([IMAGE[0], IMAGE[0] + 100])
    result = crop([*WHOLE, *WHOLE], index=[1, 0], image=images)
    assert result[0].ravel().tolist() == [100, 103, 108, 111]
    assert result[1].ravel().tolist() == [0, 3, 8, 11]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, np.float64])
def test_types(dtype):
    result = crop(WHOLE, image=IMAGE.astype(dtype))
    assert result.dtype == np.float32
    assert result.ravel().tolist() == [0, 3, 8, 11]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"image": IMAGE[0]}, "input image must be 4-D"),
        ({"image": IMAGE[:, :0]}, "image dimensions must be positive"),
        ({"boxes": [0, 0, 1, 1]}, r"boxes must be 2-D\[4\]"),
        ({"boxes": [[0, 0, 1]]}, "boxes must have 4 columns"),
        ({"boxes": [[0, 0, INF, 1]]}, "not finite"),
        ({"index": [[0]]}, r"box_index must be 1-D\[1,1\]"),
        ({"index": [0, 0]}, "box_index has incompatible shape"),
        ({"size": [2]}, "crop_size must have two elements"),
        ({"size": [2, 0]}, "crop dimensions must be positive"),
    ],
)
def test_what_is_refused(given, message):
    with pytest.raises(InvalidArgumentError, match=message):
        crop(**{"boxes": WHOLE, **given})


@pytest.mark.parametrize("index", [-1, 1, 2**31 - 1])
def test_images_that_do_not_exist(index):
    grads = np.ones((1, 2, 2, 1))
    for run in (
        lambda: crop(WHOLE, [index]),
        lambda: grad_image(grads, WHOLE, [index]),
        lambda: grad_boxes(grads, WHOLE, [index]),
    ):
        with pytest.raises(OutOfRangeError, match="box_index has values outside"):
            run()


def test_no_boxes():
    none = np.zeros((0, 4))
    assert crop(none, []).shape == (0, 2, 2, 1)
    assert grad_image(np.zeros((0, 2, 2, 1)), none, []).tolist() == np.zeros((1, 3, 4, 1)).tolist()
    assert grad_boxes(np.zeros((0, 2, 2, 1)), none, []).shape == (0, 4)


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_gradient_by_the_image_is_the_transpose(method):
    generator = np.random.default_rng(5)
    image = generator.normal(size=(2, 4, 5, 3)).astype(np.float32)
    boxes, index = generator.uniform(-0.2, 1.2, (3, 4)), [1, 0, 1]
    crops = crop(boxes, index, (3, 2), image, method=method)
    g = generator.normal(size=crops.shape)
    back = grad_image(g, boxes, index, image.shape, method=method)
    assert (crops * g).sum() == pytest.approx((back * image).sum(), rel=1e-4)
    assert grad_image(g, boxes, index, image.shape, half).dtype == np.float16


def test_gradient_by_the_boxes_is_the_slope():
    generator = np.random.default_rng(6)
    image = generator.normal(size=(1, 6, 7, 2)).astype(np.float32)
    boxes = np.array([[0.13, 0.21, 0.77, 0.85], [0.45, 0.1, 0.62, 0.93]])
    for size in ((3, 4), (1, 1)):
        g = generator.normal(size=(2, *size, 2))
        result = grad_boxes(g, boxes, [0, 0], image)
        step = 1e-3
        for place in np.ndindex(boxes.shape):
            high, low = boxes.copy(), boxes.copy()
            high[place] += step
            low[place] -= step
            rise = ((crop(high, [0, 0], size, image) - crop(low, [0, 0], size, image)) * g).sum()
            assert result[place] == pytest.approx(rise / (2 * step), rel=2e-2, abs=2e-2)


@pytest.mark.parametrize("box", [[0, INF, 1, 1], [0, 0, NAN, 1], [3e38, 0, -3e38, 1]])
def test_boxes_without_places_in_the_image_are_refused(box):
    """TensorFlow's process ends at these."""
    grads = np.ones((1, 2, 2, 1))
    for call in (lambda: grad_image(grads, [box]), lambda: grad_boxes(grads, [box])):
        with pytest.raises(InvalidArgumentError, match="Boxes are too large"):
            call()
    with pytest.raises(InvalidArgumentError, match="Boxes"):
        crop([box])


@pytest.mark.parametrize("boxes", [(0,), (0, 0, 4), (1, 0, 4), (0, 4, 1)])
@pytest.mark.parametrize("index", [(0,), (0, 1), (0, 0)])
def test_ranks_are_checked_without_boxes(boxes, index):
    boxes, index, grads = np.zeros(boxes), np.zeros(index), np.zeros((0, 2, 2, 1))
    calls = (
        lambda: crop(boxes, index),
        lambda: grad_image(grads, boxes, index),
        lambda: grad_boxes(grads, boxes, index),
    )
    for call in calls:
        with pytest.raises(InvalidArgumentError, match="boxes must be 2-D"):
            call()


@pytest.mark.parametrize("index", [(), (0, 1), (1, 0)])
def test_the_rank_of_indices_is_checked_without_boxes(index):
    with pytest.raises(InvalidArgumentError, match="box_index must be 1-D"):
        crop(np.zeros((0, 4)), np.zeros(index))


def test_gradients_without_boxes():
    assert crop(np.zeros((0, 4)), []).shape == (0, 2, 2, 1)
    assert not grad_image(np.zeros((0, 2, 2, 1)), np.zeros((0, 4)), []).any()
    assert grad_boxes(np.zeros((0, 2, 2, 1)), np.zeros((0, 3)), []).shape == (0, 4)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: grad_image(np.ones((2, 2, 2, 1)), WHOLE), "incompatible shape"),
        (lambda: grad_image(np.ones((1, 0, 2, 1)), WHOLE), "grads dimensions must be positive"),
        (
            lambda: grad_image(np.ones((1, 2, 2, 1)), WHOLE, size=(1, 3, 4)),
            "image_size must have 4 elements",
        ),
        (
            lambda: grad_image(np.ones((1, 2, 2, 1)), WHOLE, size=(1, 3, 4, 2)),
            "image_size and grads are incompatible",
        ),
        (
            lambda: grad_image(np.ones((1, 2, 2, 1)), WHOLE, size=(1, 0, 4, 1)),
            "image dimensions must be positive",
        ),
        (lambda: grad_boxes(np.ones((1, 2, 2, 2)), WHOLE), "depth differ"),
        (lambda: grad_boxes(np.ones((2, 2, 1)), WHOLE), "grads image must be 4-D"),
    ],
)
def test_gradients_that_are_refused(run, message):
    with pytest.raises(InvalidArgumentError, match=message):
        run()
