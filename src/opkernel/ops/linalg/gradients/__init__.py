"""The gradients of the ops of `opkernel.ops.linalg`, in modules named like those of the ops."""
