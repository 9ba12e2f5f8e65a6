"""Devices through JAX: types GPU, TPU and XLA_CPU, whose tensors are arrays of JAX.

Importing this package imports no JAX. `opkernel.device.device_factory` knows it by name.

Source: TensorFlow compiler/jit/xla_device.h, xla_device_ops.h.
"""
