"""Write what TensorFlow's ICU knows into `opkernel/ops/strings`: scripts of characters, names of encodings.

Run with a Python that has TensorFlow 2.21: `python tools/record_unicode_tables.py`.

`scripts.txt`: a line for each run of code points of one script, its first code point in hexadecimal and the
number of the script. `encodings.txt`: a line for each way to decode: `codec:correction` of Python, or `-` where
Python has none that gives the same characters, and the names that TensorFlow takes for it.
"""

import codecs
import encodings.aliases
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import tensorflow as tf

FOLDER = Path(__file__).resolve().parent.parent / "src" / "opkernel" / "ops" / "strings"
MORE_NAMES = [
    *(
        "utf-16-be",
        "utf-16-le",
        "utf-32-be",
        "utf-32-le",
        "windows-1250",
        "windows-1251",
        "windows-1252",
    ),
    *(
        "windows-1253",
        "windows-1254",
        "windows-1255",
        "windows-1256",
        "windows-1257",
        "windows-1258",
    ),
    *(
        "gb18030",
        "gbk",
        "gb2312",
        "big5",
        "shift_jis",
        "euc-jp",
        "euc-kr",
        "koi8-r",
        "koi8-u",
        "tis-620",
    ),
    *(
        "scsu",
        "bocu-1",
        "cesu-8",
        "hz",
        "iso-2022-jp",
        "iso-2022-kr",
        "iso-2022-cn",
        "utf-7",
        "lmbcs-1",
    ),
    *(
        "ibm-37",
        "ibm-1047",
        "macintosh",
        "x-mac-roman",
        "x-mac-cyrillic",
        "imap-mailbox-name",
        "iscii",
    ),
    *(f"iso-8859-{n}" for n in range(1, 17)),
]
SWAPPED = {26: 28, 28: 127, 127: 26}
MULTIBYTE = {"gb18030", "gbk", "big5", "shift_jis", "euc_jp", "euc_kr"}
"""Taken though they differ from ICU's in bytes that are invalid or of a vendor."""


def normal(name: str) -> str:
    """As ICU compares names."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"[-_ ]", "", name.lower()))


def decoded(name: str, data: bytes) -> list[int]:
    points = tf.raw_ops.UnicodeDecode(input=[data], input_encoding=name)[1].numpy()
    return [int(point) for point in points]


def is_taken(name: str) -> bool:
    try:
        decoded(name, b"a")
    except tf.errors.InvalidArgumentError:
        return False
    return True


def python_way(name: str) -> str:
    """The codec of Python and what to correct in it, or -."""
    try:
        codec = codecs.lookup(name.replace("windows-", "cp"))
    except LookupError:
        return "-"
    if not codec._is_text_encoding or codec.name.startswith(("utf-7", "utf7", "iso2022", "hz")):
        return "-"
    if codec.name.startswith("utf"):
        return f"{codec.name.replace('_', '-')}:"
    for correction in ("", "swap", "c1"):
        if all(
            _corrected(codec.name, byte, correction) == decoded(name, bytes([byte]))
            for byte in range(256)
        ):
            return f"{codec.name}:{correction}"
    if codec.name in MULTIBYTE:
        is_swapped = decoded(name, b"\x1a") == [28]
        return f"{codec.name}:{'swap' if is_swapped else 'c1'}"
    return "-"


def _corrected(codec: str, byte: int, correction: str) -> list[int]:
    if correction == "c1":
        try:
            return [ord(bytes([byte]).decode(codec))]
        except UnicodeDecodeError:
            return [byte] if 0x80 <= byte < 0xA0 else [0xFFFD]
    points = [ord(c) for c in bytes([byte]).decode(codec, "replace")]
    return [SWAPPED.get(p, p) for p in points] if correction == "swap" else points


def write_encodings() -> None:
    names = {*encodings.aliases.aliases, *encodings.aliases.aliases.values(), *MORE_NAMES}
    ways: dict[str, set[str]] = defaultdict(set)
    for name in sorted(names):
        if is_taken(name):
            ways[python_way(name)].add(normal(name))
    known = set().union(*(found for way, found in ways.items() if way != "-"))
    ways["-"] -= known
    lines = [f"{way} {' '.join(sorted(found))}\n" for way, found in sorted(ways.items())]
    (FOLDER / "encodings.txt").write_text("".join(lines))


def write_scripts() -> None:
    scripts = tf.raw_ops.UnicodeScript(input=np.arange(0x110000, dtype=np.int32)).numpy()
    starts = [0, *(np.flatnonzero(np.diff(scripts)) + 1).tolist()]
    (FOLDER / "scripts.txt").write_text("".join(f"{at:x} {scripts[at]}\n" for at in starts))


write_encodings()
write_scripts()
