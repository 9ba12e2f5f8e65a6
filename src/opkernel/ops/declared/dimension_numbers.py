"""Messages that say which dimension is what: DotDimensionNumbers and its kin, in attrs of ops of XLA.

They hold nothing but integers.

Source: TensorFlow compiler/xla/xla_data.proto.
"""

from collections import defaultdict


def dimension_numbers(text: str) -> defaultdict[int, list[int]]:
    """The integers of a message by the numbers of their fields; malformed fields are left out.

    Args:
        text: The serialized message, as the value of an attr of strings has it.
    """
    data = text.encode("utf-8", "surrogateescape")
    fields: defaultdict[int, list[int]] = defaultdict(list)
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        value, position = _varint(data, position)
        if tag & 7 == 2:
            end = position + value
            while position < end:
                value, position = _varint(data, position)
                fields[tag >> 3].append(value)
        else:
            fields[tag >> 3].append(value)
    return fields


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            break
    return value, position
