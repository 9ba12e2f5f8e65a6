"""Why ops have no kernel, as far as that is known.

Source of the lists: the kernels that TensorFlow 2.21 registers for CPUs.
"""

from opkernel.ops import catalogue

__all__ = ["why_no_kernel"]

_OF_MODULE = {
    "boosted_trees": "TensorFlow has dropped its kernels for boosted trees",
    "data": "tf.data is not covered yet",
    "dtensor": "part of TensorFlow's distributed runtime",
    "iterators": "tf.data is not covered yet",
    "mkl": "TensorFlow's own graphs for oneDNN have it, files do not",
    "recurrent": "needs cuDNN",
    "risc": "TensorFlow has no kernels of it",
    "sparse_core": "needs a TPU",
    "test_ops": "TensorFlow's own tests have it, models do not",
    "tpu": "needs a TPU",
    "tpu_embedding": "needs a TPU",
    "xla": "needs XLA",
    "xla_dot": "needs XLA",
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
        "ConfigureTPUEmbeddingHost",
        "Conv2DBackpropFilterV2",
        "Conv2DBackpropInputV2",
        "CrossReplicaSum",
        "DTensorAllGather",
        "DTensorAllScatter",
        "DTensorAllToAll",
        "ExecuteTPUEmbeddingPartitioner",
        "FFTND",
        "GenerateBoundingBoxProposals",
        "IFFTND",
        "IRFFTND",
        "KthOrderStatistic",
        "LoadAllTPUEmbeddingParameters",
        "MakeUnique",
        "MaxPoolGradGradWithArgmax",
        "NcclBroadcast",
        "NcclReduce",
        "QuantizedReluX",
        "RFFTND",
        "ReadVariableXlaSplitND",
        "RecvTPUEmbeddingActivations",
        "RetrieveAllTPUEmbeddingParameters",
        "SegmentMaxV2",
        "SegmentMinV2",
        "SegmentProdV2",
        "SegmentSumV2",
        "SparseMatrixAdd",
        "SparseMatrixMul",
        "SparseMatrixSoftmax",
        "SparseMatrixSoftmaxGrad",
        "SparseMatrixZeros",
        "TPUPartitionedInput",
        "TPUPartitionedInputV2",
        "TopKUnique",
        "TopKWithUnique",
        "WorkerHeartbeat",
        "XlaConcatND",
        "XlaRecvTPUEmbeddingActivations",
        "XlaRecvTPUEmbeddingActivationsV2",
        "XlaSendTPUEmbeddingGradients",
        "XlaSendTPUEmbeddingGradientsV2",
        "XlaSplitND",
        "XlaSpmdFullToShardShape",
    ]
)


def why_no_kernel(op: str) -> str:
    """The reason, without full stop; empty where nothing speaks against a kernel."""
    if op in _WITHOUT_CPU_KERNEL:
        return _NOT_IN_TENSORFLOW
    module, _ = catalogue.entry(op)
    return _OF_MODULE.get(module.removeprefix("declared."), "")
