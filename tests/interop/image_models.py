"""Models of images: decoders, Keras' layers of preprocessing and augmentation, and `tf.image`."""

import io
from typing import Any

import numpy as np
import tensorflow as tf
from PIL import Image
from tests.interop.calls import Call
from tests.interop.keras_models import exported
from tests.interop.module_models import numbers, spec
from tests.interop.text_models import functions, words

F32 = np.float32
MODELS: dict[str, Any] = {}
keras: Any = tf.keras
L: Any = keras.layers


def picture(*shape, seed=0):
    """A smooth image of bytes with some noise."""
    rows, columns, channels = shape[-3:]
    y, x, c = np.mgrid[:rows, :columns, :channels]
    smooth = 120 + 90 * np.sin(x / 3 + c) * np.cos(y / 4 - c)
    noise = np.random.RandomState(seed).uniform(-20, 20, shape)
    return np.clip(smooth + noise, 0, 255).astype(np.uint8)


def file_of(image, kind, **options):
    out = io.BytesIO()
    Image.fromarray(image.squeeze()).save(out, kind, **options)
    return out.getvalue()


# Decoders.

BYTES = [spec(dtype=tf.string)]


@functions(MODELS, decode=BYTES, forms=BYTES, batch=[spec(None, dtype=tf.string)])
def decoded_images(directory):
    def decode(x):
        image = tf.io.decode_image(x, channels=3, expand_animations=False)
        return image, tf.image.convert_image_dtype(image, tf.float32)

    def forms(x):
        return (
            tf.io.decode_png(x, channels=1),
            tf.io.decode_png(x, channels=4, dtype=tf.uint16),
            tf.io.decode_image(x, dtype=tf.float32),
        )

    def batch(x):
        def one(data):
            image = tf.io.decode_image(data, 3, expand_animations=False)
            image.set_shape([None, None, 3])
            return tf.image.resize(tf.cast(image, tf.float32), [6, 5]) / 255.0

        return tf.map_fn(one, x, fn_output_signature=tf.float32)

    color, gray = picture(9, 11, 3), picture(7, 8, 1)
    png, jpeg = file_of(color, "PNG"), file_of(color, "JPEG", quality=90)
    bmp, gif = file_of(color, "BMP"), file_of(gray, "GIF")
    given = words(png, jpeg, bmp, gif, file_of(gray, "JPEG"))
    return {"decode": decode, "forms": forms, "batch": batch}, [
        *[Call("decode", [one]) for one in words(png, jpeg, bmp, gif)],
        *[Call("forms", [one]) for one in words(png, file_of(gray, "PNG"))],
        Call("batch", [given]),
        Call("signatures.batch", [], {"x": given}),
    ]


@functions(MODELS, jpeg=BYTES, encode=[spec(None, None, 3, dtype=tf.uint8)])
def jpeg_and_png(directory):
    def jpeg(x):
        return (
            tf.io.decode_jpeg(x),
            tf.io.decode_jpeg(x, ratio=2, dct_method="INTEGER_ACCURATE"),
            tf.io.decode_and_crop_jpeg(x, [2, 3, 8, 9], channels=3),
            tf.io.extract_jpeg_shape(x),
            tf.io.is_jpeg(x),
            tf.io.decode_jpeg(x, channels=1),
        )

    def encode(x):
        back = tf.io.decode_png(tf.io.encode_png(x, compression=9))
        lossy = tf.io.decode_jpeg(tf.io.encode_jpeg(x, quality=95, chroma_downsampling=False))
        return back, lossy

    given = file_of(picture(16, 24, 3), "JPEG", quality=85, subsampling=0)
    return {"jpeg": jpeg, "encode": encode}, [
        Call("jpeg", [words(given)[0]]),
        Call("encode", [picture(9, 10, 3)]),
    ]


# Keras' layers.


def layer(name, build, *shape, dtype="uint8"):
    """A layer that Keras exports, called as in inference."""

    def save(directory):
        keras.utils.set_random_seed(7)
        keras.backend.clear_session()
        x = L.Input(shape[1:], dtype=dtype, name="image")
        return exported(keras.Model(x, build()(x)), str(directory), picture(*shape).astype(dtype))

    MODELS[name] = save


for interpolation in ("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5"):
    layer(f"resizing_{interpolation}", lambda i=interpolation: L.Resizing(7, 13, i), 2, 12, 9, 3)
layer(
    "resizing_antialias",
    lambda: L.Resizing(5, 4, antialias=True, crop_to_aspect_ratio=True),
    *(2, 12, 9, 3),
)
layer(
    "resizing_with_padding",
    lambda: L.Resizing(8, 8, "bicubic", pad_to_aspect_ratio=True, fill_value=3.0),
    *(2, 12, 9, 3),
    dtype="float32",
)
layer(
    "classifier_of_images",
    lambda: (
        lambda x: L.Dense(3, "softmax")(
            L.GlobalAveragePooling2D()(
                L.Conv2D(4, 3, activation="relu")(
                    L.CenterCrop(8, 8)(L.Rescaling(1 / 127.5, -1)(L.Resizing(10, 10)(x)))
                )
            )
        )
    ),
    *(2, 16, 12, 3),
)


@functions(MODELS, color=[spec(None, 9, 8, 3)])
def colors_of_images(directory):
    layers = [L.Equalization(), L.AutoContrast(), L.Solarization(0.1, threshold_factor=0.4, seed=1)]
    calls = [Call("color", [picture(2, 9, 8, 3).astype(F32)])]
    return {"color": lambda x: [one(x) for one in layers]}, calls, layers[2].generator.state


AUGMENTATIONS = {
    "random_crop": lambda: L.RandomCrop(6, 5, seed=1),
    "random_flip": lambda: L.RandomFlip(seed=2),
    "random_rotation": lambda: L.RandomRotation(0.2, fill_mode="constant", seed=3),
    "random_zoom": lambda: L.RandomZoom(0.3, (-0.2, 0.4), fill_mode="nearest", seed=4),
    "random_translation": lambda: L.RandomTranslation(0.2, 0.3, fill_mode="wrap", seed=5),
    "random_contrast": lambda: L.RandomContrast(0.4, seed=6),
    "random_brightness": lambda: L.RandomBrightness(0.3, seed=7),
    "random_hue": lambda: L.RandomHue(0.3, value_range=(0, 255), seed=8),
    "random_saturation": lambda: L.RandomSaturation(0.4, value_range=(0, 255), seed=9),
    "random_sharpness": lambda: L.RandomSharpness(0.5, value_range=(0, 255), seed=10),
    "random_shear": lambda: L.RandomShear(0.2, 0.3, seed=11),
    "random_grayscale": lambda: L.RandomGrayscale(0.5, seed=12),
    "random_posterization": lambda: L.RandomPosterization(4, seed=13),
    "random_invert": lambda: L.RandomInvert(0.5, value_range=(0, 255), seed=14),
    "random_color_degeneration": lambda: L.RandomColorDegeneration(0.5, seed=15),
    "random_color_jitter": lambda: L.RandomColorJitter(
        (0, 255), 0.2, 0.2, (0.3, 0.6), 0.2, seed=16
    ),
    "random_gaussian_blur": lambda: L.RandomGaussianBlur(0.7, 3, 1.0, seed=17),
    "random_erasing": lambda: L.RandomErasing(0.9, seed=18),
    "random_perspective": lambda: L.RandomPerspective(0.9, 0.5, seed=19),
    "random_elastic_transform": lambda: L.RandomElasticTransform(0.9, 0.5, seed=20),
    "rand_augment": lambda: L.RandAugment(num_ops=1, factor=0.4, seed=21),
    "aug_mix": lambda: L.AugMix(num_chains=2, seed=22),
}


def augmentation(name, build):
    """A layer with two functions, one in training: its generator's state goes on from call to call."""

    def save(directory):
        keras.utils.set_random_seed(7)
        keras.backend.clear_session()
        net = keras.Sequential([L.Input((9, 8, 3)), build()])
        archive = keras.export.ExportArchive()
        archive.track(net)
        shape = [spec(None, 9, 8, 3, name="x")]
        archive.add_endpoint("infer", lambda x: net(x, training=False), shape)
        archive.add_endpoint("train", lambda x: net(x, training=True), shape)
        archive.write_out(str(directory), verbose=False)
        x = picture(3, 9, 8, 3).astype(F32)
        return [
            *[Call("train", [x])] * 2,
            Call("infer", [x]),
            Call("train", [x[:1]]),
            Call("signatures.train", [], {"x": x}),
        ]

    MODELS[name] = save


for name, build in AUGMENTATIONS.items():
    augmentation(name, build)


# tf.image.

IMAGES = [spec(None, None, None, 3)]


@functions(MODELS, adjust=IMAGES, color=IMAGES)
def adjusted_images(directory):
    def adjust(x):
        return {
            "brightness": tf.image.adjust_brightness(x, 0.2),
            "contrast": tf.image.adjust_contrast(x, 1.5),
            "gamma": tf.image.adjust_gamma(x, 0.7, 0.9),
            "hue": tf.image.adjust_hue(x, -0.3),
            "saturation": tf.image.adjust_saturation(x, 2.0),
            "standard": tf.image.per_image_standardization(x),
            "bytes": tf.image.convert_image_dtype(x, tf.uint8, saturate=True),
            "quality": tf.map_fn(lambda one: tf.image.adjust_jpeg_quality(one, 60), x),
        }

    def color(x):
        return {
            "gray": tf.image.grayscale_to_rgb(tf.image.rgb_to_grayscale(x)),
            "hsv": tf.image.hsv_to_rgb(tf.image.rgb_to_hsv(x)),
            "yiq": tf.image.yiq_to_rgb(tf.image.rgb_to_yiq(x)),
            "yuv": tf.image.rgb_to_yuv(x),
        }

    x = (picture(2, 10, 12, 3) / 255).astype(F32)
    return {"adjust": adjust, "color": color}, [
        Call("adjust", [x]),
        Call("color", [x]),
        Call("signatures.adjust", [], {"x": x}),
    ]


@functions(MODELS, place=IMAGES, resize=IMAGES, patches=IMAGES)
def placed_images(directory):
    def place(x):
        return (
            tf.image.flip_left_right(x),
            tf.image.flip_up_down(x),
            tf.image.rot90(x, 3),
            tf.image.transpose(x),
            tf.image.central_crop(x, 0.5),
            tf.image.crop_to_bounding_box(x, 1, 2, 4, 5),
            tf.image.pad_to_bounding_box(x, 1, 2, 14, 15),
            tf.image.resize_with_crop_or_pad(x, 8, 16),
            tf.image.resize_with_pad(x, 9, 9),
        )

    def resize(x):
        methods = (
            "bilinear",
            "nearest",
            "bicubic",
            "area",
            "lanczos3",
            "gaussian",
            "mitchellcubic",
        )
        sizes = {name: tf.image.resize(x, [7, 15], name) for name in methods}
        sizes["kept"] = tf.image.resize(x, [20, 9], preserve_aspect_ratio=True, antialias=True)
        sizes["v1"] = tf.compat.v1.image.resize_bilinear(x, [5, 6], align_corners=True)
        sizes["v1_bicubic"] = tf.compat.v1.image.resize_bicubic(x, [5, 6])
        return sizes

    def patches(x):
        cut = tf.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
        boxes = tf.constant([[0.1, 0.2, 0.9, 0.8], [-0.2, 0.5, 1.2, 0.1]])
        crops = tf.image.crop_and_resize(x, boxes, [1, 0], [4, 5], extrapolation_value=-1.0)
        near = tf.image.crop_and_resize(x, boxes, [0, 1], [3, 3], method="nearest")
        glimpse = tf.image.extract_glimpse(x, [4, 4], [[0.1, 0.2], [-0.9, 0.9]], noise="zero")
        return cut, crops, near, glimpse

    x = (picture(2, 10, 12, 3) / 255).astype(F32)
    made = {"place": place, "resize": resize, "patches": patches}
    return made, [Call(name, [x]) for name in made]


@functions(MODELS, measure=[*IMAGES, *IMAGES], edges=IMAGES)
def measured_images(directory):
    def measure(x, y):
        return {
            "ssim": tf.image.ssim(x, y, 1.0, filter_size=5),
            "multiscale": tf.image.ssim_multiscale(x, y, 1.0, [0.4, 0.6], filter_size=3),
            "psnr": tf.image.psnr(x, y, 1.0),
            "variation": tf.image.total_variation(x),
        }

    def edges(x):
        dy, dx = tf.image.image_gradients(x)
        pooled = tf.nn.dilation2d(
            x, tf.zeros([2, 2, 3]), [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1]
        )
        return (
            tf.image.sobel_edges(x),
            dy,
            dx,
            pooled,
            tf.nn.erosion2d(x, tf.ones([2, 2, 3]), [1, 2, 2, 1], "VALID", "NHWC", [1, 1, 1, 1]),
        )

    x, y = [(picture(2, 16, 18, 3, seed=s) / 255).astype(F32) for s in (1, 2)]
    return {"measure": measure, "edges": edges}, [Call("measure", [x, y]), Call("edges", [x])]


BOXES = [spec(None, 4), spec(None)]


@functions(MODELS, suppress=BOXES, combined=[spec(None, None, 4), spec(None, None, 2)], draw=IMAGES)
def boxes(directory):
    def suppress(boxes, scores):
        kept = tf.image.non_max_suppression(boxes, scores, 4, 0.4, 0.1)
        padded = tf.image.non_max_suppression_padded(
            boxes, scores, 5, 0.5, pad_to_max_output_size=True
        )
        soft = tf.image.non_max_suppression_with_scores(boxes, scores, 6, 0.6, soft_nms_sigma=0.5)
        return kept, tf.gather(boxes, kept), padded, soft

    def combined(boxes, scores):
        found = tf.image.combined_non_max_suppression(
            boxes[:, :, None], scores, 3, 4, 0.4, 0.2, pad_per_class=True, clip_boxes=False
        )
        return found._asdict()

    def draw(x):
        at = tf.constant([[[0.1, 0.2, 0.6, 0.9], [0.0, 0.0, 0.5, 0.5]]] * 2)
        colors = tf.constant([[1.0, 0.0, 0.2], [0.0, 1.0, 0.3]])
        return tf.image.draw_bounding_boxes(x, at, colors)

    corners = np.random.RandomState(3).uniform(0, 0.6, (12, 2))
    given = np.concatenate([corners, corners + 0.35], 1).astype(F32)
    scores = np.random.RandomState(4).permutation(12).astype(F32) / 12
    two = np.stack([given, given[::-1]]), np.stack([scores, 1 - scores], 1)[None].repeat(2, 0)
    return {"suppress": suppress, "combined": combined, "draw": draw}, [
        Call("suppress", [given, scores]),
        Call("combined", [*two]),
        Call("draw", [(picture(2, 10, 12, 3) / 255).astype(F32)]),
        Call("signatures.combined", [], {"boxes": two[0], "scores": two[1]}),
    ]


SEEDED = [spec(None, None, 3), spec(2, dtype=tf.int32)]


@functions(MODELS, augment=SEEDED, boxed=SEEDED)
def stateless_augmentation(directory):
    def augment(x, seed):
        random = tf.image
        return {
            "brightness": random.stateless_random_brightness(x, 0.3, seed),
            "contrast": random.stateless_random_contrast(x, 0.5, 1.5, seed),
            "crop": random.stateless_random_crop(x, [5, 6, 3], seed),
            "left": random.stateless_random_flip_left_right(x, seed),
            "up": random.stateless_random_flip_up_down(x, seed),
            "hue": random.stateless_random_hue(x, 0.2, seed),
            "quality": random.stateless_random_jpeg_quality(x, 40, 90, seed),
            "saturation": random.stateless_random_saturation(x, 0.5, 1.5, seed),
        }

    def boxed(x, seed):
        found = tf.image.stateless_sample_distorted_bounding_box(
            tf.shape(x), [[[0.1, 0.2, 0.8, 0.9]]], seed, 0.3, max_attempts=20
        )
        return found, tf.slice(x, found.begin, found.size)

    x = (picture(10, 12, 3) / 255).astype(F32)
    seeds = [np.array(one, np.int32) for one in ([1, 2], [3, 4], [-5, 6])]
    calls = [Call("augment", [x, seed]) for seed in seeds]
    return {"augment": augment, "boxed": boxed}, [
        *calls,
        *[Call("boxed", [x, seed]) for seed in seeds],
    ]


@functions(MODELS, augment=IMAGES)
def seeded_augmentation(directory):
    """Ops with state: each call goes on where the last one ended."""
    tf.random.set_seed(11)

    def augment(x):
        one = x[0]
        return {
            "brightness": tf.image.random_brightness(one, 0.3, seed=1),
            "contrast": tf.image.random_contrast(one, 0.5, 1.5, seed=2),
            "crop": tf.image.random_crop(one, [5, 6, 3], seed=3),
            "left": tf.image.random_flip_left_right(x, seed=4),
            "hue": tf.image.random_hue(one, 0.2, seed=5),
            "saturation": tf.image.random_saturation(one, 0.5, 1.5, seed=6),
            "box": tf.image.sample_distorted_bounding_box(
                tf.shape(one), [[[0.1, 0.2, 0.8, 0.9]]], seed=7, min_object_covered=0.3
            )[0],
        }

    x = (picture(2, 10, 12, 3) / 255).astype(F32)
    return {"augment": augment}, [Call("augment", [x])] * 3


@functions(MODELS, volume=[spec(None, None, None, None, 2)], fractional=IMAGES)
def volumes(directory):
    def volume(x):
        patches = tf.raw_ops.ExtractVolumePatches(
            input=x, ksizes=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="SAME"
        )
        return patches, tf.nn.max_pool3d(x, 2, 2, "VALID"), tf.nn.avg_pool3d(x, 3, 1, "SAME")

    def fractional(x):
        pooled = tf.nn.fractional_max_pool(x, [1, 1.5, 1.3, 1], True, seed=5)
        top, places = tf.nn.max_pool_with_argmax(x, 2, 2, "SAME")
        return pooled, tf.nn.space_to_depth(x, 2), top, places

    return {"volume": volume, "fractional": fractional}, [
        Call("volume", [numbers(2, 4, 5, 6, 2)]),
        Call("fractional", [numbers(2, 10, 12, 3)]),
    ]
