"""Why ops have no kernel, as far as that is known.

Source of the lists: the kernels that TensorFlow 2.21 registers for CPUs.
"""

from opkernel.ops import catalogue
from opkernel.ops.declared.table import tensorflow_op_defs

__all__ = ["why_no_kernel"]

_OF_MODULE = {
    "data": "tf.data is not covered yet",
    "dtensor": "part of TensorFlow's distributed runtime",
    "iterators": "tf.data is not covered yet",
    "mkl": "TensorFlow's own graphs for oneDNN have it, files do not",
    "recurrent": "needs cuDNN",
    "risc": "TensorFlow has no kernels of it",
    "test_ops": "TensorFlow's own tests have it, models do not",
    "tpu": "needs a TPU",
    "xla": "needs XLA",
}
"""Why the ops of a module of `ops/declared` have no kernel."""

_NOT_IN_TENSORFLOW = "TensorFlow has no CPU kernel of it either"
_WITHOUT_CPU_KERNEL = frozenset(
    [
        "AccumulateNV2",
        "AllToAll",
        "BatchFFT",
        "BatchFFT2D",
        "BatchFFT3D",
        "BatchIFFT",
        "BatchIFFT2D",
        "BatchIFFT3D",
        "CTCLossV2",
        "CollectivePermute",
        "Conv2DBackpropFilterV2",
        "Conv2DBackpropInputV2",
        "CrossReplicaSum",
        "FFTND",
        "GenerateBoundingBoxProposals",
        "IFFTND",
        "IRFFTND",
        "KthOrderStatistic",
        "MakeUnique",
        "MaxPoolGradGradWithArgmax",
        "NcclBroadcast",
        "NcclReduce",
        "QuantizedReluX",
        "RFFTND",
        "SegmentMaxV2",
        "SegmentMinV2",
        "SegmentProdV2",
        "SegmentSumV2",
        "SparseMatrixAdd",
        "SparseMatrixMul",
        "SparseMatrixSoftmax",
        "SparseMatrixSoftmaxGrad",
        "SparseMatrixZeros",
        "TopKUnique",
        "TopKWithUnique",
    ]
)


_WITH_CPU_KERNEL = frozenset(
    [
        "CalibrationStatisticsSaver",
        "CompositeTensorVariantFromComponents",
        "CompositeTensorVariantToComponents",
        "DistributedSave",
        "_EagerConst",
    ]
)
"""Of TensorFlow's ops that the catalogue does not have, those with a CPU kernel in TensorFlow."""


def why_no_kernel(op: str) -> str:
    """The reason, without full stop; empty where nothing speaks against a kernel."""
    module, _ = catalogue.entry(op)
    if op in _WITHOUT_CPU_KERNEL:
        return _NOT_IN_TENSORFLOW
    if module or op in _WITH_CPU_KERNEL or op not in tensorflow_op_defs():
        return _OF_MODULE.get(module.removeprefix("declared."), "")
    return "needs a TPU" if "TPU" in op else _NOT_IN_TENSORFLOW
