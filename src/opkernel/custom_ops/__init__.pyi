from opkernel.custom_ops.custom_op import CustomOp as CustomOp
from opkernel.custom_ops.custom_op import op as op
from opkernel.custom_ops.signature import Tensor as Tensor

__all__: list[str]
