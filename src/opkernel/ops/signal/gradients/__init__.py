"""The gradients of the ops of `opkernel.ops.signal`, in modules named like those of the ops."""
