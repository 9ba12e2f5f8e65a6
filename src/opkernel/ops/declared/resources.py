"""Shapes of ops on resources of other kinds: caches, pools of threads, and any at all.

Source: TensorFlow core/ops/resource_variable_ops.cc, experimental_dataset_ops.cc, dataset_ops.cc.
"""

from opkernel.opdef import OpShapeInferenceFn, no_outputs, scalar_shape
from opkernel.ops.declared.rules import fixed_shapes

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "AnonymousMemoryCache": fixed_shapes((), ()),
    "DeleteMemoryCache": no_outputs,
    "DummyIterationCounter": scalar_shape,
    "DummyMemoryCache": scalar_shape,
    "ExperimentalThreadPoolHandle": scalar_shape,
    "IsResourceHandleRefCounting": scalar_shape,
    "ResourceCreateOp": no_outputs,
    "ResourceInitializedOp": scalar_shape,
    "ResourceUsingOp": no_outputs,
    "StubResourceHandleOp": scalar_shape,
    "ThreadPoolHandle": scalar_shape,
}
