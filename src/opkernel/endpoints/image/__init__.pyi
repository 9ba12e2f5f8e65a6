"""Written by tools/generate_stubs.py from table.txt and the files beside this one; do not edit."""

import collections.abc
import typing

import numpy.typing as npt

import opkernel.graph
import opkernel.proto
import opkernel.types

_Tensor: typing.TypeAlias = typing.Any  # an array; in a graph, an opkernel.Tensor
_Input: typing.TypeAlias = (
    npt.ArrayLike
    | opkernel.graph.Tensor
    | opkernel.types.ResourceHandle
    | opkernel.types.Variant
)
_Type: typing.TypeAlias = opkernel.types.DataType | npt.DTypeLike
_Shape: typing.TypeAlias = (
    opkernel.types.TensorShape
    | opkernel.types.PartialTensorShape
    | collections.abc.Sequence[int | None]
    | None
)
_Func: typing.TypeAlias = str | opkernel.proto.NameAttrList

from opkernel.endpoints.image.color import adjust_brightness as adjust_brightness
from opkernel.endpoints.image.color import adjust_contrast as adjust_contrast
from opkernel.endpoints.image.color import adjust_gamma as adjust_gamma
from opkernel.endpoints.image.color import adjust_hue as adjust_hue
from opkernel.endpoints.image.color import adjust_jpeg_quality as adjust_jpeg_quality
from opkernel.endpoints.image.color import adjust_saturation as adjust_saturation
from opkernel.endpoints.image.color import convert_image_dtype as convert_image_dtype
from opkernel.endpoints.image.color import grayscale_to_rgb as grayscale_to_rgb
from opkernel.endpoints.image.color import per_image_standardization as per_image_standardization
from opkernel.endpoints.image.color import rgb_to_grayscale as rgb_to_grayscale
from opkernel.endpoints.image.color import rgb_to_yiq as rgb_to_yiq
from opkernel.endpoints.image.color import rgb_to_yuv as rgb_to_yuv
from opkernel.endpoints.image.color import yiq_to_rgb as yiq_to_rgb
from opkernel.endpoints.image.color import yuv_to_rgb as yuv_to_rgb
from opkernel.endpoints.image.files import decode_image as decode_image
from opkernel.endpoints.image.files import is_jpeg as is_jpeg
from opkernel.endpoints.image.files import non_max_suppression_padded as non_max_suppression_padded
from opkernel.endpoints.image.files import (
    non_max_suppression_with_scores as non_max_suppression_with_scores,
)
from opkernel.endpoints.image.geometry import central_crop as central_crop
from opkernel.endpoints.image.geometry import crop_to_bounding_box as crop_to_bounding_box
from opkernel.endpoints.image.geometry import extract_glimpse as extract_glimpse
from opkernel.endpoints.image.geometry import flip_left_right as flip_left_right
from opkernel.endpoints.image.geometry import flip_up_down as flip_up_down
from opkernel.endpoints.image.geometry import pad_to_bounding_box as pad_to_bounding_box
from opkernel.endpoints.image.geometry import resize as resize
from opkernel.endpoints.image.geometry import resize_with_crop_or_pad as resize_with_crop_or_pad
from opkernel.endpoints.image.geometry import resize_with_pad as resize_with_pad
from opkernel.endpoints.image.geometry import rot90 as rot90
from opkernel.endpoints.image.geometry import transpose as transpose
from opkernel.endpoints.image.measures import image_gradients as image_gradients
from opkernel.endpoints.image.measures import psnr as psnr
from opkernel.endpoints.image.measures import sobel_edges as sobel_edges
from opkernel.endpoints.image.measures import ssim as ssim
from opkernel.endpoints.image.measures import ssim_multiscale as ssim_multiscale
from opkernel.endpoints.image.measures import total_variation as total_variation
from opkernel.endpoints.image.randomly import random_brightness as random_brightness
from opkernel.endpoints.image.randomly import random_contrast as random_contrast
from opkernel.endpoints.image.randomly import random_crop as random_crop
from opkernel.endpoints.image.randomly import random_flip_left_right as random_flip_left_right
from opkernel.endpoints.image.randomly import random_flip_up_down as random_flip_up_down
from opkernel.endpoints.image.randomly import random_hue as random_hue
from opkernel.endpoints.image.randomly import random_jpeg_quality as random_jpeg_quality
from opkernel.endpoints.image.randomly import random_saturation as random_saturation
from opkernel.endpoints.image.randomly import (
    sample_distorted_bounding_box as sample_distorted_bounding_box,
)
from opkernel.endpoints.image.randomly import (
    stateless_random_brightness as stateless_random_brightness,
)
from opkernel.endpoints.image.randomly import stateless_random_contrast as stateless_random_contrast
from opkernel.endpoints.image.randomly import stateless_random_crop as stateless_random_crop
from opkernel.endpoints.image.randomly import (
    stateless_random_flip_left_right as stateless_random_flip_left_right,
)
from opkernel.endpoints.image.randomly import (
    stateless_random_flip_up_down as stateless_random_flip_up_down,
)
from opkernel.endpoints.image.randomly import stateless_random_hue as stateless_random_hue
from opkernel.endpoints.image.randomly import (
    stateless_random_jpeg_quality as stateless_random_jpeg_quality,
)
from opkernel.endpoints.image.randomly import (
    stateless_random_saturation as stateless_random_saturation,
)
from opkernel.endpoints.image.randomly import (
    stateless_sample_distorted_bounding_box as stateless_sample_distorted_bounding_box,
)

def combined_non_max_suppression(
    boxes: _Input,
    scores: _Input,
    max_output_size_per_class: _Input,
    max_total_size: _Input,
    iou_threshold: _Input = 0.5,
    score_threshold: _Input = ...,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> _Tensor:
    """The best boxes of each image, none of which overlaps a better one of its class too much."""

def crop_and_resize(
    image: _Input,
    boxes: _Input,
    box_indices: _Input,
    crop_size: _Input,
    method: typing.Literal['bilinear', 'nearest'] = 'bilinear',
    extrapolation_value: float = 0.0,
    name: str | None = None,
) -> _Tensor:
    """Cut boxes out of images and resize each to `crop_size`."""

def decode_and_crop_jpeg(
    contents: _Input,
    crop_window: _Input,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The pixels of a window (y, x, height, width) of a JPEG file."""

def decode_bmp(
    contents: _Input,
    channels: int = 0,
    name: str | None = None,
) -> _Tensor:
    """The pixels of a BMP file."""

def decode_gif(
    contents: _Input,
    name: str | None = None,
) -> _Tensor:
    """The frames of a GIF file."""

def decode_jpeg(
    contents: _Input,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The pixels of a JPEG file, 1 / `ratio` as high and wide."""

def decode_jxl(
    contents: _Input,
    channels: int = 0,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The pixels of a JPEG XL file. opkernel has no decoder of this format."""

def decode_png(
    contents: _Input,
    channels: int = 0,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The pixels of a PNG file, of 8 or 16 bits."""

def decode_webp(
    contents: _Input,
    channels: int = 0,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The frames of a WebP file."""

def draw_bounding_boxes(
    images: _Input,
    boxes: _Input,
    colors: _Input,
    name: str | None = None,
) -> _Tensor:
    """DrawBoundingBoxes with colors [colors, channels], which the boxes take in turn."""

def encode_jpeg(
    image: _Input,
    format: typing.Literal['', 'grayscale', 'rgb'] = '',
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: typing.Literal['in', 'cm'] = 'in',
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A JPEG file of an image [height, width, channels]."""

def encode_png(
    image: _Input,
    compression: int = -1,
    name: str | None = None,
) -> _Tensor:
    """PNG files of images [..., height, width, channels]."""

def extract_jpeg_shape(
    contents: _Input,
    output_type: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The height, width and channels of a JPEG file, without its pixels."""

def extract_patches(
    images: _Input,
    sizes: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    rates: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    name: str | None = None,
) -> _Tensor:
    """The windows of size `ksizes` of the images, `strides` apart, each as a row of channels."""

def generate_bounding_box_proposals(
    scores: _Input,
    bbox_deltas: _Input,
    image_info: _Input,
    anchors: _Input,
    nms_threshold: _Input = 0.7,
    pre_nms_topn: _Input = 6000,
    min_size: _Input = 16,
    post_nms_topn: int = 300,
    name: str | None = None,
) -> _Tensor:
    """"""

def hsv_to_rgb(
    images: _Input,
    name: str | None = None,
) -> _Tensor:
    """Red, green and blue of colours whose last dimension is hue, saturation, value, between 0 and 1."""

def non_max_suppression(
    boxes: _Input,
    scores: _Input,
    max_output_size: _Input,
    iou_threshold: _Input = 0.5,
    score_threshold: _Input = ...,
    name: str | None = None,
) -> _Tensor:
    """Indices of boxes, best score first, none of which overlaps a better one too much."""

def non_max_suppression_overlaps(
    overlaps: _Input,
    scores: _Input,
    max_output_size: _Input,
    overlap_threshold: _Input = 0.5,
    score_threshold: _Input = ...,
    name: str | None = None,
) -> _Tensor:
    """Indices of boxes, best score first, none of which overlaps a better one too much."""

def rgb_to_hsv(
    images: _Input,
    name: str | None = None,
) -> _Tensor:
    """Hue, saturation and value, between 0 and 1, of colours whose last dimension is red, green, blue."""
