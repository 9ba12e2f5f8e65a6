"""Which inputs of portable kernels the compiler must know. Kernels of the CPU that take `xp` do the rest."""

from opkernel.xla.op_registry import global_xla_op_registry

_COMPILE_TIME_CONSTANTS = {
    "axis": ("ConcatV2", "Cumprod", "Cumsum", "CumulativeLogsumexp", "GatherV2", "Roll"),
    "block_shape": ("SpaceToBatchND",),
    "concat_dim": ("Concat",),
    "depth": ("OneHot",),
    "dimension": ("ArgMax", "ArgMin"),
    "dims": ("Fill",),
    "k": ("InTopKV2",),
    "multiples": ("Tile",),
    "paddings": ("MirrorPad", "Pad", "PadV2", "SpaceToBatch", "SpaceToBatchND"),
    "perm": ("ConjugateTranspose",),
    "reduction_indices": ("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum"),
    "shape": ("BroadcastTo",),
    "size": ("ResizeBilinear", "ResizeNearestNeighbor"),
}

for _name, _ops in _COMPILE_TIME_CONSTANTS.items():
    for _op in _ops:
        global_xla_op_registry().register_compile_time_constant(_op, _name)
