"""Keys of a rendezvous: the sender, the receiver, the tensor, and the iteration.

`src_device;src_incarnation;dst_device;edge_name;frame_id:iter_id`, the incarnation as 16 hexadecimal
digits. It changes when the sender restarts, so that no receiver gets a tensor sent before.

Source: TensorFlow core/framework/rendezvous.cc.
"""

import re

from opkernel.errors import InvalidArgumentError
from opkernel.kernel.context.params import FrameAndIter
from opkernel.opdef import DeviceName
from opkernel.records import dataclass, field

_ROOT = FrameAndIter()
_UINT64 = 1 << 64
_HEXADECIMAL = re.compile(r"0*([0-9A-Fa-f]{1,16})")


@dataclass(frozen=True, slots=True)
class ParsedKey:
    """A key in parts.

    Attributes:
        full_key: The key.
        src_device: The name of the device that sends.
        src: It in parts.
        src_incarnation: Which start of the sender it is.
        dst_device: The name of the device that receives.
        dst: It in parts.
        edge_name: The name of the tensor.
    """

    full_key: str
    src_device: str = field(repr=False)
    src: DeviceName = field(repr=False, compare=False)
    src_incarnation: int = field(repr=False)
    dst_device: str = field(repr=False)
    dst: DeviceName = field(repr=False, compare=False)
    edge_name: str = field(repr=False)


def create_key(
    src_device: str,
    src_incarnation: int,
    dst_device: str,
    name: str,
    frame_iter: FrameAndIter = _ROOT,
) -> str:
    """The key of the tensor `name` from one device to another."""
    return (
        f"{src_device};{src_incarnation % _UINT64:016x};{dst_device};{name};"
        f"{frame_iter.frame_id}:{frame_iter.iter_id}"
    )


def parse_key(key: str) -> ParsedKey:
    """The parts of a key.

    Raises:
        InvalidArgumentError: it is no key, or a device is named by no full name.
    """
    parts = key.split(";")
    if len(parts) == 6 and not parts[5]:
        parts.pop()
    incarnation = _HEXADECIMAL.fullmatch(parts[1]) if len(parts) == 5 else None
    if incarnation is None or not parts[3] or not parts[4]:
        raise _invalid(key)
    try:
        source = DeviceName.parse_full_name(parts[0])
        destination = DeviceName.parse_full_name(parts[2])
    except InvalidArgumentError:
        raise _invalid(key) from None
    return ParsedKey(
        key, parts[0], source, int(incarnation[1], 16), parts[2], destination, parts[3]
    )


def _invalid(key: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Invalid  rendezvous key: {key}")
