"""Damaged files and messages: the ops that decode them refuse them with a fitting error, or give a value.

Sizes that a file only claims take no memory, and nothing warns.
"""

import random
import resource
import warnings

from tools.campaigns.campaign import Finding
from tools.campaigns.encoded_calls import KINDS, Call

from opkernel import raw_ops
from opkernel.device.allocation import allocation_limit
from opkernel.errors import Code, OpError

__all__ = ["case"]

_LIMIT = 1 << 26
"""So many bytes a tensor may take; what is refused for that takes none."""
_BESIDES = 1 << 27
"""So many bytes decoders may take besides."""
_SENSIBLE = {
    Code.INVALID_ARGUMENT,
    Code.DATA_LOSS,
    Code.OUT_OF_RANGE,
    Code.RESOURCE_EXHAUSTED,
    Code.UNIMPLEMENTED,
}


def case(rng: random.Random) -> str:
    """Decode one file or a few messages, damaged or not."""
    kind = rng.choice([*KINDS])
    call = KINDS[kind].draw(rng)
    before = _peak_bytes()
    outcome = _outcome(call)
    if _peak_bytes() - before > _LIMIT + _BESIDES:
        raise Finding(f"{(_peak_bytes() - before) >> 20} MiB were taken: {call}")
    return f"{kind} {outcome}"


def _outcome(call: Call) -> str:
    try:
        with warnings.catch_warnings(), allocation_limit(_LIMIT):
            warnings.simplefilter("error")
            getattr(raw_ops, call.op)(**call.inputs, **call.attrs)
    except OpError as error:
        cause = error.__cause__
        if error.code not in _SENSIBLE or f"{type(cause).__name__}: {cause}" in error.message:
            raise Finding(f"{error.code.name}: {error.message}\n{call}") from error
        return "refused"
    return "decoded"


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
