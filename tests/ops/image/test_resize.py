import ml_dtypes
import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, ResourceExhaustedError

NAN, INF = np.nan, np.inf
ROW = np.array([1, 2, 3, 4], np.float32).reshape(1, 1, 4, 1)
IMAGE = np.arange(24, dtype=np.float32).reshape(1, 2, 4, 3)
KINDS = ["Bilinear", "Bicubic", "NearestNeighbor", "Area"]


def resize(kind, images, size, **attrs):
    size = np.asarray(size, np.int32)
    return getattr(raw_ops, f"Resize{kind}")(images=images, size=size, **attrs)


def row(kind, width, **attrs):
    return resize(kind, ROW, [1, width], **attrs).ravel().tolist()


@pytest.mark.parametrize(
    ("kind", "attrs", "expected"),
    [
        ("Bilinear", {}, [1, 1.5, 2, 2.5, 3, 3.5, 4, 4]),
        ("Bilinear", {"half_pixel_centers": True}, [1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4]),
        (
            "Bilinear",
            {"align_corners": True},
            [1, 1.428571, 1.857143, 2.285714, 2.714286, 3.142857, 3.571429, 4],
        ),
        ("NearestNeighbor", {}, [1, 1, 2, 2, 3, 3, 4, 4]),
        ("NearestNeighbor", {"half_pixel_centers": True}, [1, 1, 2, 2, 3, 3, 4, 4]),
        ("NearestNeighbor", {"align_corners": True}, [1, 1, 2, 2, 3, 3, 4, 4]),
        ("Area", {}, [1, 1, 2, 2, 3, 3, 4, 4]),
        ("Bicubic", {}, [1, 1.40625, 2, 2.5, 3, 3.59375, 4, 4.09375]),
    ],
)
def test_twice_as_wide(kind, attrs, expected):
    assert row(kind, 8, **attrs) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("kind", "attrs", "width", "expected"),
    [
        ("Bilinear", {}, 2, [1, 3]),
        ("Bilinear", {"align_corners": True}, 2, [1, 4]),
        ("Bilinear", {"half_pixel_centers": True}, 2, [1.5, 3.5]),
        ("Bilinear", {"align_corners": True}, 1, [1]),
        ("NearestNeighbor", {"half_pixel_centers": True}, 2, [2, 4]),
        ("Area", {}, 2, [1.5, 3.5]),
        ("Area", {}, 3, [1.25, 2.5, 3.75]),
    ],
)
def test_narrower(kind, attrs, width, expected):
    assert row(kind, width, **attrs) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({}, [0, 4.5]),
        ({"align_corners": True}, [0, 8]),
        ({"half_pixel_centers": True}, [1.75, 6.25]),
    ],
)
def test_few_rows_of_many(attrs, expected):
    """Of a ramp: the numbers of the rows, between which the new ones lie."""
    image = np.broadcast_to(np.arange(9, dtype=np.float32).reshape(1, 9, 1, 1), (2, 9, 3, 4))
    result = resize("Bilinear", image, [2, 5], **attrs)
    assert result == pytest.approx(
        np.broadcast_to(np.reshape(expected, (1, 2, 1, 1)), (2, 2, 5, 4))
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float64, ml_dtypes.bfloat16])
def test_types(kind, dtype):
    result = resize(kind, IMAGE.astype(dtype), [3, 2])
    assert result.dtype == (dtype if kind == "NearestNeighbor" else np.float32)
    assert result.shape == (1, 3, 2, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_of_one_color_stays(kind):
    image = np.full((2, 5, 3, 2), 7, np.float32)
    np.testing.assert_allclose(resize(kind, image, [4, 11]), 7, rtol=1e-5)


def test_same_size_is_a_copy():
    image = np.array([1, INF, 2, NAN], np.float32).reshape(1, 1, 4, 1)
    result = resize("Bilinear", image, [1, 4])
    np.testing.assert_array_equal(result, image)
    assert not np.shares_memory(result, image)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("images", "size", "message"),
    [
        (IMAGE[0], [2, 2], r"input must be 4-dimensional\[2,4,3\]"),
        (IMAGE, [[2, 2]], r"shape_t must be 1-dimensional\[1,2\]"),
        (IMAGE, [2, 2, 2], r"shape_t must have two elements\[3\]"),
        (IMAGE, [0, 2], "output dimensions must be positive"),
        (IMAGE[..., :0], [2, 2], "at least one channel"),
        (IMAGE[:, :0], [2, 2], "must be of non-zero size"),
        (IMAGE, [2**31 - 1, 2**31 - 1], r"more than 2\*\*63"),
    ],
)
def test_what_is_refused(kind, images, size, message):
    with pytest.raises(InvalidArgumentError, match=message):
        resize(kind, images, size)


def test_outputs_have_a_limit():
    with pytest.raises(ResourceExhaustedError):
        resize("NearestNeighbor", IMAGE, [2**30, 2**30])


def test_alignments_exclude_each_other():
    both = {"align_corners": True, "half_pixel_centers": True}
    for kind in KINDS[:3]:
        with pytest.raises(InvalidArgumentError, match="align_corners must be False"):
            resize(kind, IMAGE, [2, 2], **both)
    for kind in ("Bilinear", "Bicubic"):
        with pytest.raises(InvalidArgumentError, match="align_corners must be False"):
            grad(kind, IMAGE, IMAGE, **both)


def grad(kind, grads, image, **attrs):
    if kind == "NearestNeighbor":
        size = np.array(image.shape[1:3], np.int32)
        return raw_ops.ResizeNearestNeighborGrad(grads=grads, size=size, **attrs)
    op = getattr(raw_ops, f"Resize{kind}Grad")
    return op(grads=grads, original_image=image, **attrs)


@pytest.mark.parametrize("kind", ["Bilinear", "Bicubic", "NearestNeighbor"])
@pytest.mark.parametrize("size", [(5, 3), (2, 9), (1, 1)])
@pytest.mark.parametrize("attrs", [{}, {"align_corners": True}, {"half_pixel_centers": True}])
def test_gradient_is_the_transpose(kind, size, attrs):
    """<resize(x), g> = <x, grad(g)>: resizing is linear."""
    generator = np.random.default_rng(4)
    x = generator.normal(size=(2, 3, 4, 2)).astype(np.float32)
    g = generator.normal(size=(2, *size, 2)).astype(np.float32)
    forward = (resize(kind, x, size, **attrs).astype(np.float64) * g).sum()
    backward = (grad(kind, g, x, **attrs).astype(np.float64) * x).sum()
    assert forward == pytest.approx(backward, rel=1e-4, abs=1e-5)


def test_gradient_types():
    g = np.ones((1, 8, 8, 1), np.float32)
    for dtype in (np.float16, np.float64, ml_dtypes.bfloat16):
        image = np.zeros((1, 2, 2, 1), dtype)
        assert grad("Bilinear", g, image).dtype == dtype
    result = grad("NearestNeighbor", g.astype(np.uint8) * 20, np.zeros((1, 2, 2, 1)))
    assert result.ravel().tolist() == [20 * 16 % 256] * 4


def test_bfloat16_rounds_at_each_addition():
    g = np.full((1, 32, 16, 1), 1, ml_dtypes.bfloat16)
    assert grad("NearestNeighbor", g, np.zeros((1, 1, 1, 1))).astype(float).ravel() == [256]


@pytest.mark.parametrize(
    ("grads", "image", "message"),
    [
        (IMAGE[0], IMAGE, r"input_grad must be 4-dimensional\[2,4,3\]"),
        (IMAGE, IMAGE[0], r"original_image must be 4-dimensional\[2,4,3\]"),
        (IMAGE[:, :0], IMAGE, "resized dimensions must be positive"),
        (IMAGE, IMAGE[:, :, :0], "original dimensions must be positive"),
    ],
)
def test_gradients_that_are_refused(grads, image, message):
    for kind in ("Bilinear", "Bicubic"):
        with pytest.raises(InvalidArgumentError, match=message):
            grad(kind, grads, image)


def test_gradients_of_nothing():
    assert grad("NearestNeighbor", IMAGE[:, :0], IMAGE).tolist() == np.zeros_like(IMAGE).tolist()
    assert grad("Bilinear", IMAGE[:0], IMAGE).shape == (0, 2, 4, 3)
    with pytest.raises(InvalidArgumentError, match="elements must be positive"):
        raw_ops.ResizeNearestNeighborGrad(grads=IMAGE, size=np.array([0, 1], np.int32))
