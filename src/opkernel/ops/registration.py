"""Registering kernels of the catalogue: `register_kernel`, and the sets of types that kernels are registered for.

A module that registers with `register_kernel` claims `outputs_as_declared` for its kernels, which are tested for it
(`tests/testing/test_catalogue.py`), and `ignores_call`, as anybody may do for theirs. A kernel is for the
CPU unless it says another device.
"""

from functools import partial
from typing import TYPE_CHECKING

from opkernel.kernel import KernelContract
from opkernel.types import DataType

if TYPE_CHECKING:  # for the types of decorated objects
    from opkernel.kernel import register_kernel as register_kernel
else:
    from opkernel.kernel import register_kernel

    _CLAIMS = KernelContract(outputs_as_declared=True, ignores_call=True)
    register_kernel = partial(register_kernel, device="CPU", contract=_CLAIMS)

ASKS_FOR_CALL = KernelContract(outputs_as_declared=True)
"""Of the few that ask for the call frame."""

FLOATS = (DataType.DT_BFLOAT16, DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE)
"""The floating point types of nearly every numeric kernel."""

NARROW_FLOATS = (DataType.DT_BFLOAT16, DataType.DT_HALF)
"""The types that many kernels compute in float."""

COMPLEX = (DataType.DT_COMPLEX64, DataType.DT_COMPLEX128)

REAL_OF = {
    DataType.DT_COMPLEX64: DataType.DT_FLOAT,
    DataType.DT_COMPLEX128: DataType.DT_DOUBLE,
}
"""The types of the parts of complex numbers."""

COMPLEX_OF = {real: whole for whole, real in REAL_OF.items()}
"""The types of the complex numbers of such parts."""

SIGNED_INTEGERS = (DataType.DT_INT8, DataType.DT_INT16, DataType.DT_INT32, DataType.DT_INT64)

INTEGERS = (
    *SIGNED_INTEGERS,
    DataType.DT_UINT8,
    DataType.DT_UINT16,
    DataType.DT_UINT32,
    DataType.DT_UINT64,
)

REAL_NUMBERS = (*FLOATS, *INTEGERS)
"""TF_CALL_REAL_NUMBER_TYPES."""

NUMBERS = (*REAL_NUMBERS, *COMPLEX)
"""TF_CALL_NUMBER_TYPES."""

INDEX = (DataType.DT_INT32, DataType.DT_INT64)
"""The types of sizes, axes and indices."""

WIDE_INDEX = (DataType.DT_INT16, *INDEX)

POD = (*NUMBERS, DataType.DT_BOOL)
"""TF_CALL_POD_TYPES."""

POD_OR_STRING = (*POD, DataType.DT_STRING)
"""TF_CALL_POD_STRING_TYPES."""

ALL = (*POD_OR_STRING, DataType.DT_RESOURCE, DataType.DT_VARIANT)
"""TF_CALL_ALL_TYPES."""

FLOAT8 = (DataType.DT_FLOAT8_E5M2, DataType.DT_FLOAT8_E4M3FN)
"""TF_CALL_FLOAT8_TYPES, as far as kernels are registered for them."""

QUANTIZED = (DataType.DT_QINT8, DataType.DT_QUINT8, DataType.DT_QINT32)
"""TF_CALL_QUANTIZED_TYPES."""

ALL_QUANTIZED = (*QUANTIZED, DataType.DT_QINT16, DataType.DT_QUINT16)

WIDE_FLOATS = (DataType.DT_FLOAT, DataType.DT_DOUBLE)
