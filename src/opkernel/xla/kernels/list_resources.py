"""Resources that hold a list of tensors and live in one program: TensorArrays and stacks."""

from __future__ import annotations

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType
from opkernel.xla.context import XlaOpKernelContext
from opkernel.xla.op_kernel import WholeProgramOp
from opkernel.xla.resource import XlaResource
from opkernel.xla.tensor_list import XlaTensorList

__all__ = ["ListResourceOp"]


class ListResourceOp(WholeProgramOp):
    """A kernel of a TensorArray or a stack."""

    def elements(
        self, ctx: XlaOpKernelContext, dtype: DataType | None = None
    ) -> tuple[XlaResource, XlaTensorList]:
        """The resource of input 0, and its elements, which are to be of a type.

        Raises:
            InvalidArgumentError: it is a variable, or has elements of another type.
        """
        resource = ctx.resource(0)
        found = resource.read(dtype)
        if not isinstance(found, XlaTensorList):
            raise InvalidArgumentError(f"{resource.name} is a variable, and holds no elements")
        return resource, found
