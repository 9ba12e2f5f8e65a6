"""Writes image_files.json.xz: small image files and what TensorFlow decodes from them.

Two steps, since Pillow and TensorFlow may stand in different environments:

    python tests/ops/image/make_image_files.py files
    python tests/ops/image/make_image_files.py answers
"""

import base64
import io
import json
import lzma
import sys
from pathlib import Path
from typing import Any

import numpy as np

PATH = Path(__file__).with_name("image_files.json.xz")
HEIGHT, WIDTH = 7, 11


def photo(channels: int, seed: int = 0) -> Any:
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    noise = np.random.default_rng(seed).normal(0, 20, (HEIGHT, WIDTH, channels))
    return np.clip(127 + 90 * np.sin(y + 2 * x)[..., None] + noise, 0, 255).astype(np.uint8)


def files() -> dict[str, bytes]:
    from PIL import Image

    found: dict[str, bytes] = {}

    def save(name: str, image: Any, kind: str, **options: Any) -> None:
        file = io.BytesIO()
        image.save(file, kind, **options)
        found[name] = file.getvalue()

    rgb, gray = Image.fromarray(photo(3)), Image.fromarray(photo(1)[..., 0])
    rgba, palette = Image.fromarray(photo(4)), rgb.quantize(16)
    save("jpeg", rgb, "JPEG", subsampling=2)
    save("jpeg_progressive", rgb, "JPEG", progressive=True)
    save("jpeg_gray", gray, "JPEG")
    save("jpeg_cmyk", Image.fromarray(photo(4), "CMYK"), "JPEG")
    save("png", rgb, "PNG")
    save("png_gray", gray, "PNG")
    save("png_alpha", rgba, "PNG")
    save("png_bits", gray.convert("1"), "PNG")
    save("png_palette", palette, "PNG", transparency=bytes([0, 50, 200]))
    save("gif", palette, "GIF", interlace=1)
    frames = [Image.fromarray(photo(3, seed)).quantize(8) for seed in range(3)]
    save("gif_frames", frames[0], "GIF", save_all=True, append_images=frames[1:], transparency=3)
    save("bmp", rgb, "BMP")
    save("bmp_gray", gray, "BMP")
    save("webp", rgb, "WEBP", lossless=True)
    save("webp_alpha", rgba, "WEBP", lossless=True)
    return found


def answers() -> list[Any]:
    import tensorflow as tf  # type: ignore[import-not-found, unused-ignore]  # not a dependency

    stored = json.loads(lzma.decompress(PATH.read_bytes()))
    contents = {n: base64.b64decode(v) for n, v in stored["files"].items()}
    for channels in (1, 3, 4):
        image = (photo(channels).astype(np.uint16) * 257) ^ 0x5A
        contents[f"png16_{channels}"] = tf.io.encode_png(tf.constant(image)).numpy()
    calls: list[tuple[str, str, dict[str, Any]]]
    calls = [("DecodeImage", n, {"channels": c}) for n in contents for c in (0, 1, 3, 4)]
    calls += [("DecodeImage", n, {"dtype": t}) for n in contents for t in ("uint16", "float32")]
    jpegs = [n for n in contents if n.startswith("jpeg")]
    calls += [("DecodeJpeg", n, {"ratio": 2}) for n in jpegs]
    calls += [("DecodeJpeg", n, {"dct_method": "INTEGER_ACCURATE"}) for n in jpegs]
    calls += [("DecodeJpeg", n, {"fancy_upscaling": False}) for n in jpegs]
    calls += [("ExtractJpegShape", n, {}) for n in contents]
    calls += [("DecodeGif", n, {}) for n in contents]
    calls += [("DecodePng", n, {"dtype": "uint16"}) for n in contents]
    found = []
    for op, name, attrs in calls:
        if name.startswith("bmp") and attrs.get("dtype") in ("uint16", "float32"):
            continue  # TensorFlow reads outside of the image
        try:
            output = getattr(tf.raw_ops, op)(contents=contents[name], **attrs).numpy()
            answer = [str(output.dtype), output.shape, base64.b64encode(output.tobytes()).decode()]
        except tf.errors.InvalidArgumentError:
            answer = None
        found.append([op, name, attrs, answer])
    encoded = {n: base64.b64encode(v).decode() for n, v in contents.items()}
    return [encoded, found]


def main() -> None:
    if sys.argv[1] == "files":
        value: Any = {"files": {n: base64.b64encode(v).decode() for n, v in files().items()}}
    else:
        value = dict(zip(("files", "calls"), answers(), strict=True))
    PATH.write_bytes(lzma.compress(json.dumps(value, indent=0).encode()))


if __name__ == "__main__":
    main()
