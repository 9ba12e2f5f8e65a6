"""Gradients of the ops of opkernel.ops.image against finite differences."""

import numpy as np
import pytest

import opkernel
from opkernel.testing import Tolerance, check_gradient

RANDOM = np.random.default_rng(2)
IMAGE = RANDOM.normal(size=(2, 4, 5, 2))
ROUGHLY = {"delta": 1e-2, "tolerance": Tolerance(2e-3, 2e-2)}
SIZE = np.array([6, 3], np.int32)


@pytest.mark.parametrize(
    "attrs", [{}, {"align_corners": True}, {"half_pixel_centers": True}], ids=str
)
def test_of_resized_images(attrs):
    check_gradient("ResizeNearestNeighbor", [IMAGE, SIZE], attrs)
    small = IMAGE.astype(np.float32)
    check_gradient("ResizeBilinear", [small, SIZE], attrs, **ROUGHLY)
    check_gradient("ResizeBicubic", [small, SIZE], attrs, **ROUGHLY)


def test_of_scaled_and_translated_images():
    image, scale, translation = (np.array(v, np.float32) for v in (IMAGE, [1.5, 0.8], [0.3, -0.2]))
    check_gradient(
        "ScaleAndTranslate", [image, SIZE, scale, translation], without=[2, 3], **ROUGHLY
    )


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_of_crops(method):
    boxes = np.array([[0.12, 0.2, 0.77, 0.83], [0.31, 0.05, 0.9, 0.6]], np.float32)
    inputs = [IMAGE.astype(np.float32), boxes, np.array([1, 0], np.int32), SIZE]
    check_gradient("CropAndResize", inputs, {"method": method}, without=[1], **ROUGHLY)


def test_of_crops_by_their_boxes():
    """Of a plane, on which interpolation is exact and has no kinks."""
    rows, columns = np.meshgrid(np.arange(4.0), np.arange(5.0), indexing="ij")
    plane = (0.3 * rows - 0.2 * columns)[None, ..., None].astype(np.float32)
    boxes = np.array([[0.12, 0.2, 0.77, 0.83]], np.float32)
    inputs = [plane, boxes, np.array([0], np.int32), SIZE]
    check_gradient("CropAndResize", inputs, without=[0], **ROUGHLY)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_of_patches(padding):
    attrs = {"ksizes": [1, 2, 3, 1], "strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1]}
    check_gradient("ExtractImagePatches", [IMAGE], attrs | {"padding": padding})


def test_of_colours():
    colours = np.random.default_rng(5).permutation(np.linspace(0.1, 0.9, 30)).reshape(2, 5, 3)
    check_gradient("RGBToHSV", [colours])
    ties = np.array([[0.5, 0.5, 0.2], [0.3, 0.3, 0.3], [0.0, 0.4, 0.0]], np.float32)
    with opkernel.Graph().as_default() as graph:
        x = opkernel.constant(ties)
        (found,) = opkernel.gradients(opkernel.raw_ops.RGBToHSV(images=x), x)
        values = opkernel.Session(graph).run(found)
    expected = [  # TensorFlow's
        [1.2444444, 0.5555556, -2],
        [4.333333, 0, -3.3333333],
        [-0.41666666, 1, 0.41666663],
    ]
    np.testing.assert_allclose(values, expected, rtol=1e-5)


def test_of_patches_of_volumes():
    attrs = {"ksizes": [1, 2, 2, 1, 1], "strides": [1, 1, 2, 1, 1], "padding": "SAME"}
    check_gradient("ExtractVolumePatches", [RANDOM.normal(size=(2, 3, 4, 2, 2))], attrs)


def test_of_an_image_moved_by_whole_pixels():
    """A permutation of pixels, whose gradient is the permutation back."""
    turn = np.array([[0, 1, 0, 1, 0, 0, 0, 0]], np.float32)  # x and y exchanged
    inputs = [IMAGE[:, :4, :4], turn, np.array([4, 4], np.int32)]
    attrs = {"interpolation": "NEAREST"}
    check_gradient("ImageProjectiveTransformV2", inputs, attrs, without=[1])
    filled = [*inputs, np.float32(2)]
    check_gradient("ImageProjectiveTransformV3", filled, attrs, without=[1, 3])
