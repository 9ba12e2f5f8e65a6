"""`register_kernel` for the modules of the catalogue: their kernels claim what all of them keep.

A module that registers with it claims `outputs_as_declared` for its kernels, which are tested for it
(`tests/testing/test_catalogue.py`), and `ignores_call`, as anybody may do for theirs. A kernel is for the
CPU unless it says another device.
"""

from functools import partial
from typing import TYPE_CHECKING

from opkernel.kernel import KernelContract

if TYPE_CHECKING:  # for the types of decorated objects
    from opkernel.kernel import register_kernel as register_kernel
else:
    from opkernel.kernel import register_kernel

    _CLAIMS = KernelContract(outputs_as_declared=True, ignores_call=True)
    register_kernel = partial(register_kernel, device="CPU", contract=_CLAIMS)

__all__ = ["ASKS_FOR_CALL", "register_kernel"]

ASKS_FOR_CALL = KernelContract(outputs_as_declared=True)
"""Of the few that ask for the call frame."""
