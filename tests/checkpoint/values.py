"""The tensors of the checkpoints in `data/`."""

import ml_dtypes
import numpy as np

_TYPES = [
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "complex64",
    "complex128",
]

VALUES = {
    **{f"{name}/matrix": np.arange(-2, 4).reshape(2, 3).astype(name) for name in _TYPES},
    "float32/scalar": np.array(-1.5, np.float32),
    "float32/empty": np.zeros((2, 0, 3), np.float32),
    "float32/odd": np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32),
    "bfloat16/vector": np.array([1, -2.5], ml_dtypes.bfloat16),
    "float8/vector": np.array([1, -2.5], ml_dtypes.float8_e5m2),
    "int4/vector": np.array([7, -8], ml_dtypes.int4),
    "strings/vector": np.array([b"a", b"", b"\0\xff", b"x" * 200], object),
    "strings/scalar": np.array(b"whole", object),
}
PARTED = np.arange(30, dtype=np.float32).reshape(6, 5)
SPECS = ("6 5 0,2:-", "6 5 2,4:0,3", "6 5 2,4:3,2")
PARTS = (PARTED[:2], PARTED[2:, :3], PARTED[2:, 3:])
