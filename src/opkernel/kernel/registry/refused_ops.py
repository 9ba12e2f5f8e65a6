"""The ops that are refused on purpose, and why: they have no kernel, or one that says so.

Errors for nodes without a kernel tell the reason, and so does `opkernel coverage`.
"""

from collections.abc import Mapping

__all__ = ["REFUSED_OPS"]

_WORD2VEC = "TensorFlow has deprecated its ops for word2vec in favour of models: compute skip-grams in Python"

REFUSED_OPS: Mapping[str, str] = {
    "CalibrationStatisticsSaver": (
        "it writes statistics for TensorFlow's quantizer of models, which opkernel does not have"
    ),
    "DecodeJxl": "no decoder of JPEG XL is among the libraries that opkernel uses",
    "LMDBReader": (
        "no library that reads LMDB is among those that opkernel uses: convert the database to TFRecords"
    ),
    "NegTrain": _WORD2VEC,
    "Skipgram": _WORD2VEC,
}
"""Sentences without subject and full stop, by op."""
