"""Answers about the types of tensors (area dtype)."""

from typing import Any

from opkernel.errors import OpError
from opkernel.types import DataType


def dtype(request: dict[str, Any]) -> dict[str, Any]:
    """What DataTypeFromString makes of a text, and what is so of that type."""
    try:
        found = DataType.from_string(request["text"])
    except OpError:
        return {"ok": False}
    return {
        "ok": True,
        "enum": int(found),
        "string": found.string,
        "base": found.base.string,
        "size": found.size,
        "is_ref": found.is_ref,
        "is_floating": found.is_floating,
        "is_complex": found.is_complex,
        "is_integer": found.is_integer,
        "is_unsigned": found.is_unsigned,
        "is_quantized": found.is_quantized,
        "can_memcpy": found.can_memcpy,
        "always_on_host": found.always_on_host,
    }
