"""The range of int attrs: OpDefs have int64, most of TensorFlow's kernels read int32."""

from opkernel.errors import InvalidArgumentError

_INT32 = range(-(2**31), 2**31)


def int32_attr(name: str, value: int) -> int:
    """The value, if an int32 can hold it.

    Raises:
        InvalidArgumentError: it cannot.
    """
    if value not in _INT32:
        raise InvalidArgumentError(f"Attr {name} has value {value} out of range for an int32")
    return value
