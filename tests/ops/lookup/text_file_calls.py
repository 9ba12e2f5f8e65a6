"""Tables filled from text files: what TensorFlow 2.21 makes of them."""

from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["CALLS", "content_of"]

LINE, NUMBER = -2, -1
Call = tuple[bytes, str, str, int, int, dict[str, Any], Any]

CALLS: dict[str, Call] = {
    "lines and numbers": (b"a\nb\n", "string", "int64", LINE, NUMBER, {}, {b"a": 0, b"b": 1}),
    "numbers and lines": (b"a\nb\n", "int64", "string", NUMBER, LINE, {}, {0: b"a", 1: b"b"}),
    "no end of line": (b"a\nb", "string", "int64", LINE, NUMBER, {}, {b"a": 0, b"b": 1}),
    "lines of DOS": (b"a\r\nb\r\n", "string", "int64", LINE, NUMBER, {}, {b"a": 0, b"b": 1}),
    "a lone return": (b"a\rb\n", "string", "int64", LINE, NUMBER, {}, {b"a\rb": 0}),
    "two returns": (b"a\r\r\n", "string", "int64", LINE, NUMBER, {}, {b"a\r": 0}),
    "a return at the end": (b"a\r", "string", "int64", LINE, NUMBER, {}, {b"a": 0}),
    "a zero byte": (b"a\0b\n", "string", "int64", LINE, NUMBER, {}, {b"a\0b": 0}),
    "columns": (b"a\t1\tx\nb\t2\ty\n", "string", "int64", 0, 1, {}, {b"a": 1, b"b": 2}),
    "columns of strings": (b"a\t1\tx\n", "string", "string", 0, 2, {}, {b"a": b"x"}),
    "another delimiter": (b"a 1\n", "string", "int64", 0, 1, {"delimiter": " "}, {b"a": 1}),
    "an empty column": (b"a\t\n", "string", "string", 0, 1, {}, {b"a": b""}),
    "the line as a value": (b"a\t1\n", "string", "string", 0, LINE, {}, {b"a": b"a\t1"}),
    "lines of numbers": (b"1\n-3\n", "int64", "int64", LINE, NUMBER, {}, {1: 0, -3: 1}),
    "floats": (b"1.5\n2e3\n", "int64", "float32", NUMBER, 0, {}, {0: 1.5, 1: 2000.0}),
    "a float in hex": (b"0x10\n", "int64", "float32", NUMBER, 0, {}, {0: 16.0}),
    "spaces about numbers": (b" 1\n2 \n", "int64", "int64", LINE, NUMBER, {}, {1: 0, 2: 1}),
    "a sign": (b"+1\n", "int64", "int64", LINE, NUMBER, {}, {1: 0}),
    "a value twice": (b"a\na\n", "int64", "string", NUMBER, LINE, {}, {0: b"a", 1: b"a"}),
    "a pair twice": (b"a\na\n", "string", "string", LINE, LINE, {}, {b"a": b"a"}),
    "an offset": (b"a\nb\n", "string", "int64", LINE, NUMBER, {"offset": 5}, {b"a": 5, b"b": 6}),
    "the first lines": (b"a\nb\n", "string", "int64", LINE, NUMBER, {"vocab_size": 1}, {b"a": 0}),
    "an empty line after them": (
        b"a\n\n", "string", "int64", LINE, NUMBER, {"vocab_size": 1}, {b"a": 0}
    ),
    "too few lines": (
        b"a\n", "string", "int64", LINE, NUMBER, {"vocab_size": 2}, "InvalidArgumentError"
    ),
    "no lines wanted": (
        b"a\n", "string", "int64", LINE, NUMBER, {"vocab_size": 0}, "OutOfRangeError"
    ),
    "nothing": (b"", "string", "int64", LINE, NUMBER, {}, "OutOfRangeError"),
    "an empty line": (b"a\n\nb\n", "string", "int64", LINE, NUMBER, {}, "InvalidArgumentError"),
    "an empty last line": (b"a\n\n", "string", "int64", LINE, NUMBER, {}, "InvalidArgumentError"),
    "a key twice": (b"a\na\n", "string", "int64", LINE, NUMBER, {}, "FailedPreconditionError"),
    "a column too few": (b"a\t1\nb\n", "string", "int64", 0, 1, {}, "InvalidArgumentError"),
    "no number": (b"1\nx\n", "int64", "int64", LINE, NUMBER, {}, "InvalidArgumentError"),
    "a number of Python": (b"1_0\n", "int64", "int64", LINE, NUMBER, {}, "InvalidArgumentError"),
    "no float": (b"x\n", "int64", "float32", NUMBER, 0, {}, "InvalidArgumentError"),
    "numbers that are no int64": (
        b"a\n", "string", "int32", LINE, NUMBER, {}, "InvalidArgumentError"
    ),
    "lines that are floats": (b"1\n", "string", "float32", 0, LINE, {}, "InvalidArgumentError"),
    "bools": (b"a\t1\n", "string", "bool", 0, 1, {}, "InvalidArgumentError"),
    "a long delimiter": (
        b"a\n", "string", "int64", LINE, NUMBER, {"delimiter": "ab"}, "InvalidArgumentError"
    ),
    "no delimiter": (
        b"a\n", "string", "int64", LINE, NUMBER, {"delimiter": ""}, "InvalidArgumentError"
    ),
}  # fmt: skip


def content_of(tf: Any, call: Call, file: Path, name: str) -> Any:
    """What is in a table after it was filled; or the name of an error's class."""
    text, key, value, key_index, value_index, more, _ = call
    file.write_bytes(text)
    attrs = {"vocab_size": -1, "delimiter": "\t", "offset": 0, **more}
    types = getattr(tf, key), getattr(tf, value)
    try:
        table = tf.raw_ops.HashTableV2(
            key_dtype=types[0], value_dtype=types[1], container="", shared_name=name
        )
        tf.raw_ops.InitializeTableFromTextFileV2(
            table_handle=table,
            filename=np.array(str(file).encode(), object),
            key_index=key_index,
            value_index=value_index,
            **attrs,
        )
        found = tf.raw_ops.LookupTableExportV2(table_handle=table, Tkeys=types[0], Tvalues=types[1])
    except Exception as error:
        return type(error).__name__
    keys, values = (np.asarray(one).tolist() for one in found)
    return dict(zip(keys, values, strict=True))
