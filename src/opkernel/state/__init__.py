"""What outlives a step: resources, their handles, containers.

Source: TensorFlow framework/resource_mgr, resource_handle.
"""
