"""The gradients of the ops of `opkernel.ops.sparse`, in modules named like those of the ops."""
