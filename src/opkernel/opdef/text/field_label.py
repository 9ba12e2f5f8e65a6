"""Whether a field of a message is a list, asked in a way that every supported protobuf knows."""

from typing import Any

__all__ = ["is_repeated"]


def is_repeated(field: Any) -> bool:
    """Whether the field is a list or a map; protobuf before 6 says so only by its label."""
    if hasattr(field, "is_repeated"):
        return bool(field.is_repeated)
    return bool(field.label == field.LABEL_REPEATED)
