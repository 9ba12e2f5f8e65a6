"""Devices: their factories, their memory, the threads within a kernel.

Source: TensorFlow framework/device*, device_factory, allocator, common_runtime/device_mgr.
"""
