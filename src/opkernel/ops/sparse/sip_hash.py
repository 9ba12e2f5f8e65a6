"""SipHash-2-4: a hash of 64 bits under a key.

Source: TensorFlow core/lib/strong_hash (SipHash of the HighwayHash library).
"""

__all__ = ["sip_hash"]

_MASK = (1 << 64) - 1
_State = tuple[int, int, int, int]


def sip_hash(data: bytes, key: tuple[int, int]) -> int:
    """The hash of a string under a key of two words."""
    k0, k1 = (word & _MASK for word in key)
    state = (
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    )
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v0, v1, v2, v3 = state
        v0, v1, v2, v3 = _round(_round((v0, v1, v2, v3 ^ word)))
        state = (v0 ^ word, v1, v2, v3)
    v0, v1, v2, v3 = state
    state = (v0, v1, v2 ^ 0xFF, v3)
    for _ in range(4):
        state = _round(state)
    v0, v1, v2, v3 = state
    return v0 ^ v1 ^ v2 ^ v3


def _rotate(value: int, shift: int) -> int:
    return (value << shift | value >> (64 - shift)) & _MASK


def _round(state: _State) -> _State:
    v0, v1, v2, v3 = state
    v0, v2 = (v0 + v1) & _MASK, (v2 + v3) & _MASK
    v1, v3 = _rotate(v1, 13) ^ v0, _rotate(v3, 16) ^ v2
    v0, v2 = (_rotate(v0, 32) + v3) & _MASK, (v2 + v1) & _MASK
    v1, v3 = _rotate(v1, 17) ^ v2, _rotate(v3, 21) ^ v0
    return v0, v1, _rotate(v2, 32), v3
