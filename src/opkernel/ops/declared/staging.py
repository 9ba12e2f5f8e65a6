"""Shapes of ops that keep tensors from one step to the next: staging areas, maps, sessions.

Source: TensorFlow core/ops/data_flow_ops.cc, map_ops.cc.
"""

from opkernel.opdef import OpShapeInferenceFn, no_outputs, scalar_shape, unknown_shape
from opkernel.ops.declared.input_ranks import checked_no_outputs, checked_unknown

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "DeleteSessionTensor": checked_no_outputs("0"),
    "EmptyTensorMap": scalar_shape,
    "GetSessionHandle": scalar_shape,
    "GetSessionHandleV2": scalar_shape,
    "GetSessionTensor": checked_unknown("0"),
    "Stage": no_outputs,
    "StageClear": no_outputs,
    "StagePeek": unknown_shape,
    "StageSize": scalar_shape,
    "TensorMapErase": scalar_shape,
    "TensorMapHasKey": scalar_shape,
    "TensorMapInsert": scalar_shape,
    "TensorMapLookup": unknown_shape,
    "TensorMapSize": scalar_shape,
    "TensorMapStackKeys": unknown_shape,
    "Unstage": unknown_shape,
}
for kind in ("Map", "OrderedMap"):
    SHAPE_FNS |= {
        f"{kind}Clear": no_outputs,
        f"{kind}IncompleteSize": scalar_shape,
        f"{kind}Peek": unknown_shape,
        f"{kind}Size": scalar_shape,
        f"{kind}Stage": no_outputs,
        f"{kind}Unstage": unknown_shape,
        f"{kind}UnstageNoKey": unknown_shape,
    }
