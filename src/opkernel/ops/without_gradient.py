"""The ops of TensorFlow that have no gradient: their outputs count as constant.

Ops that give nothing but integers, truth values or text need not stand here: these never have
gradients.

Source: the calls of NotDifferentiable in TensorFlow python/ops.
"""

from opkernel.gradients import no_gradient

no_gradient("Const", "LinSpace", "OneHot", "OnesLike", "Range", "StopGradient", "ZerosLike")
no_gradient("EditDistance", "ParseTensor", "ResizeBilinearGrad", "StringToNumber", "Timestamp")
no_gradient(
    "FakeQuantWithMinMaxArgsGradient",
    "FakeQuantWithMinMaxVarsGradient",
    "FakeQuantWithMinMaxVarsPerChannelGradient",
)
no_gradient("DrawBoundingBoxes", "ExtractGlimpse", "HSVToRGB", "RandomCrop")
no_gradient("GenerateBoundingBoxProposals", "SampleDistortedBoundingBox")
no_gradient("SampleDistortedBoundingBoxV2")
no_gradient("AudioMicrofrontend", "LoadAndRemapMatrix", "RaggedRange", "ReduceDataset")
no_gradient("TPUReplicatedInput", "XlaVariadicReduce")
no_gradient("DecodePaddedRaw", "DecodeProtoV2", "DecodeRaw", "PyFunc", "PyFuncStateless")
no_gradient("CTCBeamSearchDecoder", "CTCGreedyDecoder", "SdcaOptimizer", "SdcaOptimizerV2")
no_gradient("SparseAddGrad", "SparseConcat", "SparseMatrixZeros")
no_gradient(
    "ParameterizedTruncatedNormal",
    "RandomShuffle",
    "RandomStandardNormal",
    "RandomUniform",
    "StatelessRandomBinomial",
    "StatelessRandomNormal",
    "StatelessRandomNormalV2",
    "StatelessRandomPoisson",
    "StatelessRandomShuffle",
    "StatelessRandomUniform",
    "StatelessRandomUniformV2",
    "StatelessTruncatedNormal",
    "StatelessTruncatedNormalV2",
    "TruncatedNormal",
)
no_gradient("Assign", "AssignAdd", "AssignSub")
no_gradient("ScatterAdd", "ScatterDiv", "ScatterMul", "ScatterSub")
no_gradient("ScatterNdAdd", "ScatterNdDiv", "ScatterNdMul", "ScatterNdSub", "ScatterNdUpdate")
no_gradient("StackPop", "StackPush")
no_gradient("TensorArrayGradV3", "TensorArrayGradWithShape", "TensorArrayV3")
no_gradient("EmptyTensorMap", "TensorListConcatLists", "TensorListPushBackBatch")
no_gradient("QueueDequeue", "QueueDequeueMany", "QueueDequeueUpTo")
no_gradient("GetSessionHandleV2", "GetSessionTensor")
no_gradient(
    "HashTableV2",
    "LookupTableFind",
    "LookupTableFindV2",
    "MutableDenseHashTableV2",
    "MutableHashTableOfTensorsV2",
    "MutableHashTableV2",
)
