"""The ops of the catalogue. Written by tools/generate_stubs.py; do not edit."""

import collections.abc
import typing

import numpy.typing as npt

import opkernel.graph
import opkernel.proto
import opkernel.types

_Tensor: typing.TypeAlias = typing.Any  # an array; in a graph, an opkernel.Tensor
_Input: typing.TypeAlias = (
    npt.ArrayLike
    | opkernel.graph.Tensor
    | opkernel.types.ResourceHandle
    | opkernel.types.Variant
)
_Type: typing.TypeAlias = opkernel.types.DataType | npt.DTypeLike
_Shape: typing.TypeAlias = (
    opkernel.types.TensorShape
    | opkernel.types.PartialTensorShape
    | collections.abc.Sequence[int | None]
    | None
)
_Func: typing.TypeAlias = str | opkernel.proto.NameAttrList

def A(
    *,
    name: str | None = None,
) -> _Tensor: ...

def Abort(
    *,
    error_msg: str | bytes = '',
    exit_without_error: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Ends the step with an AbortedError that has the message. TensorFlow ends the process."""

def Abs(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The absolute value of `x`."""

def AccumulateNV2(
    *,
    inputs: collections.abc.Sequence[_Input],
    shape: _Shape,
    name: str | None = None,
) -> _Tensor:
    """The sum of the tensors of `inputs`, which have the shape `shape`, taken as they come."""

def AccumulatorApplyGradient(
    *,
    handle: _Input,
    local_step: _Input,
    gradient: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Adds a gradient, unless it is stale."""

def AccumulatorNumAccumulated(
    *,
    handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """How many gradients have been added since the last were taken."""

def AccumulatorSetGlobalStep(
    *,
    handle: _Input,
    new_global_step: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Sets the step before which gradients are stale."""

def AccumulatorTakeGradient(
    *,
    handle: _Input,
    num_required: _Input,
    dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """Takes the mean, or sum, of the gradients out; waits until there are enough."""

def Acos(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The angle in radians whose cosine is `x`."""

def Acosh(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of 0 or more whose hyperbolic cosine is `x`."""

def Add(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The sum `x + y`; strings are joined."""

def AddManySparseToTensorsMap(
    *,
    sparse_indices: _Input,
    sparse_values: _Input,
    sparse_shape: _Input,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Has the map of that name keep each row of a sparse tensor; the output are their numbers."""

def AddN(
    *,
    inputs: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> _Tensor:
    """The sum of the tensors of `inputs`, which have the same shape."""

def AddSparseToTensorsMap(
    *,
    sparse_indices: _Input,
    sparse_values: _Input,
    sparse_shape: _Input,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Has the map of that name keep a sparse tensor; the output is its number."""

def AddV2(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The sum `x + y`."""

def AdjustContrast(
    *,
    images: _Input,
    contrast_factor: _Input,
    min_value: _Input,
    max_value: _Input,
    name: str | None = None,
) -> _Tensor:
    """AdjustContrastv2, clipped between min_value and max_value."""

def AdjustContrastv2(
    *,
    images: _Input,
    contrast_factor: _Input,
    name: str | None = None,
) -> _Tensor:
    """Multiplies the distance of each pixel from the mean of its channel in its image."""

def AdjustHue(
    *,
    images: _Input,
    delta: _Input,
    name: str | None = None,
) -> _Tensor:
    """Adds `delta` to the hue of red, green, blue images; 1 is once around the circle."""

def AdjustSaturation(
    *,
    images: _Input,
    scale: _Input,
    name: str | None = None,
) -> _Tensor:
    """Multiplies the saturation of red, green, blue images by `scale`."""

def All(
    *,
    input: _Input,
    axis: _Input,
    keep_dims: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The logical and of `input` over the axes `reduction_indices`, negative ones from the end."""

class _AllCandidateSamplerOutputs(typing.NamedTuple):
    sampled_candidates: _Tensor
    true_expected_count: _Tensor
    sampled_expected_count: _Tensor

def AllCandidateSampler(
    *,
    true_classes: _Input,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _AllCandidateSamplerOutputs:
    """All classes in order; and how often each, and each of the true ones, is expected."""

def AllToAll(
    *,
    input: _Input,
    group_assignment: _Input,
    concat_dimension: int,
    split_dimension: int,
    split_count: int,
    name: str | None = None,
) -> _Tensor: ...

def Angle(
    *,
    input: _Input,
    Tout: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The angle of `input` in the complex plane, in radians."""

def AnonymousHashTable(
    *,
    key_dtype: _Type,
    value_dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """A table that is filled once."""

def AnonymousIterator(
    *,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """A new iterator, which lives as long as its handle."""

class _AnonymousIteratorV2Outputs(typing.NamedTuple):
    handle: _Tensor
    deleter: _Tensor

def AnonymousIteratorV2(
    *,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _AnonymousIteratorV2Outputs:
    """A new iterator, and what deletes it when it is collected."""

def AnonymousIteratorV3(
    *,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """A new iterator, which lives as long as its handle."""

class _AnonymousMemoryCacheOutputs(typing.NamedTuple):
    handle: _Tensor
    deleter: _Tensor

def AnonymousMemoryCache(
    *,
    name: str | None = None,
) -> _AnonymousMemoryCacheOutputs:
    """A new cache in memory, and what deletes it when it is collected."""

class _AnonymousMultiDeviceIteratorOutputs(typing.NamedTuple):
    handle: _Tensor
    deleter: _Tensor

def AnonymousMultiDeviceIterator(
    *,
    devices: collections.abc.Sequence[str | bytes],
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _AnonymousMultiDeviceIteratorOutputs:
    """A new iterator for several devices, and what deletes it."""

def AnonymousMultiDeviceIteratorV3(
    *,
    devices: collections.abc.Sequence[str | bytes],
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """A new iterator for several devices, which lives as long as its handle."""

def AnonymousMutableDenseHashTable(
    *,
    empty_key: _Input,
    deleted_key: _Input,
    value_dtype: _Type,
    value_shape: _Shape = ...,
    initial_num_buckets: int = 131072,
    max_load_factor: float = 0.8,
    name: str | None = None,
) -> _Tensor:
    """A table that changes, kept in arrays; two keys mark what is not in use."""

def AnonymousMutableHashTable(
    *,
    key_dtype: _Type,
    value_dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """A table that changes."""

def AnonymousMutableHashTableOfTensors(
    *,
    key_dtype: _Type,
    value_dtype: _Type,
    value_shape: _Shape = ...,
    name: str | None = None,
) -> _Tensor:
    """A table that changes, of vectors."""

class _AnonymousRandomSeedGeneratorOutputs(typing.NamedTuple):
    handle: _Tensor
    deleter: _Tensor

def AnonymousRandomSeedGenerator(
    *,
    seed: _Input,
    seed2: _Input,
    name: str | None = None,
) -> _AnonymousRandomSeedGeneratorOutputs:
    """A new generator of seeds, and what deletes it when it is collected."""

class _AnonymousSeedGeneratorOutputs(typing.NamedTuple):
    handle: _Tensor
    deleter: _Tensor

def AnonymousSeedGenerator(
    *,
    seed: _Input,
    seed2: _Input,
    reshuffle: _Input,
    name: str | None = None,
) -> _AnonymousSeedGeneratorOutputs:
    """A new generator of seeds, and what deletes it when it is collected."""

def Any(
    *,
    input: _Input,
    axis: _Input,
    keep_dims: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The logical or of `input` over the axes `reduction_indices`, negative ones from the end."""

def ApplyAdaMax(
    *,
    var: _Input,
    m: _Input,
    v: _Input,
    beta1_power: _Input,
    lr: _Input,
    beta1: _Input,
    beta2: _Input,
    epsilon: _Input,
    grad: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of AdaMax on `var` and its slots."""

def ApplyAdadelta(
    *,
    var: _Input,
    accum: _Input,
    accum_update: _Input,
    lr: _Input,
    rho: _Input,
    epsilon: _Input,
    grad: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of Adadelta on `var` and its slots."""

def ApplyAdagrad(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    grad: _Input,
    use_locking: bool = False,
    update_slots: bool = True,
    name: str | None = None,
) -> _Tensor:
    """A step of Adagrad on `var` and its slots."""

def ApplyAdagradDA(
    *,
    var: _Input,
    gradient_accumulator: _Input,
    gradient_squared_accumulator: _Input,
    grad: _Input,
    lr: _Input,
    l1: _Input,
    l2: _Input,
    global_step: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of AdagradDA on `var` and its slots."""

def ApplyAdagradV2(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    epsilon: _Input,
    grad: _Input,
    use_locking: bool = False,
    update_slots: bool = True,
    name: str | None = None,
) -> _Tensor:
    """A step of AdagradV2 on `var` and its slots."""

def ApplyAdam(
    *,
    var: _Input,
    m: _Input,
    v: _Input,
    beta1_power: _Input,
    beta2_power: _Input,
    lr: _Input,
    beta1: _Input,
    beta2: _Input,
    epsilon: _Input,
    grad: _Input,
    use_locking: bool = False,
    use_nesterov: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of Adam on `var` and its slots."""

def ApplyAddSign(
    *,
    var: _Input,
    m: _Input,
    lr: _Input,
    alpha: _Input,
    sign_decay: _Input,
    beta: _Input,
    grad: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of AddSign on `var` and its slots."""

def ApplyCenteredRMSProp(
    *,
    var: _Input,
    mg: _Input,
    ms: _Input,
    mom: _Input,
    lr: _Input,
    rho: _Input,
    momentum: _Input,
    epsilon: _Input,
    grad: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of CenteredRMSProp on `var` and its slots."""

def ApplyFtrl(
    *,
    var: _Input,
    accum: _Input,
    linear: _Input,
    grad: _Input,
    lr: _Input,
    l1: _Input,
    l2: _Input,
    lr_power: _Input,
    use_locking: bool = False,
    multiply_linear_by_lr: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of Ftrl on `var` and its slots."""

def ApplyFtrlV2(
    *,
    var: _Input,
    accum: _Input,
    linear: _Input,
    grad: _Input,
    lr: _Input,
    l1: _Input,
    l2: _Input,
    l2_shrinkage: _Input,
    lr_power: _Input,
    use_locking: bool = False,
    multiply_linear_by_lr: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of FtrlV2 on `var` and its slots."""

def ApplyGradientDescent(
    *,
    var: _Input,
    alpha: _Input,
    delta: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of GradientDescent on `var` and its slots."""

def ApplyMomentum(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    grad: _Input,
    momentum: _Input,
    use_locking: bool = False,
    use_nesterov: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of Momentum on `var` and its slots."""

def ApplyPowerSign(
    *,
    var: _Input,
    m: _Input,
    lr: _Input,
    logbase: _Input,
    sign_decay: _Input,
    beta: _Input,
    grad: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of PowerSign on `var` and its slots."""

def ApplyProximalAdagrad(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    l1: _Input,
    l2: _Input,
    grad: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of ProximalAdagrad on `var` and its slots."""

def ApplyProximalGradientDescent(
    *,
    var: _Input,
    alpha: _Input,
    l1: _Input,
    l2: _Input,
    delta: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of ProximalGradientDescent on `var` and its slots."""

def ApplyRMSProp(
    *,
    var: _Input,
    ms: _Input,
    mom: _Input,
    lr: _Input,
    rho: _Input,
    momentum: _Input,
    epsilon: _Input,
    grad: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of RMSProp on `var` and its slots."""

class _ApproxTopKOutputs(typing.NamedTuple):
    values: _Tensor
    indices: _Tensor

def ApproxTopK(
    *,
    input: _Input,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    is_max_k: bool = True,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> _ApproxTopKOutputs:
    """The `k` largest (or smallest) elements along an axis, with an expected recall."""

def ApproximateEqual(
    *,
    x: _Input,
    y: _Input,
    tolerance: float = 1e-05,
    name: str | None = None,
) -> _Tensor:
    """Whether `x` and `y`, of the same shape, differ by no more than `tolerance`."""

def ArgMax(
    *,
    input: _Input,
    dimension: _Input,
    output_type: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The index of the first of the largest elements of `input` along the axis `dimension`."""

def ArgMin(
    *,
    input: _Input,
    dimension: _Input,
    output_type: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The index of the first of the smallest elements of `input` along the axis `dimension`."""

def AsString(
    *,
    input: _Input,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Each element as text, with `precision` digits, filled up to `width` characters."""

def Asin(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The angle in radians whose sine is `x`."""

def Asinh(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number whose hyperbolic sine is `x`."""

def Assert(
    *,
    condition: _Input,
    data: collections.abc.Sequence[_Input],
    summarize: int = 3,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Fails unless `condition` is true; the error tells `summarize` values of each of `data`."""

def AssertCardinalityDataset(
    *,
    input_dataset: _Input,
    cardinality: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`; a FailedPreconditionError if they are not `cardinality`."""

def AssertNextDataset(
    *,
    input_dataset: _Input,
    transformations: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`. TensorFlow checks the stages that its passes have put behind it."""

def AssertPrevDataset(
    *,
    input_dataset: _Input,
    transformations: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`, which the ops `transformations` must have made, last ones first."""

def Assign(
    *,
    ref: _Input,
    value: _Input,
    validate_shape: bool = True,
    use_locking: bool = True,
    name: str | None = None,
) -> _Tensor:
    """Gives the variable a value; with `validate_shape` it must be of the shape it has."""

def AssignAdd(
    *,
    ref: _Input,
    value: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Adds to the variable."""

def AssignAddVariableOp(
    *,
    resource: _Input,
    value: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Adds to the variable."""

def AssignSub(
    *,
    ref: _Input,
    value: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Subtracts from the variable."""

def AssignSubVariableOp(
    *,
    resource: _Input,
    value: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Subtracts from the variable."""

def AssignVariableOp(
    *,
    resource: _Input,
    value: _Input,
    validate_shape: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Gives the variable a value; with `validate_shape` it must be of the shape it has."""

def AssignVariableXlaConcatND(
    *,
    resource: _Input,
    inputs: collections.abc.Sequence[_Input],
    num_concats: collections.abc.Sequence[int],
    paddings: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def Atan(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The angle in radians whose tangent is `x`."""

def Atan2(
    *,
    y: _Input,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The angle of the point (x, y) in radians, between -pi and pi."""

def Atanh(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number whose hyperbolic tangent is `x`."""

def Attr(
    *,
    a: int,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def AttrBool(
    *,
    a: bool,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def AttrBoolList(
    *,
    a: collections.abc.Sequence[bool],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def AttrDefault(
    *,
    a: str | bytes = 'banana',
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def AttrEmptyListDefault(
    *,
    a: collections.abc.Sequence[float] = ...,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def AttrEnum(
    *,
    a: typing.Literal['apples', 'oranges'],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def AttrEnumList(
    *,
    a: collections.abc.Sequence[typing.Literal['apples', 'oranges']],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def AttrFloat(
    *,
    a: float,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def AttrListDefault(
    *,
    a: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def AttrListMin(
    *,
    a: collections.abc.Sequence[int],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def AttrListTypeDefault(
    *,
    a: collections.abc.Sequence[_Input],
    b: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def AttrMin(
    *,
    a: int,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def AttrPartialShape(
    *,
    a: _Shape,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def AttrPartialShapeList(
    *,
    a: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def AttrShape(
    *,
    a: _Shape,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def AttrShapeList(
    *,
    a: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def AttrTypeDefault(
    *,
    a: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def AudioMicrofrontend(
    *,
    audio: _Input,
    sample_rate: int = 16000,
    window_size: int = 25,
    window_step: int = 10,
    num_channels: int = 32,
    upper_band_limit: float = 7500.0,
    lower_band_limit: float = 125.0,
    smoothing_bits: int = 10,
    even_smoothing: float = 0.025,
    odd_smoothing: float = 0.06,
    min_signal_remaining: float = 0.05,
    enable_pcan: bool = False,
    pcan_strength: float = 0.95,
    pcan_offset: float = 80.0,
    gain_bits: int = 21,
    enable_log: bool = True,
    scale_shift: int = 6,
    left_context: int = 0,
    right_context: int = 0,
    frame_stride: int = 1,
    zero_padding: bool = False,
    out_scale: int = 1,
    out_type: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The strengths of channels that are even on the Mel scale, in windows of a sound, less the steady noise."""

def AudioSpectrogram(
    *,
    input: _Input,
    window_size: int,
    stride: int,
    magnitude_squared: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The magnitudes of frequencies in Hann windows of a sound [samples, channels], or their squares."""

def AudioSummary(
    *,
    tag: _Input,
    tensor: _Input,
    sample_rate: float,
    max_outputs: int = 3,
    name: str | None = None,
) -> _Tensor:
    """A summary with a WAV file of each sound [batch, frames, channels]."""

def AudioSummaryV2(
    *,
    tag: _Input,
    tensor: _Input,
    sample_rate: _Input,
    max_outputs: int = 3,
    name: str | None = None,
) -> _Tensor:
    """A summary with a WAV file of each sound [batch, frames, channels]."""

def AutoShardDataset(
    *,
    input_dataset: _Input,
    num_workers: _Input,
    index: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    auto_shard_policy: int = 0,
    num_replicas: int = 0,
    name: str | None = None,
) -> _Tensor:
    """The part of the elements for one of several workers, as a policy says."""

def AvgPool(
    *,
    value: _Input,
    ksize: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    name: str | None = None,
) -> _Tensor:
    """The means over windows of images; padding does not count."""

def AvgPool3D(
    *,
    input: _Input,
    ksize: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    data_format: typing.Literal['NDHWC', 'NCDHW'] = 'NDHWC',
    name: str | None = None,
) -> _Tensor:
    """The means over windows of volumes; padding does not count."""

def AvgPool3DGrad(
    *,
    orig_input_shape: _Input,
    grad: _Input,
    ksize: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    data_format: typing.Literal['NDHWC', 'NCDHW'] = 'NDHWC',
    name: str | None = None,
) -> _Tensor:
    """The gradient of AvgPool3D by its input, whose shape is given."""

def AvgPoolGrad(
    *,
    orig_input_shape: _Input,
    grad: _Input,
    ksize: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    name: str | None = None,
) -> _Tensor:
    """The gradient of AvgPool by its input, whose shape is given."""

def B(
    *,
    name: str | None = None,
) -> _Tensor: ...

def BandedTriangularSolve(
    *,
    matrix: _Input,
    rhs: _Input,
    lower: bool = True,
    adjoint: bool = False,
    name: str | None = None,
) -> _Tensor:
    """MatrixTriangularSolve for matrices that are given by the bands beside their diagonals."""

def Barrier(
    *,
    component_types: collections.abc.Sequence[_Type],
    shapes: collections.abc.Sequence[_Shape] = ...,
    capacity: int = -1,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A barrier, which keeps the components of a key until all have come."""

def BarrierClose(
    *,
    handle: _Input,
    cancel_pending_enqueues: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Lets no new keys in, and with `cancel_pending_enqueues` no more values."""

def BarrierIncompleteSize(
    *,
    handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of keys that lack values."""

def BarrierInsertMany(
    *,
    handle: _Input,
    keys: _Input,
    values: _Input,
    component_index: int,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Gives each key its value of one component."""

def BarrierReadySize(
    *,
    handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of complete keys."""

class _BarrierTakeManyOutputs(typing.NamedTuple):
    indices: _Tensor
    keys: _Tensor
    values: list[_Tensor]

def BarrierTakeMany(
    *,
    handle: _Input,
    num_elements: _Input,
    component_types: collections.abc.Sequence[_Type],
    allow_small_batch: bool = False,
    wait_for_incomplete: bool = False,
    timeout_ms: int = -1,
    name: str | None = None,
) -> _BarrierTakeManyOutputs:
    """Takes out keys whose components are complete, those that came first before others."""

class _BatchOutputs(typing.NamedTuple):
    batched_tensors: list[_Tensor]
    batch_index: _Tensor
    id: _Tensor

def Batch(
    *,
    in_tensors: collections.abc.Sequence[_Input],
    num_batch_threads: int,
    max_batch_size: int,
    batch_timeout_micros: int,
    grad_timeout_micros: int,
    max_enqueued_batches: int = 10,
    allowed_batch_sizes: collections.abc.Sequence[int] = ...,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    batching_queue: str | bytes = '',
    name: str | None = None,
) -> _BatchOutputs:
    """    Joins the inputs of several steps. The last step of a batch gets all rows, and the others get no rows."""

def BatchCholesky(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The old name of Cholesky."""

def BatchCholeskyGrad(
    *,
    l: _Input,
    grad: _Input,
    name: str | None = None,
) -> _Tensor:
    """The old name of CholeskyGrad."""

def BatchDataset(
    *,
    input_dataset: _Input,
    batch_size: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Batches of `batch_size` elements; the last one may be smaller."""

def BatchDatasetV2(
    *,
    input_dataset: _Input,
    batch_size: _Input,
    drop_remainder: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    parallel_copy: bool = False,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Batches of `batch_size` elements; the last one may be smaller."""

def BatchFFT(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor: ...

def BatchFFT2D(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor: ...

def BatchFFT3D(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor: ...

def BatchFunction(
    *,
    in_tensors: collections.abc.Sequence[_Input],
    captured_tensors: collections.abc.Sequence[_Input],
    f: _Func,
    num_batch_threads: int,
    max_batch_size: int,
    batch_timeout_micros: int,
    Tout: collections.abc.Sequence[_Type],
    max_enqueued_batches: int = 10,
    allowed_batch_sizes: collections.abc.Sequence[int] = ...,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    batching_queue: str | bytes = '',
    low_priority_max_batch_size: int = 0,
    low_priority_batch_timeout_micros: int = 0,
    low_priority_allowed_batch_sizes: collections.abc.Sequence[int] = ...,
    low_priority_max_enqueued_batches: int = 0,
    mixed_priority_policy: typing.Literal['low_priority_padding_with_max_batch_size', 'low_priority_padding_with_next_allowed_batch_size', 'priority_isolation', 'priority_merge'] = 'low_priority_padding_with_max_batch_size',
    batch_padding_policy: typing.Literal['PAD_UP', 'BATCH_DOWN', 'MINIMIZE_TPU_COST_PER_REQUEST'] = 'PAD_UP',
    enable_large_batch_splitting: bool = False,
    name: str | None = None,
) -> list[_Tensor]:
    """    Calls `f` with the rows of several steps, and gives each step the rows of the results that are its own."""

def BatchIFFT(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor: ...

def BatchIFFT2D(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor: ...

def BatchIFFT3D(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor: ...

def BatchMatMul(
    *,
    x: _Input,
    y: _Input,
    adj_x: bool = False,
    adj_y: bool = False,
    grad_x: bool = False,
    grad_y: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Multiply the matrices of `x` [..., m, k] by those of `y` [..., k, n]."""

def BatchMatMulV2(
    *,
    x: _Input,
    y: _Input,
    adj_x: bool = False,
    adj_y: bool = False,
    grad_x: bool = False,
    grad_y: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Multiply the matrices of `x` [..., m, k] by those of `y` [..., k, n], their batches broadcast."""

def BatchMatMulV3(
    *,
    x: _Input,
    y: _Input,
    Tout: _Type,
    adj_x: bool = False,
    adj_y: bool = False,
    grad_x: bool = False,
    grad_y: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Multiply the matrices of `x` [..., m, k] by those of `y` [..., k, n], their batches broadcast, with a result type of its own."""

def BatchMatrixBandPart(
    *,
    input: _Input,
    num_lower: _Input,
    num_upper: _Input,
    name: str | None = None,
) -> _Tensor:
    """Matrices with zeros outside of a band around the diagonal; negative: no limit."""

def BatchMatrixDeterminant(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The old name of MatrixDeterminant."""

def BatchMatrixDiag(
    *,
    diagonal: _Input,
    name: str | None = None,
) -> _Tensor:
    """The old name of MatrixDiag."""

def BatchMatrixDiagPart(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The old name of MatrixDiagPart."""

def BatchMatrixInverse(
    *,
    input: _Input,
    adjoint: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The old name of MatrixInverse."""

def BatchMatrixSetDiag(
    *,
    input: _Input,
    diagonal: _Input,
    name: str | None = None,
) -> _Tensor:
    """The old name of MatrixSetDiag."""

def BatchMatrixSolve(
    *,
    matrix: _Input,
    rhs: _Input,
    adjoint: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The old name of MatrixSolve."""

def BatchMatrixSolveLs(
    *,
    matrix: _Input,
    rhs: _Input,
    l2_regularizer: _Input,
    fast: bool = True,
    name: str | None = None,
) -> _Tensor:
    """The old name of MatrixSolveLs."""

def BatchMatrixTriangularSolve(
    *,
    matrix: _Input,
    rhs: _Input,
    lower: bool = True,
    adjoint: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The old name of MatrixTriangularSolve."""

def BatchNormWithGlobalNormalization(
    *,
    t: _Input,
    m: _Input,
    v: _Input,
    beta: _Input,
    gamma: _Input,
    variance_epsilon: float,
    scale_after_normalization: bool,
    name: str | None = None,
) -> _Tensor:
    """(t - m) / sqrt(v + variance_epsilon) * gamma + beta, for each channel."""

class _BatchNormWithGlobalNormalizationGradOutputs(typing.NamedTuple):
    dx: _Tensor
    dm: _Tensor
    dv: _Tensor
    db: _Tensor
    dg: _Tensor

def BatchNormWithGlobalNormalizationGrad(
    *,
    t: _Input,
    m: _Input,
    v: _Input,
    gamma: _Input,
    backprop: _Input,
    variance_epsilon: float,
    scale_after_normalization: bool,
    name: str | None = None,
) -> _BatchNormWithGlobalNormalizationGradOutputs:
    """The gradients of BatchNormWithGlobalNormalization by each of its inputs."""

def BatchSelfAdjointEig(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The eigenvalues, in ascending order, and below them the eigenvectors of SelfAdjointEigV2."""

class _BatchSelfAdjointEigV2Outputs(typing.NamedTuple):
    e: _Tensor
    v: _Tensor

def BatchSelfAdjointEigV2(
    *,
    input: _Input,
    compute_v: bool = True,
    name: str | None = None,
) -> _BatchSelfAdjointEigV2Outputs:
    """The old name of SelfAdjointEigV2."""

class _BatchSvdOutputs(typing.NamedTuple):
    s: _Tensor
    u: _Tensor
    v: _Tensor

def BatchSvd(
    *,
    input: _Input,
    compute_uv: bool = True,
    full_matrices: bool = False,
    name: str | None = None,
) -> _BatchSvdOutputs:
    """The old name of Svd."""

def BatchToSpace(
    *,
    input: _Input,
    crops: _Input,
    block_size: int,
    name: str | None = None,
) -> _Tensor:
    """BatchToSpaceND of images [batch, height, width, depth] with square blocks."""

def BatchToSpaceND(
    *,
    input: _Input,
    block_shape: _Input,
    crops: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input` with the batch moved into blocks of space, and cropped: undoes SpaceToBatchND."""

def BesselI0(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The modified Bessel function of the first kind of order 0."""

def BesselI0e(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """BesselI0 times `exp(-abs(x))`."""

def BesselI1(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The modified Bessel function of the first kind of order 1."""

def BesselI1e(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """BesselI1 times `exp(-abs(x))`."""

def BesselJ0(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The Bessel function of the first kind of order 0."""

def BesselJ1(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The Bessel function of the first kind of order 1."""

def BesselK0(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The modified Bessel function of the second kind of order 0."""

def BesselK0e(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """BesselK0 times `exp(x)`."""

def BesselK1(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The modified Bessel function of the second kind of order 1."""

def BesselK1e(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """BesselK1 times `exp(x)`."""

def BesselY0(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The Bessel function of the second kind of order 0."""

def BesselY1(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The Bessel function of the second kind of order 1."""

def Betainc(
    *,
    a: _Input,
    b: _Input,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The regularised incomplete beta function; scalars stand for tensors of the shape of the others."""

def BiasAdd(
    *,
    value: _Input,
    bias: _Input,
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    name: str | None = None,
) -> _Tensor:
    """`value` plus the vector `bias` along the last dimension, for NCHW along the second."""

def BiasAddGrad(
    *,
    out_backprop: _Input,
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    name: str | None = None,
) -> _Tensor:
    """The sums of `out_backprop` for each channel: the gradient of BiasAdd by its bias."""

def BiasAddV1(
    *,
    value: _Input,
    bias: _Input,
    name: str | None = None,
) -> _Tensor:
    """`value` plus the vector `bias` along the last dimension."""

def Binary(
    *,
    a: _Input,
    b: _Input,
    name: str | None = None,
) -> _Tensor: ...

def Bincount(
    *,
    arr: _Input,
    size: _Input,
    weights: _Input,
    name: str | None = None,
) -> _Tensor:
    """The sum of the weights of each of the values 0 ... `size` - 1 in `arr`."""

def Bitcast(
    *,
    input: _Input,
    type: _Type,
    name: str | None = None,
) -> _Tensor:
    """The bytes of `input` read as numbers of `type`. A smaller type adds a last dimension; for a larger one the last dimension must hold just the bytes of one number."""

def BitwiseAnd(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The bits set in `x` and in `y`."""

def BitwiseOr(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The bits set in `x` or in `y`."""

def BitwiseXor(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The bits set in just one of `x` and `y`."""

class _BlockLSTMOutputs(typing.NamedTuple):
    i: _Tensor
    cs: _Tensor
    f: _Tensor
    o: _Tensor
    ci: _Tensor
    co: _Tensor
    h: _Tensor

def BlockLSTM(
    *,
    seq_len_max: _Input,
    x: _Input,
    cs_prev: _Input,
    h_prev: _Input,
    w: _Input,
    wci: _Input,
    wcf: _Input,
    wco: _Input,
    b: _Input,
    forget_bias: float = 1.0,
    cell_clip: float = 3.0,
    use_peephole: bool = False,
    name: str | None = None,
) -> _BlockLSTMOutputs:
    """An LSTM over the first `seq_len_max` steps of a sequence; zeros after them."""

class _BlockLSTMGradOutputs(typing.NamedTuple):
    x_grad: _Tensor
    cs_prev_grad: _Tensor
    h_prev_grad: _Tensor
    w_grad: _Tensor
    wci_grad: _Tensor
    wcf_grad: _Tensor
    wco_grad: _Tensor
    b_grad: _Tensor

def BlockLSTMGrad(
    *,
    seq_len_max: _Input,
    x: _Input,
    cs_prev: _Input,
    h_prev: _Input,
    w: _Input,
    wci: _Input,
    wcf: _Input,
    wco: _Input,
    b: _Input,
    i: _Input,
    cs: _Input,
    f: _Input,
    o: _Input,
    ci: _Input,
    co: _Input,
    h: _Input,
    cs_grad: _Input,
    h_grad: _Input,
    use_peephole: bool,
    name: str | None = None,
) -> _BlockLSTMGradOutputs:
    """The gradients of a BlockLSTM by its inputs."""

class _BlockLSTMGradV2Outputs(typing.NamedTuple):
    x_grad: _Tensor
    cs_prev_grad: _Tensor
    h_prev_grad: _Tensor
    w_grad: _Tensor
    wci_grad: _Tensor
    wcf_grad: _Tensor
    wco_grad: _Tensor
    b_grad: _Tensor

def BlockLSTMGradV2(
    *,
    seq_len_max: _Input,
    x: _Input,
    cs_prev: _Input,
    h_prev: _Input,
    w: _Input,
    wci: _Input,
    wcf: _Input,
    wco: _Input,
    b: _Input,
    i: _Input,
    cs: _Input,
    f: _Input,
    o: _Input,
    ci: _Input,
    co: _Input,
    h: _Input,
    cs_grad: _Input,
    h_grad: _Input,
    use_peephole: bool,
    name: str | None = None,
) -> _BlockLSTMGradV2Outputs:
    """The gradients of a BlockLSTMV2 by its inputs."""

class _BlockLSTMV2Outputs(typing.NamedTuple):
    i: _Tensor
    cs: _Tensor
    f: _Tensor
    o: _Tensor
    ci: _Tensor
    co: _Tensor
    h: _Tensor

def BlockLSTMV2(
    *,
    seq_len_max: _Input,
    x: _Input,
    cs_prev: _Input,
    h_prev: _Input,
    w: _Input,
    wci: _Input,
    wcf: _Input,
    wco: _Input,
    b: _Input,
    cell_clip: float = 0.0,
    use_peephole: bool = False,
    name: str | None = None,
) -> _BlockLSTMV2Outputs:
    """An LSTM over the first `seq_len_max` steps of a sequence; zeros after them."""

def BoostedTreesAggregateStats(
    *,
    node_ids: _Input,
    gradients: _Input,
    hessians: _Input,
    feature: _Input,
    max_splits: int,
    num_buckets: int,
    name: str | None = None,
) -> _Tensor: ...

def BoostedTreesBucketize(
    *,
    float_values: collections.abc.Sequence[_Input],
    bucket_boundaries: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> list[_Tensor]: ...

class _BoostedTreesCalculateBestFeatureSplitOutputs(typing.NamedTuple):
    node_ids: _Tensor
    gains: _Tensor
    feature_dimensions: _Tensor
    thresholds: _Tensor
    left_node_contribs: _Tensor
    right_node_contribs: _Tensor
    split_with_default_directions: _Tensor

def BoostedTreesCalculateBestFeatureSplit(
    *,
    node_id_range: _Input,
    stats_summary: _Input,
    l1: _Input,
    l2: _Input,
    tree_complexity: _Input,
    min_node_weight: _Input,
    logits_dimension: int,
    split_type: typing.Literal['inequality', 'equality'] = 'inequality',
    name: str | None = None,
) -> _BoostedTreesCalculateBestFeatureSplitOutputs: ...

class _BoostedTreesCalculateBestFeatureSplitV2Outputs(typing.NamedTuple):
    node_ids: _Tensor
    gains: _Tensor
    feature_ids: _Tensor
    feature_dimensions: _Tensor
    thresholds: _Tensor
    left_node_contribs: _Tensor
    right_node_contribs: _Tensor
    split_with_default_directions: _Tensor

def BoostedTreesCalculateBestFeatureSplitV2(
    *,
    node_id_range: _Input,
    stats_summaries_list: collections.abc.Sequence[_Input],
    split_types: _Input,
    candidate_feature_ids: _Input,
    l1: _Input,
    l2: _Input,
    tree_complexity: _Input,
    min_node_weight: _Input,
    logits_dimension: int,
    name: str | None = None,
) -> _BoostedTreesCalculateBestFeatureSplitV2Outputs: ...

class _BoostedTreesCalculateBestGainsPerFeatureOutputs(typing.NamedTuple):
    node_ids_list: list[_Tensor]
    gains_list: list[_Tensor]
    thresholds_list: list[_Tensor]
    left_node_contribs_list: list[_Tensor]
    right_node_contribs_list: list[_Tensor]

def BoostedTreesCalculateBestGainsPerFeature(
    *,
    node_id_range: _Input,
    stats_summary_list: collections.abc.Sequence[_Input],
    l1: _Input,
    l2: _Input,
    tree_complexity: _Input,
    min_node_weight: _Input,
    max_splits: int,
    name: str | None = None,
) -> _BoostedTreesCalculateBestGainsPerFeatureOutputs: ...

def BoostedTreesCenterBias(
    *,
    tree_ensemble_handle: _Input,
    mean_gradients: _Input,
    mean_hessians: _Input,
    l1: _Input,
    l2: _Input,
    name: str | None = None,
) -> _Tensor: ...

def BoostedTreesCreateEnsemble(
    *,
    tree_ensemble_handle: _Input,
    stamp_token: _Input,
    tree_ensemble_serialized: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def BoostedTreesCreateQuantileStreamResource(
    *,
    quantile_stream_resource_handle: _Input,
    epsilon: _Input,
    num_streams: _Input,
    max_elements: int = 1099511627776,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def BoostedTreesDeserializeEnsemble(
    *,
    tree_ensemble_handle: _Input,
    stamp_token: _Input,
    tree_ensemble_serialized: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def BoostedTreesEnsembleResourceHandleOp(
    *,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor: ...

def BoostedTreesExampleDebugOutputs(
    *,
    tree_ensemble_handle: _Input,
    bucketized_features: collections.abc.Sequence[_Input],
    logits_dimension: int,
    name: str | None = None,
) -> _Tensor: ...

def BoostedTreesFlushQuantileSummaries(
    *,
    quantile_stream_resource_handle: _Input,
    num_features: int,
    name: str | None = None,
) -> list[_Tensor]: ...

class _BoostedTreesGetEnsembleStatesOutputs(typing.NamedTuple):
    stamp_token: _Tensor
    num_trees: _Tensor
    num_finalized_trees: _Tensor
    num_attempted_layers: _Tensor
    last_layer_nodes_range: _Tensor

def BoostedTreesGetEnsembleStates(
    *,
    tree_ensemble_handle: _Input,
    name: str | None = None,
) -> _BoostedTreesGetEnsembleStatesOutputs: ...

def BoostedTreesMakeQuantileSummaries(
    *,
    float_values: collections.abc.Sequence[_Input],
    example_weights: _Input,
    epsilon: _Input,
    name: str | None = None,
) -> list[_Tensor]: ...

def BoostedTreesMakeStatsSummary(
    *,
    node_ids: _Input,
    gradients: _Input,
    hessians: _Input,
    bucketized_features_list: collections.abc.Sequence[_Input],
    max_splits: int,
    num_buckets: int,
    name: str | None = None,
) -> _Tensor: ...

def BoostedTreesPredict(
    *,
    tree_ensemble_handle: _Input,
    bucketized_features: collections.abc.Sequence[_Input],
    logits_dimension: int,
    name: str | None = None,
) -> _Tensor: ...

def BoostedTreesQuantileStreamResourceAddSummaries(
    *,
    quantile_stream_resource_handle: _Input,
    summaries: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def BoostedTreesQuantileStreamResourceDeserialize(
    *,
    quantile_stream_resource_handle: _Input,
    bucket_boundaries: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def BoostedTreesQuantileStreamResourceFlush(
    *,
    quantile_stream_resource_handle: _Input,
    num_buckets: _Input,
    generate_quantiles: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def BoostedTreesQuantileStreamResourceGetBucketBoundaries(
    *,
    quantile_stream_resource_handle: _Input,
    num_features: int,
    name: str | None = None,
) -> list[_Tensor]: ...

def BoostedTreesQuantileStreamResourceHandleOp(
    *,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor: ...

class _BoostedTreesSerializeEnsembleOutputs(typing.NamedTuple):
    stamp_token: _Tensor
    tree_ensemble_serialized: _Tensor

def BoostedTreesSerializeEnsemble(
    *,
    tree_ensemble_handle: _Input,
    name: str | None = None,
) -> _BoostedTreesSerializeEnsembleOutputs: ...

class _BoostedTreesSparseAggregateStatsOutputs(typing.NamedTuple):
    stats_summary_indices: _Tensor
    stats_summary_values: _Tensor
    stats_summary_shape: _Tensor

def BoostedTreesSparseAggregateStats(
    *,
    node_ids: _Input,
    gradients: _Input,
    hessians: _Input,
    feature_indices: _Input,
    feature_values: _Input,
    feature_shape: _Input,
    max_splits: int,
    num_buckets: int,
    name: str | None = None,
) -> _BoostedTreesSparseAggregateStatsOutputs: ...

class _BoostedTreesSparseCalculateBestFeatureSplitOutputs(typing.NamedTuple):
    node_ids: _Tensor
    gains: _Tensor
    feature_dimensions: _Tensor
    thresholds: _Tensor
    left_node_contribs: _Tensor
    right_node_contribs: _Tensor
    split_with_default_directions: _Tensor

def BoostedTreesSparseCalculateBestFeatureSplit(
    *,
    node_id_range: _Input,
    stats_summary_indices: _Input,
    stats_summary_values: _Input,
    stats_summary_shape: _Input,
    l1: _Input,
    l2: _Input,
    tree_complexity: _Input,
    min_node_weight: _Input,
    logits_dimension: int,
    split_type: typing.Literal['inequality'] = 'inequality',
    name: str | None = None,
) -> _BoostedTreesSparseCalculateBestFeatureSplitOutputs: ...

class _BoostedTreesTrainingPredictOutputs(typing.NamedTuple):
    partial_logits: _Tensor
    tree_ids: _Tensor
    node_ids: _Tensor

def BoostedTreesTrainingPredict(
    *,
    tree_ensemble_handle: _Input,
    cached_tree_ids: _Input,
    cached_node_ids: _Input,
    bucketized_features: collections.abc.Sequence[_Input],
    logits_dimension: int,
    name: str | None = None,
) -> _BoostedTreesTrainingPredictOutputs: ...

def BoostedTreesUpdateEnsemble(
    *,
    tree_ensemble_handle: _Input,
    feature_ids: _Input,
    node_ids: collections.abc.Sequence[_Input],
    gains: collections.abc.Sequence[_Input],
    thresholds: collections.abc.Sequence[_Input],
    left_node_contribs: collections.abc.Sequence[_Input],
    right_node_contribs: collections.abc.Sequence[_Input],
    max_depth: _Input,
    learning_rate: _Input,
    pruning_mode: int,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def BoostedTreesUpdateEnsembleV2(
    *,
    tree_ensemble_handle: _Input,
    feature_ids: collections.abc.Sequence[_Input],
    dimension_ids: collections.abc.Sequence[_Input],
    node_ids: collections.abc.Sequence[_Input],
    gains: collections.abc.Sequence[_Input],
    thresholds: collections.abc.Sequence[_Input],
    left_node_contribs: collections.abc.Sequence[_Input],
    right_node_contribs: collections.abc.Sequence[_Input],
    split_types: collections.abc.Sequence[_Input],
    max_depth: _Input,
    learning_rate: _Input,
    pruning_mode: _Input,
    logits_dimension: int = 1,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def BroadcastArgs(
    *,
    s0: _Input,
    s1: _Input,
    name: str | None = None,
) -> _Tensor:
    """The shape that tensors of shapes `s0` and `s1` are broadcast to."""

class _BroadcastGradientArgsOutputs(typing.NamedTuple):
    r0: _Tensor
    r1: _Tensor

def BroadcastGradientArgs(
    *,
    s0: _Input,
    s1: _Input,
    name: str | None = None,
) -> _BroadcastGradientArgsOutputs:
    """Along which dimensions the gradient of a broadcast tensor of shape s0, or s1, is summed."""

def BroadcastTo(
    *,
    input: _Input,
    shape: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input` repeated along its dimensions of size 1, and new ones before them, to `shape`."""

def Bucketize(
    *,
    input: _Input,
    boundaries: collections.abc.Sequence[float],
    name: str | None = None,
) -> _Tensor:
    """For each element how many of the `boundaries`, which are sorted, are not above it."""

def BytesProducedStatsDataset(
    *,
    input_dataset: _Input,
    tag: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`."""

class _CSRSparseMatrixComponentsOutputs(typing.NamedTuple):
    row_ptrs: _Tensor
    col_inds: _Tensor
    values: _Tensor

def CSRSparseMatrixComponents(
    *,
    csr_sparse_matrix: _Input,
    index: _Input,
    type: _Type,
    name: str | None = None,
) -> _CSRSparseMatrixComponentsOutputs:
    """The compressed rows of one matrix of a batch."""

def CSRSparseMatrixToDense(
    *,
    sparse_input: _Input,
    type: _Type,
    name: str | None = None,
) -> _Tensor:
    """The tensor of the elements of a sparse matrix."""

class _CSRSparseMatrixToSparseTensorOutputs(typing.NamedTuple):
    indices: _Tensor
    values: _Tensor
    dense_shape: _Tensor

def CSRSparseMatrixToSparseTensor(
    *,
    sparse_matrix: _Input,
    type: _Type,
    name: str | None = None,
) -> _CSRSparseMatrixToSparseTensorOutputs:
    """The sparse tensor of a sparse matrix."""

def CSVDataset(
    *,
    filenames: _Input,
    compression_type: _Input,
    buffer_size: _Input,
    header: _Input,
    field_delim: _Input,
    use_quote_delim: _Input,
    na_value: _Input,
    select_cols: _Input,
    record_defaults: collections.abc.Sequence[_Input],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The records of CSV files; `record_defaults` stand for fields that are empty."""

def CSVDatasetV2(
    *,
    filenames: _Input,
    compression_type: _Input,
    buffer_size: _Input,
    header: _Input,
    field_delim: _Input,
    use_quote_delim: _Input,
    na_value: _Input,
    select_cols: _Input,
    record_defaults: collections.abc.Sequence[_Input],
    exclude_cols: _Input,
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The records of CSV files; `record_defaults` stand for fields that are empty."""

class _CTCBeamSearchDecoderOutputs(typing.NamedTuple):
    decoded_indices: list[_Tensor]
    decoded_values: list[_Tensor]
    decoded_shape: list[_Tensor]
    log_probability: _Tensor

def CTCBeamSearchDecoder(
    *,
    inputs: _Input,
    sequence_length: _Input,
    beam_width: int,
    top_paths: int,
    merge_repeated: bool = True,
    name: str | None = None,
) -> _CTCBeamSearchDecoderOutputs:
    """The most likely sequences of labels that a beam search finds, as sparse matrices."""

class _CTCGreedyDecoderOutputs(typing.NamedTuple):
    decoded_indices: _Tensor
    decoded_values: _Tensor
    decoded_shape: _Tensor
    log_probability: _Tensor

def CTCGreedyDecoder(
    *,
    inputs: _Input,
    sequence_length: _Input,
    merge_repeated: bool = False,
    blank_index: int = -1,
    name: str | None = None,
) -> _CTCGreedyDecoderOutputs:
    """The labels of the largest input of each step, without blanks, as a sparse matrix."""

class _CTCLossOutputs(typing.NamedTuple):
    loss: _Tensor
    gradient: _Tensor

def CTCLoss(
    *,
    inputs: _Input,
    labels_indices: _Input,
    labels_values: _Input,
    sequence_length: _Input,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    name: str | None = None,
) -> _CTCLossOutputs:
    """The loss of connectionist temporal classification, and its gradient."""

class _CTCLossV2Outputs(typing.NamedTuple):
    loss: _Tensor
    gradient: _Tensor

def CTCLossV2(
    *,
    inputs: _Input,
    labels_indices: _Input,
    labels_values: _Input,
    sequence_length: _Input,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    name: str | None = None,
) -> _CTCLossV2Outputs:
    """The loss of connectionist temporal classification, and its gradient; GPUs compute it."""

def CacheDataset(
    *,
    input_dataset: _Input,
    filename: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements, which are computed in the first pass only: kept in a file, or without a name in memory."""

def CacheDatasetV2(
    *,
    input_dataset: _Input,
    filename: _Input,
    cache: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements, which are computed in the first pass only: kept in a file, or without a name in memory."""

def CalibrationStatisticsSaver(
    *,
    args: collections.abc.Sequence[_Input],
    ids: collections.abc.Sequence[str | bytes],
    calibration_methods: collections.abc.Sequence[int],
    output_file_path: str | bytes,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def Case(
    *,
    branch_index: _Input,
    input: collections.abc.Sequence[_Input],
    Tout: collections.abc.Sequence[_Type],
    branches: collections.abc.Sequence[_Func],
    output_shapes: collections.abc.Sequence[_Shape] = ...,
    name: str | None = None,
) -> list[_Tensor]:
    """The branch of number `branch_index`, called with `input`; the last where none is."""

def Cast(
    *,
    x: _Input,
    DstT: _Type,
    Truncate: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The values of `x` as numbers of the type `DstT`. Fractions are cut off where integers are wanted, imaginary parts where real numbers are. `Truncate` cuts off the digits that a narrower float lacks, too, in place of rounding."""

def Ceil(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The smallest integer that is not below `x`."""

def CheckNumerics(
    *,
    tensor: _Input,
    message: str | bytes,
    name: str | None = None,
) -> _Tensor:
    """`tensor`; fails, with `message`, if it has a NaN or an infinity."""

def CheckNumericsV2(
    *,
    tensor: _Input,
    message: str | bytes,
    name: str | None = None,
) -> _Tensor:
    """As CheckNumerics; the error tells positive and negative infinities apart."""

def CheckPinned(
    *,
    tensor: _Input,
    name: str | None = None,
) -> _Tensor:
    """`tensor`, if its memory is pinned for a GPU; a FailedPreconditionError without CUDA."""

def Cholesky(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The lower triangle L with `L @ adjoint(L) == input`; only the lower triangle of the input counts."""

def CholeskyGrad(
    *,
    l: _Input,
    grad: _Input,
    name: str | None = None,
) -> _Tensor:
    """The gradient of Cholesky from its output and the gradient of that."""

def ChooseFastestBranchDataset(
    *,
    input_dataset: _Input,
    ratio_numerator: _Input,
    ratio_denominator: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    num_elements_per_branch: int,
    branches: collections.abc.Sequence[_Func],
    other_arguments_lengths: collections.abc.Sequence[int],
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of the dataset that the first of `branches` makes of `input_dataset`."""

def ChooseFastestDataset(
    *,
    input_datasets: collections.abc.Sequence[_Input],
    num_experiments: int,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of the first of datasets that have the same elements."""

def ClipByValue(
    *,
    t: _Input,
    clip_value_min: _Input,
    clip_value_max: _Input,
    name: str | None = None,
) -> _Tensor:
    """`t` with what is above `clip_value_max` or below `clip_value_min` set to that bound. A bound is a scalar or has the shape of `t`; one that is NaN bounds nothing. Complex numbers are clipped part by part."""

def CloseSummaryWriter(
    *,
    writer: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Writes the waiting events, and ends the file."""

def CollateTPUEmbeddingMemory(
    *,
    memory_configs: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> _Tensor: ...

def CollectiveAllToAllV2(
    *,
    input: _Input,
    group_size: _Input,
    group_key: _Input,
    instance_key: _Input,
    ordering_token: collections.abc.Sequence[_Input],
    communication_hint: str | bytes = 'auto',
    timeout_seconds: float = 0.0,
    is_stateless: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Of the input of each member of the group the row of this member's number."""

def CollectiveAllToAllV3(
    *,
    input: _Input,
    communicator: _Input,
    group_assignment: _Input,
    timeout_seconds: float = 0.0,
    name: str | None = None,
) -> _Tensor:
    """Of the input of each member of the group the row of this member's number."""

class _CollectiveAssignGroupV2Outputs(typing.NamedTuple):
    group_size: _Tensor
    group_key: _Tensor

def CollectiveAssignGroupV2(
    *,
    group_assignment: _Input,
    device_index: _Input,
    base_key: _Input,
    name: str | None = None,
) -> _CollectiveAssignGroupV2Outputs:
    """The size and the key of the group, a row of `group_assignment`, that a device is in."""

def CollectiveBcastRecv(
    *,
    T: _Type,
    group_size: int,
    group_key: int,
    instance_key: int,
    shape: _Shape,
    communication_hint: str | bytes = 'auto',
    timeout_seconds: float = 0.0,
    name: str | None = None,
) -> _Tensor:
    """The input of the member of the group that sends."""

def CollectiveBcastRecvV2(
    *,
    group_size: _Input,
    group_key: _Input,
    instance_key: _Input,
    shape: _Input,
    T: _Type,
    communication_hint: str | bytes = 'auto',
    timeout_seconds: float = 0.0,
    name: str | None = None,
) -> _Tensor:
    """The input of the member of the group that sends."""

def CollectiveBcastSend(
    *,
    input: _Input,
    group_size: int,
    group_key: int,
    instance_key: int,
    shape: _Shape,
    communication_hint: str | bytes = 'auto',
    timeout_seconds: float = 0.0,
    name: str | None = None,
) -> _Tensor:
    """The input, which the other members of the group get too."""

def CollectiveBcastSendV2(
    *,
    input: _Input,
    group_size: _Input,
    group_key: _Input,
    instance_key: _Input,
    communication_hint: str | bytes = 'auto',
    timeout_seconds: float = 0.0,
    name: str | None = None,
) -> _Tensor:
    """The input, which the other members of the group get too."""

def CollectiveGather(
    *,
    input: _Input,
    group_size: int,
    group_key: int,
    instance_key: int,
    shape: _Shape,
    communication_hint: str | bytes = 'auto',
    timeout_seconds: float = 0.0,
    name: str | None = None,
) -> _Tensor:
    """The inputs of all members of the group, one after the other."""

def CollectiveGatherV2(
    *,
    input: _Input,
    group_size: _Input,
    group_key: _Input,
    instance_key: _Input,
    ordering_token: collections.abc.Sequence[_Input],
    communication_hint: str | bytes = 'auto',
    timeout_seconds: float = 0.0,
    is_stateless: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The inputs of all members of the group, one after the other."""

def CollectiveInitializeCommunicator(
    *,
    group_key: _Input,
    rank: _Input,
    group_size: _Input,
    communication_hint: str | bytes = 'auto',
    timeout_seconds: float = 0.0,
    name: str | None = None,
) -> _Tensor:
    """A place in a group; waits until all places are taken."""

def CollectivePermute(
    *,
    input: _Input,
    source_target_pairs: _Input,
    name: str | None = None,
) -> _Tensor: ...

def CollectiveReduce(
    *,
    input: _Input,
    group_size: int,
    group_key: int,
    instance_key: int,
    merge_op: typing.Literal['Min', 'Max', 'Mul', 'Add'],
    final_op: typing.Literal['Id', 'Div'],
    subdiv_offsets: collections.abc.Sequence[int],
    wait_for: collections.abc.Sequence[int] = ...,
    communication_hint: str | bytes = 'auto',
    timeout_seconds: float = 0.0,
    name: str | None = None,
) -> _Tensor:
    """The inputs of all members of the group, merged into one."""

def CollectiveReduceScatterV2(
    *,
    input: _Input,
    group_size: _Input,
    group_key: _Input,
    instance_key: _Input,
    ordering_token: collections.abc.Sequence[_Input],
    merge_op: typing.Literal['Min', 'Max', 'Mul', 'Add'],
    final_op: typing.Literal['Id', 'Div'],
    communication_hint: str | bytes = 'auto',
    timeout_seconds: float = 0.0,
    is_stateless: bool = False,
    max_subdivs_per_device: int = -1,
    name: str | None = None,
) -> _Tensor:
    """This member's part of the inputs of all members of the group, merged into one."""

def CollectiveReduceV2(
    *,
    input: _Input,
    group_size: _Input,
    group_key: _Input,
    instance_key: _Input,
    ordering_token: collections.abc.Sequence[_Input],
    merge_op: typing.Literal['Min', 'Max', 'Mul', 'Add'],
    final_op: typing.Literal['Id', 'Div'],
    communication_hint: str | bytes = 'auto',
    timeout_seconds: float = 0.0,
    is_stateless: bool = False,
    max_subdivs_per_device: int = -1,
    name: str | None = None,
) -> _Tensor:
    """The inputs of all members of the group, merged into one."""

def CollectiveReduceV3(
    *,
    input: _Input,
    communicator: _Input,
    group_assignment: _Input,
    reduction: typing.Literal['Min', 'Max', 'Mul', 'Add'],
    timeout_seconds: float = 0.0,
    name: str | None = None,
) -> _Tensor:
    """The inputs of all members of the group, merged into one."""

class _CombinedNonMaxSuppressionOutputs(typing.NamedTuple):
    nmsed_boxes: _Tensor
    nmsed_scores: _Tensor
    nmsed_classes: _Tensor
    valid_detections: _Tensor

def CombinedNonMaxSuppression(
    *,
    boxes: _Input,
    scores: _Input,
    max_output_size_per_class: _Input,
    max_total_size: _Input,
    iou_threshold: _Input,
    score_threshold: _Input,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> _CombinedNonMaxSuppressionOutputs:
    """The best boxes of each image, none of which overlaps a better one of its class too much."""

def Complex(
    *,
    real: _Input,
    imag: _Input,
    Tout: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The complex numbers `real + imag * i`."""

def ComplexAbs(
    *,
    x: _Input,
    Tout: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The distance of `x` from 0."""

class _ComplexStructOutputs(typing.NamedTuple):
    a: list[_Tensor]
    b: list[_Tensor]
    c: list[_Tensor]

def ComplexStruct(
    *,
    n_a: int,
    n_b: int,
    t_c: collections.abc.Sequence[_Type],
    name: str | None = None,
) -> _ComplexStructOutputs: ...

def CompositeTensorVariantFromComponents(
    *,
    components: collections.abc.Sequence[_Input],
    metadata: str | bytes,
    name: str | None = None,
) -> _Tensor:
    """The tensors of a composite tensor as one variant; `metadata` tells its type."""

def CompositeTensorVariantToComponents(
    *,
    encoded: _Input,
    metadata: str | bytes,
    Tcomponents: collections.abc.Sequence[_Type],
    name: str | None = None,
) -> list[_Tensor]:
    """The tensors of the composite tensor in a variant."""

def CompressElement(
    *,
    components: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> _Tensor:
    """The components of an element, compressed into one value."""

class _ComputeAccidentalHitsOutputs(typing.NamedTuple):
    indices: _Tensor
    ids: _Tensor
    weights: _Tensor

def ComputeAccidentalHits(
    *,
    true_classes: _Input,
    sampled_candidates: _Input,
    num_true: int,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _ComputeAccidentalHitsOutputs:
    """Where sampled classes are true ones: the row, the place in the sample, the least float."""

def ComputeBatchSize(
    *,
    input_dataset: _Input,
    name: str | None = None,
) -> _Tensor:
    """The size of the batches that are the elements; -1 where it is not known."""

def ComputeDedupDataSize(
    *,
    config: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def ComputeDedupDataSizeV2(
    *,
    config: str | bytes,
    embedding_partitions: str | bytes,
    hbm_buffers_config: str | bytes,
    tpu_topology: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def ComputeDedupDataTupleMask(
    *,
    config: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def ComputeDedupDataTupleMaskV2(
    *,
    config: str | bytes,
    embedding_partitions: str | bytes,
    hbm_buffers_config: str | bytes,
    tpu_topology: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def Concat(
    *,
    concat_dim: _Input,
    values: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> _Tensor:
    """`values` one after the other along dimension `concat_dim`."""

def ConcatOffset(
    *,
    concat_dim: _Input,
    shape: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> list[_Tensor]:
    """Where tensors of the given shapes start in what Concat makes of them."""

def ConcatV2(
    *,
    values: collections.abc.Sequence[_Input],
    axis: _Input,
    name: str | None = None,
) -> _Tensor:
    """`values` one after the other along dimension `axis`, from the end if negative."""

def ConcatenateDataset(
    *,
    input_dataset: _Input,
    another_dataset: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`, then those of `another_dataset`."""

def ConditionalAccumulator(
    *,
    dtype: _Type,
    shape: _Shape,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    reduction_type: typing.Literal['MEAN', 'SUM'] = 'MEAN',
    name: str | None = None,
) -> _Tensor:
    """An accumulator of gradients."""

def ConfigureAndInitializeGlobalTPU(
    *,
    use_tfrt_host_runtime: bool = True,
    name: str | None = None,
) -> _Tensor: ...

def ConfigureDistributedTPU(
    *,
    embedding_config: str | bytes = '',
    tpu_embedding_config: str | bytes = '',
    is_global_init: bool = False,
    enable_whole_mesh_compilations: bool = False,
    compilation_failure_closes_chips: bool = True,
    tpu_cancellation_closes_chips: int = 0,
    name: str | None = None,
) -> _Tensor: ...

def ConfigureTPUEmbedding(
    *,
    config: str | bytes,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def ConfigureTPUEmbeddingHost(
    *,
    common_config: _Input,
    memory_config: _Input,
    config: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def ConfigureTPUEmbeddingMemory(
    *,
    common_config: _Input,
    name: str | None = None,
) -> _Tensor: ...

def Conj(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The complex conjugate of `input`."""

def ConjugateTranspose(
    *,
    x: _Input,
    perm: _Input,
    name: str | None = None,
) -> _Tensor:
    """The conjugate of `x` with dimension `perm[i]` as its dimension i."""

def ConnectTPUEmbeddingHosts(
    *,
    network_configs: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def Const(
    *,
    value: npt.ArrayLike | opkernel.proto.TensorProto,
    dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """The tensor `value`."""

def ConstructionFails(
    *,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def ConsumeMutexLock(
    *,
    mutex_lock: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Keeps a lock until the nodes before it are done."""

def ControlTrigger(
    *,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Does nothing, even where inputs are dead."""

def Conv(
    *,
    input: _Input,
    filter: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID', 'EXPLICIT'],
    explicit_paddings: collections.abc.Sequence[int] = ...,
    data_format: typing.Literal['CHANNELS_FIRST', 'CHANNELS_LAST'] = 'CHANNELS_LAST',
    dilations: collections.abc.Sequence[int] = ...,
    batch_dims: int = 1,
    groups: int = 1,
    name: str | None = None,
) -> _Tensor:
    """The convolution of images or volumes, after `batch_dims` dimensions of them, with a filter [*spatial, in, out]."""

def Conv2D(
    *,
    input: _Input,
    filter: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID', 'EXPLICIT'],
    use_cudnn_on_gpu: bool = True,
    explicit_paddings: collections.abc.Sequence[int] = ...,
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor:
    """The convolution of images with a filter [rows, columns, in, out]; in groups where the images have a multiple of the filter's channels."""

def Conv2DBackpropFilter(
    *,
    input: _Input,
    filter_sizes: _Input,
    out_backprop: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID', 'EXPLICIT'],
    use_cudnn_on_gpu: bool = True,
    explicit_paddings: collections.abc.Sequence[int] = ...,
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor:
    """The gradient of Conv2D by its filter, whose shape is given."""

def Conv2DBackpropFilterV2(
    *,
    input: _Input,
    filter: _Input,
    out_backprop: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID', 'EXPLICIT'],
    use_cudnn_on_gpu: bool = True,
    explicit_paddings: collections.abc.Sequence[int] = ...,
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor:
    """The gradient of Conv2D by its filter; of `filter` only the shape counts."""

def Conv2DBackpropInput(
    *,
    input_sizes: _Input,
    filter: _Input,
    out_backprop: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID', 'EXPLICIT'],
    use_cudnn_on_gpu: bool = True,
    explicit_paddings: collections.abc.Sequence[int] = ...,
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor:
    """The gradient of Conv2D by its input, whose shape is given; or only its rows and columns."""

def Conv2DBackpropInputV2(
    *,
    input: _Input,
    filter: _Input,
    out_backprop: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID', 'EXPLICIT'],
    use_cudnn_on_gpu: bool = True,
    explicit_paddings: collections.abc.Sequence[int] = ...,
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor:
    """The gradient of Conv2D by its input; of `input` only the shape counts."""

def Conv3D(
    *,
    input: _Input,
    filter: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    data_format: typing.Literal['NDHWC', 'NCDHW'] = 'NDHWC',
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor:
    """The convolution of volumes with a filter [planes, rows, columns, in, out]."""

def Conv3DBackpropFilter(
    *,
    input: _Input,
    filter: _Input,
    out_backprop: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor:
    """The gradient of Conv3D by its filter; of `filter` only the shape counts."""

def Conv3DBackpropFilterV2(
    *,
    input: _Input,
    filter_sizes: _Input,
    out_backprop: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    data_format: typing.Literal['NDHWC', 'NCDHW'] = 'NDHWC',
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor:
    """The gradient of Conv3D by its filter, whose shape is given."""

def Conv3DBackpropInput(
    *,
    input: _Input,
    filter: _Input,
    out_backprop: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor:
    """The gradient of Conv3D by its input; of `input` only the shape counts."""

def Conv3DBackpropInputV2(
    *,
    input_sizes: _Input,
    filter: _Input,
    out_backprop: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    data_format: typing.Literal['NDHWC', 'NCDHW'] = 'NDHWC',
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor:
    """The gradient of Conv3D by its input, whose shape is given."""

class _ConvertToCooTensorOutputs(typing.NamedTuple):
    row_ids: _Tensor
    col_ids: _Tensor
    gains: _Tensor

def ConvertToCooTensor(
    *,
    indices_or_row_splits: _Input,
    values: _Input,
    weights: _Input,
    sample_count: int,
    combiner: str | bytes,
    name: str | None = None,
) -> _ConvertToCooTensorOutputs: ...

class _ConvertToListOfSparseCoreCooTensorsOutputs(typing.NamedTuple):
    row_ids_list: list[_Tensor]
    col_ids_list: list[_Tensor]
    gains_list: list[_Tensor]

def ConvertToListOfSparseCoreCooTensors(
    *,
    indices_or_row_splits: _Input,
    values: _Input,
    weights: _Input,
    sample_count: int,
    num_sc_per_chip: int,
    row_offset: int,
    col_offset: int,
    col_shift: int,
    num_sc_shards: int,
    stacked_table_sample_count: int,
    combiner: str | bytes,
    name: str | None = None,
) -> _ConvertToListOfSparseCoreCooTensorsOutputs: ...

class _ConvertToSparseCoreCsrWrappedCooTensorOutputs(typing.NamedTuple):
    row_pointers: _Tensor
    sorted_sample_ids: _Tensor
    sorted_token_ids: _Tensor
    sorted_gains: _Tensor
    row_pointers_unpadded_size: _Tensor
    ids_unpadded_size: _Tensor
    num_minibatches_per_sc: _Tensor

def ConvertToSparseCoreCsrWrappedCooTensor(
    *,
    sorted_row_ids_list: collections.abc.Sequence[_Input],
    sorted_col_ids_list: collections.abc.Sequence[_Input],
    sorted_gains_list: collections.abc.Sequence[_Input],
    id_counts_list: collections.abc.Sequence[_Input],
    splits: _Input,
    sample_count_per_sc: int,
    num_replica: int,
    max_minibatches_per_sc: int,
    max_ids_per_chip_per_sample: int,
    table_vocab_size: int,
    feature_width: int,
    table_name: str | bytes,
    allow_id_dropping: bool,
    name: str | None = None,
) -> _ConvertToSparseCoreCsrWrappedCooTensorOutputs: ...

def Copy(
    *,
    input: _Input,
    tensor_name: str | bytes = '',
    debug_ops_spec: collections.abc.Sequence[str | bytes] = ...,
    name: str | None = None,
) -> _Tensor:
    """A copy of `input` for debug nodes; strings, resources and variants are passed on."""

def CopyHost(
    *,
    input: _Input,
    tensor_name: str | bytes = '',
    debug_ops_spec: collections.abc.Sequence[str | bytes] = ...,
    name: str | None = None,
) -> _Tensor:
    """A copy of `input` for debug nodes; strings, resources and variants are passed on."""

def CopyOp(
    *,
    a: _Input,
    name: str | None = None,
) -> _Tensor: ...

def CopyToMesh(
    *,
    input: _Input,
    mesh: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def CopyToMeshGrad(
    *,
    input: _Input,
    forward_input: _Input,
    name: str | None = None,
) -> _Tensor: ...

def Cos(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The cosine of `x`, in radians."""

def Cosh(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The hyperbolic cosine of `x`."""

def CountUpTo(
    *,
    ref: _Input,
    limit: int,
    name: str | None = None,
) -> _Tensor:
    """The value of the variable, which is then one more; an error once it is `limit`."""

def CreateSummaryDbWriter(
    *,
    writer: _Input,
    db_uri: _Input,
    experiment_name: _Input,
    run_name: _Input,
    user_name: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def CreateSummaryFileWriter(
    *,
    writer: _Input,
    logdir: _Input,
    max_queue: _Input,
    flush_millis: _Input,
    filename_suffix: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Lets a writer begin an event file in a directory."""

def CropAndResize(
    *,
    image: _Input,
    boxes: _Input,
    box_ind: _Input,
    crop_size: _Input,
    method: typing.Literal['bilinear', 'nearest'] = 'bilinear',
    extrapolation_value: float = 0.0,
    name: str | None = None,
) -> _Tensor:
    """Cut boxes out of images and resize each to `crop_size`."""

def CropAndResizeGradBoxes(
    *,
    grads: _Input,
    image: _Input,
    boxes: _Input,
    box_ind: _Input,
    method: typing.Literal['bilinear'] = 'bilinear',
    name: str | None = None,
) -> _Tensor:
    """The gradient of CropAndResize by its boxes."""

def CropAndResizeGradImage(
    *,
    grads: _Input,
    boxes: _Input,
    box_ind: _Input,
    image_size: _Input,
    T: _Type,
    method: typing.Literal['bilinear', 'nearest'] = 'bilinear',
    name: str | None = None,
) -> _Tensor:
    """The gradient of CropAndResize by its images, whose shape is `image_size`."""

def Cross(
    *,
    a: _Input,
    b: _Input,
    name: str | None = None,
) -> _Tensor:
    """The cross products of the vectors in the last dimension, of size 3, of `a` and `b`."""

def CrossReplicaSum(
    *,
    input: _Input,
    group_assignment: _Input,
    name: str | None = None,
) -> _Tensor: ...

class _CudnnRNNOutputs(typing.NamedTuple):
    output: _Tensor
    output_h: _Tensor
    output_c: _Tensor
    reserve_space: _Tensor

def CudnnRNN(
    *,
    input: _Input,
    input_h: _Input,
    input_c: _Input,
    params: _Input,
    rnn_mode: typing.Literal['rnn_relu', 'rnn_tanh', 'lstm', 'gru'] = 'lstm',
    input_mode: typing.Literal['linear_input', 'skip_input', 'auto_select'] = 'linear_input',
    direction: typing.Literal['unidirectional', 'bidirectional'] = 'unidirectional',
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    is_training: bool = True,
    name: str | None = None,
) -> _CudnnRNNOutputs: ...

class _CudnnRNNBackpropOutputs(typing.NamedTuple):
    input_backprop: _Tensor
    input_h_backprop: _Tensor
    input_c_backprop: _Tensor
    params_backprop: _Tensor

def CudnnRNNBackprop(
    *,
    input: _Input,
    input_h: _Input,
    input_c: _Input,
    params: _Input,
    output: _Input,
    output_h: _Input,
    output_c: _Input,
    output_backprop: _Input,
    output_h_backprop: _Input,
    output_c_backprop: _Input,
    reserve_space: _Input,
    rnn_mode: typing.Literal['rnn_relu', 'rnn_tanh', 'lstm', 'gru'] = 'lstm',
    input_mode: typing.Literal['linear_input', 'skip_input', 'auto_select'] = 'linear_input',
    direction: typing.Literal['unidirectional', 'bidirectional'] = 'unidirectional',
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _CudnnRNNBackpropOutputs: ...

class _CudnnRNNBackpropV2Outputs(typing.NamedTuple):
    input_backprop: _Tensor
    input_h_backprop: _Tensor
    input_c_backprop: _Tensor
    params_backprop: _Tensor

def CudnnRNNBackpropV2(
    *,
    input: _Input,
    input_h: _Input,
    input_c: _Input,
    params: _Input,
    output: _Input,
    output_h: _Input,
    output_c: _Input,
    output_backprop: _Input,
    output_h_backprop: _Input,
    output_c_backprop: _Input,
    reserve_space: _Input,
    host_reserved: _Input,
    rnn_mode: typing.Literal['rnn_relu', 'rnn_tanh', 'lstm', 'gru'] = 'lstm',
    input_mode: typing.Literal['linear_input', 'skip_input', 'auto_select'] = 'linear_input',
    direction: typing.Literal['unidirectional', 'bidirectional'] = 'unidirectional',
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _CudnnRNNBackpropV2Outputs: ...

class _CudnnRNNBackpropV3Outputs(typing.NamedTuple):
    input_backprop: _Tensor
    input_h_backprop: _Tensor
    input_c_backprop: _Tensor
    params_backprop: _Tensor

def CudnnRNNBackpropV3(
    *,
    input: _Input,
    input_h: _Input,
    input_c: _Input,
    params: _Input,
    sequence_lengths: _Input,
    output: _Input,
    output_h: _Input,
    output_c: _Input,
    output_backprop: _Input,
    output_h_backprop: _Input,
    output_c_backprop: _Input,
    reserve_space: _Input,
    host_reserved: _Input,
    rnn_mode: typing.Literal['rnn_relu', 'rnn_tanh', 'lstm', 'gru'] = 'lstm',
    input_mode: typing.Literal['linear_input', 'skip_input', 'auto_select'] = 'linear_input',
    direction: typing.Literal['unidirectional', 'bidirectional'] = 'unidirectional',
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    num_proj: int = 0,
    time_major: bool = True,
    name: str | None = None,
) -> _CudnnRNNBackpropV3Outputs: ...

def CudnnRNNCanonicalToParams(
    *,
    num_layers: _Input,
    num_units: _Input,
    input_size: _Input,
    weights: collections.abc.Sequence[_Input],
    biases: collections.abc.Sequence[_Input],
    rnn_mode: typing.Literal['rnn_relu', 'rnn_tanh', 'lstm', 'gru'] = 'lstm',
    input_mode: typing.Literal['linear_input', 'skip_input', 'auto_select'] = 'linear_input',
    direction: typing.Literal['unidirectional', 'bidirectional'] = 'unidirectional',
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _Tensor: ...

def CudnnRNNCanonicalToParamsV2(
    *,
    num_layers: _Input,
    num_units: _Input,
    input_size: _Input,
    weights: collections.abc.Sequence[_Input],
    biases: collections.abc.Sequence[_Input],
    rnn_mode: typing.Literal['rnn_relu', 'rnn_tanh', 'lstm', 'gru'] = 'lstm',
    input_mode: typing.Literal['linear_input', 'skip_input', 'auto_select'] = 'linear_input',
    direction: typing.Literal['unidirectional', 'bidirectional'] = 'unidirectional',
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    num_proj: int = 0,
    name: str | None = None,
) -> _Tensor: ...

def CudnnRNNParamsSize(
    *,
    num_layers: _Input,
    num_units: _Input,
    input_size: _Input,
    T: _Type,
    S: _Type,
    rnn_mode: typing.Literal['rnn_relu', 'rnn_tanh', 'lstm', 'gru'] = 'lstm',
    input_mode: typing.Literal['linear_input', 'skip_input', 'auto_select'] = 'linear_input',
    direction: typing.Literal['unidirectional', 'bidirectional'] = 'unidirectional',
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    num_proj: int = 0,
    name: str | None = None,
) -> _Tensor: ...

class _CudnnRNNParamsToCanonicalOutputs(typing.NamedTuple):
    weights: list[_Tensor]
    biases: list[_Tensor]

def CudnnRNNParamsToCanonical(
    *,
    num_layers: _Input,
    num_units: _Input,
    input_size: _Input,
    params: _Input,
    num_params: int,
    rnn_mode: typing.Literal['rnn_relu', 'rnn_tanh', 'lstm', 'gru'] = 'lstm',
    input_mode: typing.Literal['linear_input', 'skip_input', 'auto_select'] = 'linear_input',
    direction: typing.Literal['unidirectional', 'bidirectional'] = 'unidirectional',
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _CudnnRNNParamsToCanonicalOutputs: ...

class _CudnnRNNParamsToCanonicalV2Outputs(typing.NamedTuple):
    weights: list[_Tensor]
    biases: list[_Tensor]

def CudnnRNNParamsToCanonicalV2(
    *,
    num_layers: _Input,
    num_units: _Input,
    input_size: _Input,
    params: _Input,
    num_params_weights: int,
    num_params_biases: int,
    rnn_mode: typing.Literal['rnn_relu', 'rnn_tanh', 'lstm', 'gru'] = 'lstm',
    input_mode: typing.Literal['linear_input', 'skip_input', 'auto_select'] = 'linear_input',
    direction: typing.Literal['unidirectional', 'bidirectional'] = 'unidirectional',
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    num_proj: int = 0,
    name: str | None = None,
) -> _CudnnRNNParamsToCanonicalV2Outputs: ...

class _CudnnRNNV2Outputs(typing.NamedTuple):
    output: _Tensor
    output_h: _Tensor
    output_c: _Tensor
    reserve_space: _Tensor
    host_reserved: _Tensor

def CudnnRNNV2(
    *,
    input: _Input,
    input_h: _Input,
    input_c: _Input,
    params: _Input,
    rnn_mode: typing.Literal['rnn_relu', 'rnn_tanh', 'lstm', 'gru'] = 'lstm',
    input_mode: typing.Literal['linear_input', 'skip_input', 'auto_select'] = 'linear_input',
    direction: typing.Literal['unidirectional', 'bidirectional'] = 'unidirectional',
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    is_training: bool = True,
    name: str | None = None,
) -> _CudnnRNNV2Outputs: ...

class _CudnnRNNV3Outputs(typing.NamedTuple):
    output: _Tensor
    output_h: _Tensor
    output_c: _Tensor
    reserve_space: _Tensor
    host_reserved: _Tensor

def CudnnRNNV3(
    *,
    input: _Input,
    input_h: _Input,
    input_c: _Input,
    params: _Input,
    sequence_lengths: _Input,
    rnn_mode: typing.Literal['rnn_relu', 'rnn_tanh', 'lstm', 'gru'] = 'lstm',
    input_mode: typing.Literal['linear_input', 'skip_input', 'auto_select'] = 'linear_input',
    direction: typing.Literal['unidirectional', 'bidirectional'] = 'unidirectional',
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    num_proj: int = 0,
    is_training: bool = True,
    time_major: bool = True,
    name: str | None = None,
) -> _CudnnRNNV3Outputs: ...

def Cumprod(
    *,
    x: _Input,
    axis: _Input,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The product of the elements of `x` along `axis`, up to each of them."""

def Cumsum(
    *,
    x: _Input,
    axis: _Input,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The sum of the elements of `x` along `axis`, up to each of them."""

def CumulativeLogsumexp(
    *,
    x: _Input,
    axis: _Input,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The logarithm of the sum of the exponentials of the elements of `x` along `axis`, up to each of them."""

class _CustomAggregatorOutputs(typing.NamedTuple):
    output: _Tensor
    min: _Tensor
    max: _Tensor
    histogram: _Tensor

def CustomAggregator(
    *,
    input: _Input,
    id: str | bytes,
    calibration_method: int = 0,
    num_bins: int = 0,
    min_percentile: float = 0.0,
    max_percentile: float = 0.0,
    name: str | None = None,
) -> _CustomAggregatorOutputs:
    """    `input`, and statistics of it."""

def DTensorAllGather(
    *,
    input: _Input,
    input_layout: str | bytes,
    output_layout: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def DTensorAllReduce(
    *,
    input: _Input,
    group_assignment: _Input,
    reduce_op: typing.Literal['Min', 'Max', 'Mul', 'Add', 'Mean', 'Any', 'All'],
    device_type: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def DTensorAllScatter(
    *,
    input: _Input,
    input_layout: str | bytes,
    output_layout: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def DTensorAllToAll(
    *,
    input: _Input,
    input_layout: str | bytes,
    output_layout: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def DTensorReduceScatter(
    *,
    input: _Input,
    group_assignment: _Input,
    scatter_dimension: _Input,
    reduce_op: typing.Literal['Min', 'Max', 'Mul', 'Add', 'Mean', 'Any', 'All'],
    device_type: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def DTensorRestoreV2(
    *,
    prefix: _Input,
    tensor_names: _Input,
    shape_and_slices: _Input,
    input_shapes: collections.abc.Sequence[_Shape],
    input_layouts: collections.abc.Sequence[str | bytes],
    dtypes: collections.abc.Sequence[_Type],
    name: str | None = None,
) -> list[_Tensor]: ...

def DTensorSetGlobalTPUArray(
    *,
    topology: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def DataFormatDimMap(
    *,
    x: _Input,
    src_format: str | bytes = 'NHWC',
    dst_format: str | bytes = 'NCHW',
    name: str | None = None,
) -> _Tensor:
    """Where the dimension `x` of `src_format` is in `dst_format`; negative ones count from the end."""

def DataFormatVecPermute(
    *,
    x: _Input,
    src_format: str | bytes = 'NHWC',
    dst_format: str | bytes = 'NCHW',
    name: str | None = None,
) -> _Tensor:
    """`x`, one row for each dimension of `src_format`, in the order of `dst_format`."""

def DataServiceDataset(
    *,
    dataset_id: _Input,
    processing_mode: _Input,
    address: _Input,
    protocol: _Input,
    job_name: _Input,
    max_outstanding_requests: _Input,
    iteration_counter: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    task_refresh_interval_hint_ms: int = -1,
    data_transfer_protocol: str | bytes = '',
    target_workers: str | bytes = 'AUTO',
    cross_trainer_cache_options: str | bytes = '',
    name: str | None = None,
) -> _Tensor: ...

def DataServiceDatasetV2(
    *,
    dataset_id: _Input,
    processing_mode: _Input,
    address: _Input,
    protocol: _Input,
    job_name: _Input,
    consumer_index: _Input,
    num_consumers: _Input,
    max_outstanding_requests: _Input,
    iteration_counter: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    task_refresh_interval_hint_ms: int = -1,
    data_transfer_protocol: str | bytes = '',
    target_workers: str | bytes = 'AUTO',
    cross_trainer_cache_options: str | bytes = '',
    name: str | None = None,
) -> _Tensor: ...

def DataServiceDatasetV3(
    *,
    dataset_id: _Input,
    processing_mode: _Input,
    address: _Input,
    protocol: _Input,
    job_name: _Input,
    consumer_index: _Input,
    num_consumers: _Input,
    max_outstanding_requests: _Input,
    iteration_counter: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    uncompress_fn: _Func,
    task_refresh_interval_hint_ms: int = -1,
    data_transfer_protocol: str | bytes = '',
    target_workers: str | bytes = 'AUTO',
    uncompress: bool = False,
    cross_trainer_cache_options: str | bytes = '',
    name: str | None = None,
) -> _Tensor: ...

def DataServiceDatasetV4(
    *,
    dataset_id: _Input,
    processing_mode: _Input,
    address: _Input,
    protocol: _Input,
    job_name: _Input,
    consumer_index: _Input,
    num_consumers: _Input,
    max_outstanding_requests: _Input,
    iteration_counter: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    uncompress_fn: _Func,
    task_refresh_interval_hint_ms: int = -1,
    data_transfer_protocol: str | bytes = '',
    target_workers: str | bytes = 'AUTO',
    uncompress: bool = False,
    cross_trainer_cache_options: str | bytes = '',
    name: str | None = None,
) -> _Tensor: ...

def DatasetCardinality(
    *,
    input_dataset: _Input,
    cardinality_options: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The number of elements; -1 for infinitely many, -2 where it is not known."""

def DatasetFingerprint(
    *,
    input_dataset: _Input,
    name: str | None = None,
) -> _Tensor:
    """A number that equal datasets have, as far as their graphs are equal."""

def DatasetFromGraph(
    *,
    graph_def: _Input,
    name: str | None = None,
) -> _Tensor:
    """The dataset that the nodes of a serialized GraphDef make."""

def DatasetToGraph(
    *,
    input_dataset: _Input,
    stateful_whitelist: collections.abc.Sequence[str | bytes] = ...,
    allow_stateful: bool = False,
    strip_device_assignment: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The serialized GraphDef of the nodes that make a dataset."""

def DatasetToGraphV2(
    *,
    input_dataset: _Input,
    external_state_policy: int = 0,
    strip_device_assignment: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The serialized GraphDef of the nodes that make a dataset."""

def DatasetToSingleElement(
    *,
    dataset: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> list[_Tensor]:
    """The only element of a dataset."""

def DatasetToTFRecord(
    *,
    input_dataset: _Input,
    filename: _Input,
    compression_type: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Writes the strings of a dataset into a TFRecord file."""

def Dawsn(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """Dawson's integral: of `exp(t ** 2)` from 0 to x, times `exp(-x ** 2)`."""

def DebugGradientIdentity(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input`; marks where a debugger watches the gradient."""

def DebugGradientRefIdentity(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The same reference."""

def DebugIdentity(
    *,
    input: _Input,
    device_name: str | bytes = '',
    tensor_name: str | bytes = '',
    debug_urls: collections.abc.Sequence[str | bytes] = ...,
    gated_grpc: bool = False,
    name: str | None = None,
) -> _Tensor:
    """`input`, which a debugger may be shown."""

def DebugIdentityV2(
    *,
    input: _Input,
    tfdbg_context_id: str | bytes = '',
    op_name: str | bytes = '',
    output_slot: int = -1,
    tensor_debug_mode: int = -1,
    debug_urls: collections.abc.Sequence[str | bytes] = ...,
    circular_buffer_size: int = 1000,
    tfdbg_run_id: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """`input`, which a debugger may be shown."""

def DebugIdentityV3(
    *,
    input: _Input,
    device_name: str | bytes = '',
    tensor_name: str | bytes = '',
    io_of_node: str | bytes = '',
    is_input: bool = False,
    io_index: int = -1,
    debug_urls: collections.abc.Sequence[str | bytes] = ...,
    gated_grpc: bool = False,
    name: str | None = None,
) -> _Tensor:
    """`input`, which a debugger may be shown."""

def DebugNanCount(
    *,
    input: _Input,
    device_name: str | bytes = '',
    tensor_name: str | bytes = '',
    debug_urls: collections.abc.Sequence[str | bytes] = ...,
    gated_grpc: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The number of NaNs in `input`, as a vector, which a debugger may be shown."""

def DebugNumericSummary(
    *,
    input: _Input,
    device_name: str | bytes = '',
    tensor_name: str | bytes = '',
    debug_urls: collections.abc.Sequence[str | bytes] = ...,
    lower_bound: float = ...,
    upper_bound: float = ...,
    mute_if_healthy: bool = False,
    gated_grpc: bool = False,
    name: str | None = None,
) -> _Tensor:
    """    Facts about the numbers in `input`, which a debugger may be shown."""

def DebugNumericSummaryV2(
    *,
    input: _Input,
    output_dtype: _Type = ...,
    tensor_debug_mode: int = -1,
    tensor_id: int = -1,
    name: str | None = None,
) -> _Tensor:
    """    Facts about the numbers in `input`."""

def DecodeAndCropJpeg(
    *,
    contents: _Input,
    crop_window: _Input,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1.0,
    dct_method: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The pixels of a window (y, x, height, width) of a JPEG file."""

def DecodeBase64(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """Each string from base64, with or without = at its end."""

def DecodeBmp(
    *,
    contents: _Input,
    channels: int = 0,
    name: str | None = None,
) -> _Tensor:
    """The pixels of a BMP file."""

def DecodeCSV(
    *,
    records: _Input,
    record_defaults: collections.abc.Sequence[_Input],
    field_delim: str | bytes = ',',
    use_quote_delim: bool = True,
    na_value: str | bytes = '',
    select_cols: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> list[_Tensor]:
    """The fields of each record, column by column; `record_defaults` stand for those that are empty."""

def DecodeCompressed(
    *,
    bytes: _Input,
    compression_type: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Each string decompressed: ZLIB, GZIP, or as it is."""

def DecodeGif(
    *,
    contents: _Input,
    name: str | None = None,
) -> _Tensor:
    """The frames of a GIF file."""

def DecodeImage(
    *,
    contents: _Input,
    channels: int = 0,
    dtype: _Type = ...,
    expand_animations: bool = True,
    name: str | None = None,
) -> _Tensor:
    """The pixels of an image file of any format; all frames of an animation with `expand_animations`."""

def DecodeJSONExample(
    *,
    json_examples: _Input,
    name: str | None = None,
) -> _Tensor:
    """The serialized Example message that each string says in JSON."""

def DecodeJpeg(
    *,
    contents: _Input,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1.0,
    dct_method: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The pixels of a JPEG file, 1 / `ratio` as high and wide."""

def DecodeJxl(
    *,
    contents: _Input,
    channels: int = 0,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The pixels of a JPEG XL file. opkernel has no decoder of this format."""

def DecodePaddedRaw(
    *,
    input_bytes: _Input,
    fixed_length: _Input,
    out_type: _Type,
    little_endian: bool = True,
    name: str | None = None,
) -> _Tensor:
    """The first `fixed_length` bytes of each string as numbers, with zeros for those that are missing."""

def DecodePng(
    *,
    contents: _Input,
    channels: int = 0,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The pixels of a PNG file, of 8 or 16 bits."""

class _DecodeProtoV2Outputs(typing.NamedTuple):
    sizes: _Tensor
    values: list[_Tensor]

def DecodeProtoV2(
    *,
    bytes: _Input,
    message_type: str | bytes,
    field_names: collections.abc.Sequence[str | bytes],
    output_types: collections.abc.Sequence[_Type],
    descriptor_source: str | bytes = 'local://',
    message_format: str | bytes = 'binary',
    sanitize: bool = False,
    name: str | None = None,
) -> _DecodeProtoV2Outputs:
    """Fields of serialized messages: how many elements each has, and these, filled up with zeros."""

def DecodeRaw(
    *,
    bytes: _Input,
    out_type: _Type,
    little_endian: bool = True,
    name: str | None = None,
) -> _Tensor:
    """The bytes of each string as numbers; all strings have one length."""

class _DecodeWavOutputs(typing.NamedTuple):
    audio: _Tensor
    sample_rate: _Tensor

def DecodeWav(
    *,
    contents: _Input,
    desired_channels: int = -1,
    desired_samples: int = -1,
    name: str | None = None,
) -> _DecodeWavOutputs:
    """The samples of a WAV file, between -1 and 1. More channels than the file has repeat its last one; samples beyond its end are 0."""

def DecodeWebP(
    *,
    contents: _Input,
    channels: int = 0,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The frames of a WebP file."""

def DeepCopy(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """A copy of `x` that shares no memory with it."""

def DefaultAttrs(
    *,
    string_val: str | bytes = 'abc',
    string_list_val: collections.abc.Sequence[str | bytes] = ...,
    int_val: int = 123,
    int_list_val: collections.abc.Sequence[int] = ...,
    float_val: float = 10.0,
    float_list_val: collections.abc.Sequence[float] = ...,
    bool_val: bool = True,
    bool_list_val: collections.abc.Sequence[bool] = ...,
    type_val: _Type = ...,
    type_list_val: collections.abc.Sequence[_Type] = ...,
    shape_val: _Shape = ...,
    shape_list_val: collections.abc.Sequence[_Shape] = ...,
    tensor_val: npt.ArrayLike | opkernel.proto.TensorProto = ...,
    tensor_list_val: collections.abc.Sequence[npt.ArrayLike | opkernel.proto.TensorProto] = ...,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def DeleteIterator(
    *,
    handle: _Input,
    deleter: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Deletes an iterator that AnonymousIteratorV2 has made."""

def DeleteMemoryCache(
    *,
    handle: _Input,
    deleter: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Deletes a cache in memory."""

def DeleteMultiDeviceIterator(
    *,
    multi_device_iterator: _Input,
    iterators: collections.abc.Sequence[_Input],
    deleter: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Deletes an iterator for several devices."""

def DeleteRandomSeedGenerator(
    *,
    handle: _Input,
    deleter: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Deletes a generator of seeds."""

def DeleteRpcFutureResource(
    *,
    handle: _Input,
    deleter: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def DeleteSeedGenerator(
    *,
    handle: _Input,
    deleter: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Deletes a generator of seeds."""

def DeleteSessionTensor(
    *,
    handle: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Has the session forget a tensor."""

def DenseBincount(
    *,
    input: _Input,
    size: _Input,
    weights: _Input,
    binary_output: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The sum of the weights of each value in a vector, or in each row of a matrix."""

class _DenseCountSparseOutputOutputs(typing.NamedTuple):
    output_indices: _Tensor
    output_values: _Tensor
    output_dense_shape: _Tensor

def DenseCountSparseOutput(
    *,
    values: _Input,
    weights: _Input,
    binary_output: bool,
    minlength: int = -1,
    maxlength: int = -1,
    name: str | None = None,
) -> _DenseCountSparseOutputOutputs:
    """How often each value is in a vector, or in each row of a matrix."""

def DenseToCSRSparseMatrix(
    *,
    dense_input: _Input,
    indices: _Input,
    name: str | None = None,
) -> _Tensor:
    """The sparse matrix of the elements of a tensor at the given indices."""

class _DenseToDenseSetOperationOutputs(typing.NamedTuple):
    result_indices: _Tensor
    result_values: _Tensor
    result_shape: _Tensor

def DenseToDenseSetOperation(
    *,
    set1: _Input,
    set2: _Input,
    set_operation: str | bytes,
    validate_indices: bool = True,
    name: str | None = None,
) -> _DenseToDenseSetOperationOutputs:
    """The sorted union, intersection or difference of each two sets, as a sparse tensor."""

def DenseToSparseBatchDataset(
    *,
    input_dataset: _Input,
    batch_size: _Input,
    row_shape: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """Batches of `batch_size` elements as sparse tensors of rows with the shape `row_shape`."""

class _DenseToSparseSetOperationOutputs(typing.NamedTuple):
    result_indices: _Tensor
    result_values: _Tensor
    result_shape: _Tensor

def DenseToSparseSetOperation(
    *,
    set1: _Input,
    set2_indices: _Input,
    set2_values: _Input,
    set2_shape: _Input,
    set_operation: str | bytes,
    validate_indices: bool = True,
    name: str | None = None,
) -> _DenseToSparseSetOperationOutputs:
    """DenseToDenseSetOperation whose second sets are a sparse tensor."""

def DepthToSpace(
    *,
    input: _Input,
    block_size: int,
    data_format: typing.Literal['NHWC', 'NCHW', 'NCHW_VECT_C'] = 'NHWC',
    name: str | None = None,
) -> _Tensor:
    """Images `input` with parts of the depth moved into blocks of space: undoes SpaceToDepth."""

def DepthwiseConv2dNative(
    *,
    input: _Input,
    filter: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID', 'EXPLICIT'],
    explicit_paddings: collections.abc.Sequence[int] = ...,
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor:
    """The convolution of each channel of images by itself, with a filter [rows, columns, channels, multiplier]; the output has channels * multiplier channels."""

def DepthwiseConv2dNativeBackpropFilter(
    *,
    input: _Input,
    filter_sizes: _Input,
    out_backprop: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID', 'EXPLICIT'],
    explicit_paddings: collections.abc.Sequence[int] = ...,
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor:
    """The gradient of DepthwiseConv2dNative by its filter, whose shape is given."""

def DepthwiseConv2dNativeBackpropInput(
    *,
    input_sizes: _Input,
    filter: _Input,
    out_backprop: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID', 'EXPLICIT'],
    explicit_paddings: collections.abc.Sequence[int] = ...,
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor:
    """The gradient of DepthwiseConv2dNative by its input, whose shape is given."""

def Dequantize(
    *,
    input: _Input,
    min_range: _Input,
    max_range: _Input,
    mode: typing.Literal['MIN_COMBINED', 'MIN_FIRST', 'SCALED'] = 'MIN_COMBINED',
    narrow_range: bool = False,
    axis: int = -1,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The floats that integers stand for in a range."""

def DeserializeIterator(
    *,
    resource_handle: _Input,
    serialized: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Gives an iterator the state that SerializeIterator has saved."""

class _DeserializeManySparseOutputs(typing.NamedTuple):
    sparse_indices: _Tensor
    sparse_values: _Tensor
    sparse_shape: _Tensor

def DeserializeManySparse(
    *,
    serialized_sparse: _Input,
    dtype: _Type,
    name: str | None = None,
) -> _DeserializeManySparseOutputs:
    """The sparse tensor of all serialized ones, with the dimensions of the input before theirs."""

class _DeserializeSparseOutputs(typing.NamedTuple):
    sparse_indices: _Tensor
    sparse_values: _Tensor
    sparse_shape: _Tensor

def DeserializeSparse(
    *,
    serialized_sparse: _Input,
    dtype: _Type,
    name: str | None = None,
) -> _DeserializeSparseOutputs:
    """The sparse tensor of all serialized ones, with the dimensions of the input before theirs."""

def DestroyResourceOp(
    *,
    resource: _Input,
    ignore_lookup_error: bool = True,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Takes the resource out of its container; one that its handles own stays."""

def DestroyTemporaryVariable(
    *,
    ref: _Input,
    var_name: str | bytes,
    name: str | None = None,
) -> _Tensor:
    """The last value of the temporary variable `var_name`, which is then no more."""

def DeviceIndex(
    *,
    device_names: collections.abc.Sequence[str | bytes],
    name: str | None = None,
) -> _Tensor:
    """The place of the type of the node's device among `device_names`; their number if it is missing."""

def DevicePlacementOp(
    *,
    name: str | None = None,
) -> _Tensor: ...

def Diag(
    *,
    diagonal: _Input,
    name: str | None = None,
) -> _Tensor:
    """Zeros of twice the rank with `diagonal` where both halves of the index are equal."""

def DiagPart(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The elements of `input` where both halves of the index are equal."""

def Digamma(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The derivative of the logarithm of gamma at `x`."""

def Dilation2D(
    *,
    input: _Input,
    filter: _Input,
    strides: collections.abc.Sequence[int],
    rates: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    name: str | None = None,
) -> _Tensor:
    """For each window of images, the maximum of the sums of its elements and those of a filter [rows, columns, channels]."""

def Dilation2DBackpropFilter(
    *,
    input: _Input,
    filter: _Input,
    out_backprop: _Input,
    strides: collections.abc.Sequence[int],
    rates: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    name: str | None = None,
) -> _Tensor:
    """The gradient of Dilation2D by its filter."""

def Dilation2DBackpropInput(
    *,
    input: _Input,
    filter: _Input,
    out_backprop: _Input,
    strides: collections.abc.Sequence[int],
    rates: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    name: str | None = None,
) -> _Tensor:
    """The gradient of Dilation2D by its input."""

def DirectedInterleaveDataset(
    *,
    selector_input_dataset: _Input,
    data_input_datasets: collections.abc.Sequence[_Input],
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    stop_on_empty_dataset: bool = False,
    name: str | None = None,
) -> _Tensor:
    """An element of that dataset whose number the selector gives, each time."""

def DisableCopyOnRead(
    *,
    resource: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Checks that the variable exists. Reads never copy here."""

def DistributedSave(
    *,
    dataset: _Input,
    directory: _Input,
    address: _Input,
    metadata: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def Div(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The quotient `x / y`; integers round towards 0."""

def DivNoNan(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The quotient `x / y`; 0 where `y` is 0."""

def DrawBoundingBoxes(
    *,
    images: _Input,
    boxes: _Input,
    name: str | None = None,
) -> _Tensor:
    """The images with the outlines of their boxes (y_min, x_min, y_max, x_max, from 0 to 1)."""

def DrawBoundingBoxesV2(
    *,
    images: _Input,
    boxes: _Input,
    colors: _Input,
    name: str | None = None,
) -> _Tensor:
    """DrawBoundingBoxes with colors [colors, channels], which the boxes take in turn."""

def DtypeWithDefaultOp(
    *,
    in_: _Input,
    name: str | None = None,
) -> _Tensor:
    """The name of the type of a tensor."""

def DummyIterationCounter(
    *,
    name: str | None = None,
) -> _Tensor:
    """A handle in the place of one to a counter of passes."""

def DummyMemoryCache(
    *,
    name: str | None = None,
) -> _Tensor:
    """A handle in the place of one to a cache in memory; nothing stands behind it."""

def DummySeedGenerator(
    *,
    name: str | None = None,
) -> _Tensor:
    """A handle in the place of one to a generator of seeds; nothing stands behind it."""

def DumpTensor(
    *,
    tensor_data: _Input,
    log_dir_path: str | bytes,
    file_name: str | bytes,
    enabled: bool,
    func_name: str | bytes,
    node_name: str | bytes,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """    Writes a tensor as a TensorProto into `file_name` in `log_dir_path`, and beside it the names of node and function."""

def DynamicEnqueueTPUEmbeddingArbitraryTensorBatch(
    *,
    sample_indices_or_row_splits: collections.abc.Sequence[_Input],
    embedding_indices: collections.abc.Sequence[_Input],
    aggregation_weights: collections.abc.Sequence[_Input],
    mode_override: _Input,
    device_ordinal: _Input,
    combiners: collections.abc.Sequence[str | bytes] = ...,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def DynamicEnqueueTPUEmbeddingRaggedTensorBatch(
    *,
    sample_splits: collections.abc.Sequence[_Input],
    embedding_indices: collections.abc.Sequence[_Input],
    aggregation_weights: collections.abc.Sequence[_Input],
    mode_override: _Input,
    device_ordinal: _Input,
    table_ids: collections.abc.Sequence[int],
    combiners: collections.abc.Sequence[str | bytes] = ...,
    max_sequence_lengths: collections.abc.Sequence[int] = ...,
    num_features: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def DynamicPartition(
    *,
    data: _Input,
    partitions: _Input,
    num_partitions: int,
    name: str | None = None,
) -> list[_Tensor]:
    """Output i holds the parts of `data` where `partitions`, the leading dimensions, is i."""

def DynamicStitch(
    *,
    indices: collections.abc.Sequence[_Input],
    data: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> _Tensor:
    """A tensor whose row `indices[i][j]` is row j of `data[i]`; of several such the last."""

def EagerPyFunc(
    *,
    input: collections.abc.Sequence[_Input],
    token: str | bytes,
    Tout: collections.abc.Sequence[_Type],
    is_async: bool = False,
    name: str | None = None,
) -> list[_Tensor]:
    """What the function of the program gives that `token` stands for."""

def EditDistance(
    *,
    hypothesis_indices: _Input,
    hypothesis_values: _Input,
    hypothesis_shape: _Input,
    truth_indices: _Input,
    truth_values: _Input,
    truth_shape: _Input,
    normalize: bool = True,
    name: str | None = None,
) -> _Tensor:
    """How many changes each sequence is away from the true one, over its length if `normalize`."""

class _EigOutputs(typing.NamedTuple):
    e: _Tensor
    v: _Tensor

def Eig(
    *,
    input: _Input,
    Tout: _Type,
    compute_v: bool = True,
    name: str | None = None,
) -> _EigOutputs:
    """The eigenvalues and eigenvectors of any square matrices."""

def Einsum(
    *,
    inputs: collections.abc.Sequence[_Input],
    equation: str | bytes,
    name: str | None = None,
) -> _Tensor:
    """Sum of products of the elements of `inputs`, as `equation` says: `ij,jk->ik`."""

def Elu(
    *,
    features: _Input,
    name: str | None = None,
) -> _Tensor:
    """The features; exp(features) - 1 where they are below 0."""

def EluGrad(
    *,
    gradients: _Input,
    outputs: _Input,
    name: str | None = None,
) -> _Tensor:
    """The gradient of Elu, from that of its result and `outputs`."""

def Empty(
    *,
    shape: _Input,
    dtype: _Type,
    init: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A tensor of a shape. Its elements are zeros; in TensorFlow they may be anything without `init`."""

def EmptyTensorList(
    *,
    element_shape: _Input,
    max_num_elements: _Input,
    element_dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """A list without elements; it may get `max_num_elements`, or any number if that is -1."""

def EmptyTensorMap(
    *,
    name: str | None = None,
) -> _Tensor:
    """A map without entries."""

def EncodeBase64(
    *,
    input: _Input,
    pad: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Each string in base64, filled up with = if `pad`."""

def EncodeJpeg(
    *,
    image: _Input,
    format: typing.Literal['', 'grayscale', 'rgb'] = '',
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: typing.Literal['in', 'cm'] = 'in',
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A JPEG file of an image [height, width, channels]."""

def EncodeJpegVariableQuality(
    *,
    images: _Input,
    quality: _Input,
    name: str | None = None,
) -> _Tensor:
    """EncodeJpeg with a quality that the graph computes."""

def EncodePng(
    *,
    image: _Input,
    compression: int = -1,
    name: str | None = None,
) -> _Tensor:
    """PNG files of images [..., height, width, channels]."""

def EncodeProto(
    *,
    sizes: _Input,
    values: collections.abc.Sequence[_Input],
    field_names: collections.abc.Sequence[str | bytes],
    message_type: str | bytes,
    descriptor_source: str | bytes = 'local://',
    name: str | None = None,
) -> _Tensor:
    """Serialized messages of fields: `sizes` says how many of the values each has."""

def EncodeWav(
    *,
    audio: _Input,
    sample_rate: _Input,
    name: str | None = None,
) -> _Tensor:
    """A WAV file of samples [samples, channels], which are clipped to -1 and 1."""

def EnqueueTPUEmbeddingArbitraryTensorBatch(
    *,
    sample_indices_or_row_splits: collections.abc.Sequence[_Input],
    embedding_indices: collections.abc.Sequence[_Input],
    aggregation_weights: collections.abc.Sequence[_Input],
    mode_override: _Input,
    device_ordinal: int = -1,
    combiners: collections.abc.Sequence[str | bytes] = ...,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def EnqueueTPUEmbeddingBatch(
    *,
    batch: collections.abc.Sequence[_Input],
    mode_override: _Input,
    device_ordinal: int = -1,
    combiners: collections.abc.Sequence[str | bytes] = ...,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def EnqueueTPUEmbeddingIntegerBatch(
    *,
    batch: collections.abc.Sequence[_Input],
    mode_override: _Input,
    device_ordinal: int = -1,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def EnqueueTPUEmbeddingRaggedTensorBatch(
    *,
    sample_splits: collections.abc.Sequence[_Input],
    embedding_indices: collections.abc.Sequence[_Input],
    aggregation_weights: collections.abc.Sequence[_Input],
    mode_override: _Input,
    table_ids: collections.abc.Sequence[int],
    device_ordinal: int = -1,
    combiners: collections.abc.Sequence[str | bytes] = ...,
    max_sequence_lengths: collections.abc.Sequence[int] = ...,
    num_features: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def EnqueueTPUEmbeddingSparseBatch(
    *,
    sample_indices: collections.abc.Sequence[_Input],
    embedding_indices: collections.abc.Sequence[_Input],
    aggregation_weights: collections.abc.Sequence[_Input],
    mode_override: _Input,
    device_ordinal: int = -1,
    combiners: collections.abc.Sequence[str | bytes] = ...,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def EnqueueTPUEmbeddingSparseTensorBatch(
    *,
    sample_indices: collections.abc.Sequence[_Input],
    embedding_indices: collections.abc.Sequence[_Input],
    aggregation_weights: collections.abc.Sequence[_Input],
    mode_override: _Input,
    table_ids: collections.abc.Sequence[int],
    device_ordinal: int = -1,
    combiners: collections.abc.Sequence[str | bytes] = ...,
    max_sequence_lengths: collections.abc.Sequence[int] = ...,
    num_features: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def EnsureShape(
    *,
    input: _Input,
    shape: _Shape,
    name: str | None = None,
) -> _Tensor:
    """`input`, which must have a shape that agrees with `shape`."""

def Enter(
    *,
    data: _Input,
    frame_name: str | bytes,
    is_constant: bool = False,
    parallel_iterations: int = 10,
    name: str | None = None,
) -> _Tensor:
    """Passes `data` into the loop whose frame is `frame_name`."""

def Equal(
    *,
    x: _Input,
    y: _Input,
    incompatible_shape_error: bool = True,
    name: str | None = None,
) -> _Tensor:
    """Whether `x == y`."""

def Erf(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The error function of `x`."""

def Erfc(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """`1 - erf(x)`, exact if that is near 0."""

def Erfinv(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number whose error function is `x`."""

def EuclideanNorm(
    *,
    input: _Input,
    axis: _Input,
    keep_dims: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The square root of the sum of squares of `input` over the axes `reduction_indices`, negative ones from the end."""

def ExecuteTPUEmbeddingPartitioner(
    *,
    config: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def Exit(
    *,
    data: _Input,
    name: str | None = None,
) -> _Tensor:
    """Passes `data` out of its loop."""

def Exp(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """`e ** x`."""

def ExpandDims(
    *,
    input: _Input,
    axis: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input` with a dimension of size 1 before dimension `dim`; from the end if negative."""

def ExperimentalAssertNextDataset(
    *,
    input_dataset: _Input,
    transformations: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`. TensorFlow checks the stages that its passes have put behind it."""

def ExperimentalAutoShardDataset(
    *,
    input_dataset: _Input,
    num_workers: _Input,
    index: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    auto_shard_policy: int = 0,
    name: str | None = None,
) -> _Tensor:
    """The part of the elements for one of several workers, as a policy says."""

def ExperimentalBytesProducedStatsDataset(
    *,
    input_dataset: _Input,
    tag: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`."""

def ExperimentalCSVDataset(
    *,
    filenames: _Input,
    compression_type: _Input,
    buffer_size: _Input,
    header: _Input,
    field_delim: _Input,
    use_quote_delim: _Input,
    na_value: _Input,
    select_cols: _Input,
    record_defaults: collections.abc.Sequence[_Input],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The records of CSV files; `record_defaults` stand for fields that are empty."""

def ExperimentalChooseFastestDataset(
    *,
    input_datasets: collections.abc.Sequence[_Input],
    num_experiments: int,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of the first of datasets that have the same elements."""

def ExperimentalDatasetCardinality(
    *,
    input_dataset: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of elements; -1 for infinitely many, -2 where it is not known."""

def ExperimentalDatasetToTFRecord(
    *,
    input_dataset: _Input,
    filename: _Input,
    compression_type: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Writes the strings of a dataset into a TFRecord file."""

def ExperimentalDenseToSparseBatchDataset(
    *,
    input_dataset: _Input,
    batch_size: _Input,
    row_shape: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """Batches of `batch_size` elements as sparse tensors of rows with the shape `row_shape`."""

def ExperimentalDirectedInterleaveDataset(
    *,
    selector_input_dataset: _Input,
    data_input_datasets: collections.abc.Sequence[_Input],
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """An element of that dataset whose number the selector gives, each time."""

def ExperimentalGroupByReducerDataset(
    *,
    input_dataset: _Input,
    key_func_other_arguments: collections.abc.Sequence[_Input],
    init_func_other_arguments: collections.abc.Sequence[_Input],
    reduce_func_other_arguments: collections.abc.Sequence[_Input],
    finalize_func_other_arguments: collections.abc.Sequence[_Input],
    key_func: _Func,
    init_func: _Func,
    reduce_func: _Func,
    finalize_func: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """One element for each key: what `reduce_func` and `finalize_func` make of all elements with it."""

def ExperimentalGroupByWindowDataset(
    *,
    input_dataset: _Input,
    key_func_other_arguments: collections.abc.Sequence[_Input],
    reduce_func_other_arguments: collections.abc.Sequence[_Input],
    window_size_func_other_arguments: collections.abc.Sequence[_Input],
    key_func: _Func,
    reduce_func: _Func,
    window_size_func: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of the datasets that `reduce_func` makes of windows of elements with one key."""

def ExperimentalIgnoreErrorsDataset(
    *,
    input_dataset: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    log_warning: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset` that can be computed."""

def ExperimentalIteratorGetDevice(
    *,
    resource: _Input,
    name: str | None = None,
) -> _Tensor:
    """The name of the device that an iterator is on."""

def ExperimentalLMDBDataset(
    *,
    filenames: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor: ...

def ExperimentalLatencyStatsDataset(
    *,
    input_dataset: _Input,
    tag: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`."""

def ExperimentalMapAndBatchDataset(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    batch_size: _Input,
    num_parallel_calls: _Input,
    drop_remainder: _Input,
    f: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    preserve_cardinality: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Batches of the results of `f` for each element."""

def ExperimentalMapDataset(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    f: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    use_inter_op_parallelism: bool = True,
    preserve_cardinality: bool = False,
    force_synchronous: bool = False,
    name: str | None = None,
) -> _Tensor: ...

def ExperimentalMatchingFilesDataset(
    *,
    patterns: _Input,
    name: str | None = None,
) -> _Tensor:
    """The names of the files that match patterns: those of each pattern in order."""

def ExperimentalMaxIntraOpParallelismDataset(
    *,
    input_dataset: _Input,
    max_intra_op_parallelism: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`; a kernel may spread its work over so many threads."""

def ExperimentalNonSerializableDataset(
    *,
    input_dataset: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`."""

def ExperimentalParallelInterleaveDataset(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    cycle_length: _Input,
    block_length: _Input,
    sloppy: _Input,
    buffer_output_elements: _Input,
    prefetch_input_elements: _Input,
    f: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of the datasets that `f` gives: `block_length` from each of `cycle_length` in turn."""

def ExperimentalParseExampleDataset(
    *,
    input_dataset: _Input,
    num_parallel_calls: _Input,
    dense_defaults: collections.abc.Sequence[_Input],
    sparse_keys: collections.abc.Sequence[str | bytes],
    dense_keys: collections.abc.Sequence[str | bytes],
    sparse_types: collections.abc.Sequence[_Type],
    dense_shapes: collections.abc.Sequence[_Shape],
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    sloppy: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The features of the Example messages of each element, in the order of their keys."""

def ExperimentalPrivateThreadPoolDataset(
    *,
    input_dataset: _Input,
    num_threads: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`, for whose computation there may be threads of its own."""

def ExperimentalRandomDataset(
    *,
    seed: _Input,
    seed2: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """Random numbers from 0 to 2^32, without end."""

def ExperimentalRebatchDataset(
    *,
    input_dataset: _Input,
    num_replicas: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    use_fallback: bool = True,
    name: str | None = None,
) -> _Tensor:
    """Each batch in `num_replicas` parts."""

def ExperimentalScanDataset(
    *,
    input_dataset: _Input,
    initial_state: collections.abc.Sequence[_Input],
    other_arguments: collections.abc.Sequence[_Input],
    f: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    preserve_cardinality: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The results of `f` for the state and each element; its first results are the next state."""

def ExperimentalSetStatsAggregatorDataset(
    *,
    input_dataset: _Input,
    stats_aggregator: _Input,
    tag: _Input,
    counter_prefix: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`, whose statistics a collector may have."""

def ExperimentalSleepDataset(
    *,
    input_dataset: _Input,
    sleep_microseconds: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements, each after a pause."""

def ExperimentalSlidingWindowDataset(
    *,
    input_dataset: _Input,
    window_size: _Input,
    window_shift: _Input,
    window_stride: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """Batches of `window_size` elements that are `window_stride` apart."""

def ExperimentalSqlDataset(
    *,
    driver_name: _Input,
    data_source_name: _Input,
    query: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The rows that a query of an SQLite database gives."""

def ExperimentalStatsAggregatorHandle(
    *,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A handle to a collector of statistics."""

def ExperimentalStatsAggregatorSummary(
    *,
    iterator: _Input,
    name: str | None = None,
) -> _Tensor:
    """The statistics of a collector as a serialized Summary, which is empty."""

def ExperimentalTakeWhileDataset(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    predicate: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements before the first one that `predicate` does not hold for."""

def ExperimentalThreadPoolDataset(
    *,
    input_dataset: _Input,
    thread_pool: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`."""

def ExperimentalThreadPoolHandle(
    *,
    num_threads: int,
    display_name: str | bytes,
    max_intra_op_parallelism: int = 1,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A handle to a pool of threads."""

def ExperimentalUnbatchDataset(
    *,
    input_dataset: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The rows of the elements, one by one."""

def ExperimentalUniqueDataset(
    *,
    input_dataset: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """Each element once."""

def Expint(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The exponential integral: of `exp(t) / t` from minus infinity to x."""

def Expm1(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """`e ** x - 1`, exact near 0."""

def ExtractGlimpse(
    *,
    input: _Input,
    size: _Input,
    offsets: _Input,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    noise: str | bytes = 'uniform',
    name: str | None = None,
) -> _Tensor:
    """The window of `size` of each image, `offsets` from its middle; noise stands beyond the image."""

def ExtractGlimpseV2(
    *,
    input: _Input,
    size: _Input,
    offsets: _Input,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    noise: str | bytes = 'uniform',
    name: str | None = None,
) -> _Tensor:
    """ExtractGlimpse whose offsets, unless centered and normalized, are those of the first pixel."""

def ExtractImagePatches(
    *,
    images: _Input,
    ksizes: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    rates: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    name: str | None = None,
) -> _Tensor:
    """The windows of size `ksizes` of the images, `strides` apart, each as a row of channels."""

def ExtractJpegShape(
    *,
    contents: _Input,
    output_type: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The height, width and channels of a JPEG file, without its pixels."""

def ExtractVolumePatches(
    *,
    input: _Input,
    ksizes: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    name: str | None = None,
) -> _Tensor:
    """The windows of size `ksizes` of volumes, `strides` apart, each as a row of channels."""

def FFT(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The Fourier transform of the last 1 dimensions."""

def FFT2D(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The Fourier transform of the last 2 dimensions."""

def FFT3D(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The Fourier transform of the last 3 dimensions."""

def FFTND(
    *,
    input: _Input,
    fft_length: _Input,
    axes: _Input,
    name: str | None = None,
) -> _Tensor: ...

def FIFOQueue(
    *,
    component_types: collections.abc.Sequence[_Type],
    shapes: collections.abc.Sequence[_Shape] = ...,
    capacity: int = -1,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A queue that elements leave in the order in which they came."""

def FIFOQueueV2(
    *,
    component_types: collections.abc.Sequence[_Type],
    shapes: collections.abc.Sequence[_Shape] = ...,
    capacity: int = -1,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A queue that elements leave in the order in which they came."""

def Fact(
    *,
    name: str | None = None,
) -> _Tensor:
    """A fact."""

def FakeParam(
    *,
    dtype: _Type,
    shape: _Shape,
    name: str | None = None,
) -> _Tensor:
    """A tensor that nobody looks at, of a shape; unknown dimensions are 0."""

def FakeQuantWithMinMaxArgs(
    *,
    inputs: _Input,
    min: float = -6.0,
    max: float = 6.0,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Rounds to the nearest of 2 ** num_bits evenly spaced values between min and max."""

def FakeQuantWithMinMaxArgsGradient(
    *,
    gradients: _Input,
    inputs: _Input,
    min: float = -6.0,
    max: float = 6.0,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The gradients where the inputs are in the range, 0 elsewhere."""

def FakeQuantWithMinMaxVars(
    *,
    inputs: _Input,
    min: _Input,
    max: _Input,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Rounds to the nearest of 2 ** num_bits evenly spaced values between min and max."""

class _FakeQuantWithMinMaxVarsGradientOutputs(typing.NamedTuple):
    backprops_wrt_input: _Tensor
    backprop_wrt_min: _Tensor
    backprop_wrt_max: _Tensor

def FakeQuantWithMinMaxVarsGradient(
    *,
    gradients: _Input,
    inputs: _Input,
    min: _Input,
    max: _Input,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> _FakeQuantWithMinMaxVarsGradientOutputs:
    """The gradients where the inputs are in the range, 0 elsewhere."""

def FakeQuantWithMinMaxVarsPerChannel(
    *,
    inputs: _Input,
    min: _Input,
    max: _Input,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Rounds to the nearest of 2 ** num_bits evenly spaced values between min and max."""

class _FakeQuantWithMinMaxVarsPerChannelGradientOutputs(typing.NamedTuple):
    backprops_wrt_input: _Tensor
    backprop_wrt_min: _Tensor
    backprop_wrt_max: _Tensor

def FakeQuantWithMinMaxVarsPerChannelGradient(
    *,
    gradients: _Input,
    inputs: _Input,
    min: _Input,
    max: _Input,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> _FakeQuantWithMinMaxVarsPerChannelGradientOutputs:
    """As FakeQuantWithMinMaxVarsGradient, for each place of the last dimension."""

def FakeQueue(
    *,
    resource: _Input,
    name: str | None = None,
) -> _Tensor:
    """The handle to a queue as ops of the first version take it."""

def FileSystemSetConfiguration(
    *,
    scheme: _Input,
    key: _Input,
    value: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Sets an option of a file system. It always fails: no file system has options."""

def Fill(
    *,
    dims: _Input,
    value: _Input,
    name: str | None = None,
) -> _Tensor:
    """A tensor of shape `dims` with `value` everywhere."""

def FilterByLastComponentDataset(
    *,
    input_dataset: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor: ...

def FilterDataset(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    predicate: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements that `predicate` holds for."""

def FinalizeDataset(
    *,
    input_dataset: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    has_captured_ref: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`."""

def FinalizeTPUEmbedding(
    *,
    common_config: _Input,
    memory_config: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

class _FinalizeTPUEmbeddingV2Outputs(typing.NamedTuple):
    embedding_partitions: _Tensor
    hbm_buffers_config: _Tensor

def FinalizeTPUEmbeddingV2(
    *,
    common_config: _Input,
    memory_config: _Input,
    name: str | None = None,
) -> _FinalizeTPUEmbeddingV2Outputs: ...

def Fingerprint(
    *,
    data: _Input,
    method: _Input,
    name: str | None = None,
) -> _Tensor:
    """The hash of each row of `data` by `method`, which is farmhash64, as bytes."""

class _FiveFloatOutputsOutputs(typing.NamedTuple):
    a: _Tensor
    b: _Tensor
    c: _Tensor
    d: _Tensor
    e: _Tensor

def FiveFloatOutputs(
    *,
    name: str | None = None,
) -> _FiveFloatOutputsOutputs: ...

def FixedLengthRecordDataset(
    *,
    filenames: _Input,
    header_bytes: _Input,
    record_bytes: _Input,
    footer_bytes: _Input,
    buffer_size: _Input,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The records of files of records that are `record_bytes` long."""

def FixedLengthRecordDatasetV2(
    *,
    filenames: _Input,
    header_bytes: _Input,
    record_bytes: _Input,
    footer_bytes: _Input,
    buffer_size: _Input,
    compression_type: _Input,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The records of files of records that are `record_bytes` long."""

def FixedLengthRecordReader(
    *,
    record_bytes: int,
    header_bytes: int = 0,
    footer_bytes: int = 0,
    hop_bytes: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A reader of records of `record_bytes`, each `hop_bytes` after the one before; keys are FILE:NUMBER, from 0 on."""

def FixedLengthRecordReaderV2(
    *,
    record_bytes: int,
    header_bytes: int = 0,
    footer_bytes: int = 0,
    hop_bytes: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    encoding: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A reader of records of `record_bytes`, each `hop_bytes` after the one before; keys are FILE:NUMBER, from 0 on."""

class _FixedUnigramCandidateSamplerOutputs(typing.NamedTuple):
    sampled_candidates: _Tensor
    true_expected_count: _Tensor
    sampled_expected_count: _Tensor

def FixedUnigramCandidateSampler(
    *,
    true_classes: _Input,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str | bytes = '',
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: collections.abc.Sequence[float] = ...,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _FixedUnigramCandidateSamplerOutputs:
    """Classes as likely as given weights to the power `distortion`; and how often each, and each of the true ones, is expected."""

def FlatMapDataset(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    f: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements of the datasets that `f` gives, one dataset after the other."""

def FloatInput(
    *,
    a: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def FloatOutput(
    *,
    name: str | None = None,
) -> _Tensor: ...

class _FloatOutputStringOutputOutputs(typing.NamedTuple):
    a: _Tensor
    b: _Tensor

def FloatOutputStringOutput(
    *,
    name: str | None = None,
) -> _FloatOutputStringOutputOutputs: ...

def Floor(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The largest integer that is not above `x`."""

def FloorDiv(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The quotient `x / y`, rounded down."""

def FloorMod(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The remainder of `x / y` with the quotient rounded down; it has the sign of `y`."""

def FlushSummaryWriter(
    *,
    writer: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Writes the waiting events into the file."""

class _Foo1Outputs(typing.NamedTuple):
    d: _Tensor
    e: _Tensor

def Foo1(
    *,
    a: _Input,
    b: _Input,
    c: _Input,
    name: str | None = None,
) -> _Foo1Outputs: ...

class _Foo2Outputs(typing.NamedTuple):
    d: _Tensor
    e: _Tensor

def Foo2(
    *,
    a: _Input,
    b: _Input,
    c: _Input,
    name: str | None = None,
) -> _Foo2Outputs: ...

class _Foo3Outputs(typing.NamedTuple):
    d: _Tensor
    e: _Tensor

def Foo3(
    *,
    a: _Input,
    b: _Input,
    c: _Input,
    name: str | None = None,
) -> _Foo3Outputs: ...

def For(
    *,
    start: _Input,
    limit: _Input,
    delta: _Input,
    input: collections.abc.Sequence[_Input],
    body: _Func,
    name: str | None = None,
) -> list[_Tensor]:
    """    Calls `body` for each number from `start` up to, not including, `limit` in steps of `delta`."""

class _FractionalAvgPoolOutputs(typing.NamedTuple):
    output: _Tensor
    row_pooling_sequence: _Tensor
    col_pooling_sequence: _Tensor

def FractionalAvgPool(
    *,
    value: _Input,
    pooling_ratio: collections.abc.Sequence[float],
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _FractionalAvgPoolOutputs:
    """The mean of windows of two sizes, and the rows and columns where they begin."""

def FractionalAvgPoolGrad(
    *,
    orig_input_tensor_shape: _Input,
    out_backprop: _Input,
    row_pooling_sequence: _Input,
    col_pooling_sequence: _Input,
    overlapping: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The gradient of FractionalAvgPool: each window gives its elements equal parts."""

class _FractionalMaxPoolOutputs(typing.NamedTuple):
    output: _Tensor
    row_pooling_sequence: _Tensor
    col_pooling_sequence: _Tensor

def FractionalMaxPool(
    *,
    value: _Input,
    pooling_ratio: collections.abc.Sequence[float],
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _FractionalMaxPoolOutputs:
    """The largest values of windows of two sizes, and the rows and columns where they begin."""

def FractionalMaxPoolGrad(
    *,
    orig_input: _Input,
    orig_output: _Input,
    out_backprop: _Input,
    row_pooling_sequence: _Input,
    col_pooling_sequence: _Input,
    overlapping: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The gradient of FractionalMaxPool: each window gives all to its first largest element."""

def FresnelCos(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """Fresnel's integral: of `cos(pi t ** 2 / 2)` from 0 to x."""

def FresnelSin(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """Fresnel's integral: of `sin(pi t ** 2 / 2)` from 0 to x."""

def FuncAttr(
    *,
    f: _Func,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def FuncListAttr(
    *,
    f: collections.abc.Sequence[_Func],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

class _FusedBatchNormOutputs(typing.NamedTuple):
    y: _Tensor
    batch_mean: _Tensor
    batch_variance: _Tensor
    reserve_space_1: _Tensor
    reserve_space_2: _Tensor

def FusedBatchNorm(
    *,
    x: _Input,
    scale: _Input,
    offset: _Input,
    mean: _Input,
    variance: _Input,
    epsilon: float = 0.0001,
    exponential_avg_factor: float = 1.0,
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    is_training: bool = True,
    name: str | None = None,
) -> _FusedBatchNormOutputs:
    """Batch normalisation: (x - mean) / sqrt(variance + epsilon) * scale + offset."""

class _FusedBatchNormGradOutputs(typing.NamedTuple):
    x_backprop: _Tensor
    scale_backprop: _Tensor
    offset_backprop: _Tensor
    reserve_space_3: _Tensor
    reserve_space_4: _Tensor

def FusedBatchNormGrad(
    *,
    y_backprop: _Input,
    x: _Input,
    scale: _Input,
    reserve_space_1: _Input,
    reserve_space_2: _Input,
    epsilon: float = 0.0001,
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    is_training: bool = True,
    name: str | None = None,
) -> _FusedBatchNormGradOutputs:
    """The gradient of batch normalisation."""

class _FusedBatchNormGradV2Outputs(typing.NamedTuple):
    x_backprop: _Tensor
    scale_backprop: _Tensor
    offset_backprop: _Tensor
    reserve_space_3: _Tensor
    reserve_space_4: _Tensor

def FusedBatchNormGradV2(
    *,
    y_backprop: _Input,
    x: _Input,
    scale: _Input,
    reserve_space_1: _Input,
    reserve_space_2: _Input,
    epsilon: float = 0.0001,
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    is_training: bool = True,
    name: str | None = None,
) -> _FusedBatchNormGradV2Outputs:
    """The gradient of batch normalisation."""

class _FusedBatchNormGradV3Outputs(typing.NamedTuple):
    x_backprop: _Tensor
    scale_backprop: _Tensor
    offset_backprop: _Tensor
    reserve_space_4: _Tensor
    reserve_space_5: _Tensor

def FusedBatchNormGradV3(
    *,
    y_backprop: _Input,
    x: _Input,
    scale: _Input,
    reserve_space_1: _Input,
    reserve_space_2: _Input,
    reserve_space_3: _Input,
    epsilon: float = 0.0001,
    data_format: typing.Literal['NHWC', 'NCHW', 'NDHWC', 'NCDHW'] = 'NHWC',
    is_training: bool = True,
    name: str | None = None,
) -> _FusedBatchNormGradV3Outputs:
    """The gradient of batch normalisation."""

class _FusedBatchNormV2Outputs(typing.NamedTuple):
    y: _Tensor
    batch_mean: _Tensor
    batch_variance: _Tensor
    reserve_space_1: _Tensor
    reserve_space_2: _Tensor

def FusedBatchNormV2(
    *,
    x: _Input,
    scale: _Input,
    offset: _Input,
    mean: _Input,
    variance: _Input,
    epsilon: float = 0.0001,
    exponential_avg_factor: float = 1.0,
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    is_training: bool = True,
    name: str | None = None,
) -> _FusedBatchNormV2Outputs:
    """Batch normalisation: (x - mean) / sqrt(variance + epsilon) * scale + offset."""

class _FusedBatchNormV3Outputs(typing.NamedTuple):
    y: _Tensor
    batch_mean: _Tensor
    batch_variance: _Tensor
    reserve_space_1: _Tensor
    reserve_space_2: _Tensor
    reserve_space_3: _Tensor

def FusedBatchNormV3(
    *,
    x: _Input,
    scale: _Input,
    offset: _Input,
    mean: _Input,
    variance: _Input,
    epsilon: float = 0.0001,
    exponential_avg_factor: float = 1.0,
    data_format: typing.Literal['NHWC', 'NCHW', 'NDHWC', 'NCDHW'] = 'NHWC',
    is_training: bool = True,
    name: str | None = None,
) -> _FusedBatchNormV3Outputs:
    """Batch normalisation: (x - mean) / sqrt(variance + epsilon) * scale + offset."""

def FusedPadConv2D(
    *,
    input: _Input,
    paddings: _Input,
    filter: _Input,
    mode: typing.Literal['REFLECT', 'SYMMETRIC'],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    name: str | None = None,
) -> _Tensor:
    """Conv2D of images with their mirror image around them; batch and channels are not padded."""

def FusedResizeAndPadConv2D(
    *,
    input: _Input,
    size: _Input,
    paddings: _Input,
    filter: _Input,
    mode: typing.Literal['REFLECT', 'SYMMETRIC'],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    resize_align_corners: bool = False,
    name: str | None = None,
) -> _Tensor:
    """FusedPadConv2D of images that are resized to `size` before, bilinearly."""

class _GRUBlockCellOutputs(typing.NamedTuple):
    r: _Tensor
    u: _Tensor
    c: _Tensor
    h: _Tensor

def GRUBlockCell(
    *,
    x: _Input,
    h_prev: _Input,
    w_ru: _Input,
    w_c: _Input,
    b_ru: _Input,
    b_c: _Input,
    name: str | None = None,
) -> _GRUBlockCellOutputs:
    """One step of a GRU."""

class _GRUBlockCellGradOutputs(typing.NamedTuple):
    d_x: _Tensor
    d_h_prev: _Tensor
    d_c_bar: _Tensor
    d_r_bar_u_bar: _Tensor

def GRUBlockCellGrad(
    *,
    x: _Input,
    h_prev: _Input,
    w_ru: _Input,
    w_c: _Input,
    b_ru: _Input,
    b_c: _Input,
    r: _Input,
    u: _Input,
    c: _Input,
    d_h: _Input,
    name: str | None = None,
) -> _GRUBlockCellGradOutputs:
    """The gradients of a GRUBlockCell by its inputs, and by what the tanh and the gates took."""

def Gather(
    *,
    params: _Input,
    indices: _Input,
    validate_indices: bool = True,
    name: str | None = None,
) -> _Tensor:
    """The slices of `params` along its first dimension that `indices` name."""

def GatherNd(
    *,
    params: _Input,
    indices: _Input,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The slices of `params` at the index vectors that the last dimension of `indices` holds."""

def GatherV2(
    *,
    params: _Input,
    indices: _Input,
    axis: _Input,
    batch_dims: int = 0,
    name: str | None = None,
) -> _Tensor:
    """The slices of `params` along dimension `axis` that `indices` name."""

class _GenerateBoundingBoxProposalsOutputs(typing.NamedTuple):
    rois: _Tensor
    roi_probabilities: _Tensor

def GenerateBoundingBoxProposals(
    *,
    scores: _Input,
    bbox_deltas: _Input,
    image_info: _Input,
    anchors: _Input,
    nms_threshold: _Input,
    pre_nms_topn: _Input,
    min_size: _Input,
    post_nms_topn: int = 300,
    name: str | None = None,
) -> _GenerateBoundingBoxProposalsOutputs: ...

class _GenerateVocabRemappingOutputs(typing.NamedTuple):
    remapping: _Tensor
    num_present: _Tensor

def GenerateVocabRemapping(
    *,
    new_vocab_file: _Input,
    old_vocab_file: _Input,
    new_vocab_offset: int,
    num_new_vocab: int,
    old_vocab_size: int = -1,
    name: str | None = None,
) -> _GenerateVocabRemappingOutputs:
    """    The number of each word of a new vocabulary, a line of its file each, in an old one; -1 for new words."""

def GeneratorDataset(
    *,
    init_func_other_args: collections.abc.Sequence[_Input],
    next_func_other_args: collections.abc.Sequence[_Input],
    finalize_func_other_args: collections.abc.Sequence[_Input],
    init_func: _Func,
    next_func: _Func,
    finalize_func: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The results of `next_func` for the state that `init_func` gives, until it runs out of range."""

def GetDeadline(
    *,
    name: str | None = None,
) -> _Tensor: ...

def GetElementAtIndex(
    *,
    dataset: _Input,
    index: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> list[_Tensor]:
    """The element of a number; an OutOfRangeError where there is none."""

class _GetMinibatchSplitsWithPhysicalReplicaOutputs(typing.NamedTuple):
    sorted_row_ids: _Tensor
    sorted_col_ids: _Tensor
    sorted_gains: _Tensor
    splits: _Tensor
    id_counts: _Tensor
    max_ids: _Tensor
    max_uniques: _Tensor

def GetMinibatchSplitsWithPhysicalReplica(
    *,
    program_key: _Input,
    row_ids: _Input,
    col_ids: _Input,
    gains: _Input,
    sample_count: int,
    num_replica: int,
    table_vocab_size: int,
    feature_width: int,
    num_sc_per_chip: int,
    table_name: str | bytes,
    mini_batch_splits: str | bytes,
    name: str | None = None,
) -> _GetMinibatchSplitsWithPhysicalReplicaOutputs: ...

class _GetMinibatchesInCsrWithPhysicalReplicaOutputs(typing.NamedTuple):
    row_pointers: _Tensor
    sorted_sample_ids: _Tensor
    sorted_token_ids: _Tensor
    sorted_gains: _Tensor
    row_pointers_unpadded_size: _Tensor
    ids_unpadded_size: _Tensor
    num_minibatches_per_physical_sparse_core: _Tensor

def GetMinibatchesInCsrWithPhysicalReplica(
    *,
    program_key: _Input,
    row_ids: _Input,
    col_ids: _Input,
    gains: _Input,
    splits: _Input,
    id_counts: _Input,
    sample_count: int,
    num_replica: int,
    max_minibatches_per_sc: int,
    max_ids_per_chip_per_sample: int,
    table_vocab_size: int,
    feature_width: int,
    num_sc_per_chip: int,
    table_name: str | bytes,
    mini_batch_in_csr: str | bytes,
    name: str | None = None,
) -> _GetMinibatchesInCsrWithPhysicalReplicaOutputs: ...

def GetOptions(
    *,
    input_dataset: _Input,
    name: str | None = None,
) -> _Tensor:
    """The serialized options of a dataset."""

def GetSessionHandle(
    *,
    value: _Input,
    name: str | None = None,
) -> _Tensor:
    """Has the session keep a tensor; the output is its handle."""

def GetSessionHandleV2(
    *,
    value: _Input,
    name: str | None = None,
) -> _Tensor:
    """Has the session keep a tensor; the output is its handle."""

def GetSessionTensor(
    *,
    handle: _Input,
    dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """The tensor that the session keeps under a handle."""

class _GetStatsFromListOfSparseCoreCooTensorsOutputs(typing.NamedTuple):
    max_ids_per_sparse_core: _Tensor
    max_unique_ids_per_sparse_core: _Tensor

def GetStatsFromListOfSparseCoreCooTensors(
    *,
    row_ids_list: collections.abc.Sequence[_Input],
    col_ids_list: collections.abc.Sequence[_Input],
    gains_list: collections.abc.Sequence[_Input],
    sample_count_list: collections.abc.Sequence[int],
    col_offset_list: collections.abc.Sequence[int],
    num_replica: int,
    table_vocab_size: int,
    feature_width: int,
    num_sc_per_chip: int,
    table_name: str | bytes,
    name: str | None = None,
) -> _GetStatsFromListOfSparseCoreCooTensorsOutputs: ...

def GetTpuTaskId(
    *,
    name: str | None = None,
) -> _Tensor: ...

def GlobalIterId(
    *,
    name: str | None = None,
) -> _Tensor: ...

def GlobalShuffleDataset(
    *,
    input_dataset: _Input,
    seed: _Input,
    seed2: _Input,
    seed_generator: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    reshuffle_each_iteration: bool = True,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements in random order, by random access to a dataset of known size."""

def GraphDefVersion(
    *,
    name: str | None = None,
) -> _Tensor: ...

def Greater(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x > y`."""

def GreaterEqual(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x >= y`."""

def GroupByReducerDataset(
    *,
    input_dataset: _Input,
    key_func_other_arguments: collections.abc.Sequence[_Input],
    init_func_other_arguments: collections.abc.Sequence[_Input],
    reduce_func_other_arguments: collections.abc.Sequence[_Input],
    finalize_func_other_arguments: collections.abc.Sequence[_Input],
    key_func: _Func,
    init_func: _Func,
    reduce_func: _Func,
    finalize_func: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """One element for each key: what `reduce_func` and `finalize_func` make of all elements with it."""

def GroupByWindowDataset(
    *,
    input_dataset: _Input,
    key_func_other_arguments: collections.abc.Sequence[_Input],
    reduce_func_other_arguments: collections.abc.Sequence[_Input],
    window_size_func_other_arguments: collections.abc.Sequence[_Input],
    key_func: _Func,
    reduce_func: _Func,
    window_size_func: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements of the datasets that `reduce_func` makes of windows of elements with one key."""

def GuaranteeConst(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input`, which the caller says is constant."""

def HSVToRGB(
    *,
    images: _Input,
    name: str | None = None,
) -> _Tensor:
    """Red, green and blue of colours whose last dimension is hue, saturation, value, between 0 and 1."""

def HashTable(
    *,
    key_dtype: _Type,
    value_dtype: _Type,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    use_node_name_sharing: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A table that is filled once."""

def HashTableV2(
    *,
    key_dtype: _Type,
    value_dtype: _Type,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    use_node_name_sharing: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A table that is filled once."""

def HistogramFixedWidth(
    *,
    values: _Input,
    value_range: _Input,
    nbins: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """How many `values` lie in each of `nbins` equal parts of `value_range`, [2]."""

def HistogramSummary(
    *,
    tag: _Input,
    values: _Input,
    name: str | None = None,
) -> _Tensor:
    """A summary with a histogram of values."""

def HostConst(
    *,
    value: npt.ArrayLike | opkernel.proto.TensorProto,
    dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """The tensor `value`, in host memory."""

def IFFT(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The inverse of the Fourier transform of the last 1 dimensions."""

def IFFT2D(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The inverse of the Fourier transform of the last 2 dimensions."""

def IFFT3D(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The inverse of the Fourier transform of the last 3 dimensions."""

def IFFTND(
    *,
    input: _Input,
    fft_length: _Input,
    axes: _Input,
    name: str | None = None,
) -> _Tensor: ...

def IRFFT(
    *,
    input: _Input,
    fft_length: _Input,
    Treal: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The inverse of the Fourier transform of the last 1 dimensions of real numbers, without the negative frequencies of the last one."""

def IRFFT2D(
    *,
    input: _Input,
    fft_length: _Input,
    Treal: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The inverse of the Fourier transform of the last 2 dimensions of real numbers, without the negative frequencies of the last one."""

def IRFFT3D(
    *,
    input: _Input,
    fft_length: _Input,
    Treal: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The inverse of the Fourier transform of the last 3 dimensions of real numbers, without the negative frequencies of the last one."""

def IRFFTND(
    *,
    input: _Input,
    fft_length: _Input,
    axes: _Input,
    Treal: _Type = ...,
    name: str | None = None,
) -> _Tensor: ...

def Identity(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input`, unchanged."""

def IdentityN(
    *,
    input: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> list[_Tensor]:
    """The tensors of `input`, unchanged."""

def IdentityReader(
    *,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A reader whose records are the names in the queue themselves."""

def IdentityReaderV2(
    *,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A reader whose records are the names in the queue themselves."""

def If(
    *,
    cond: _Input,
    input: collections.abc.Sequence[_Input],
    Tout: collections.abc.Sequence[_Type],
    then_branch: _Func,
    else_branch: _Func,
    output_shapes: collections.abc.Sequence[_Shape] = ...,
    name: str | None = None,
) -> list[_Tensor]:
    """then_branch(input) if cond holds, else else_branch(input)."""

def Igamma(
    *,
    a: _Input,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The lower regularised incomplete gamma function."""

def IgammaGradA(
    *,
    a: _Input,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The derivative of Igamma by `a`."""

def Igammac(
    *,
    a: _Input,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The upper regularised incomplete gamma function, 1 less the lower one."""

def IgnoreErrorsDataset(
    *,
    input_dataset: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    log_warning: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset` that can be computed."""

def Imag(
    *,
    input: _Input,
    Tout: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The imaginary part of `input`."""

def ImageProjectiveTransformV2(
    *,
    images: _Input,
    transforms: _Input,
    output_shape: _Input,
    interpolation: str | bytes,
    fill_mode: str | bytes = 'CONSTANT',
    name: str | None = None,
) -> _Tensor:
    """Each pixel (x, y) is that of the image at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), where k = c0 x + c1 y + 1. `fill_mode` says what lies beyond the image."""

def ImageProjectiveTransformV3(
    *,
    images: _Input,
    transforms: _Input,
    output_shape: _Input,
    fill_value: _Input,
    interpolation: str | bytes,
    fill_mode: str | bytes = 'CONSTANT',
    name: str | None = None,
) -> _Tensor:
    """ImageProjectiveTransformV2 with the value beyond the image where `fill_mode` is CONSTANT."""

def ImageSummary(
    *,
    tag: _Input,
    tensor: _Input,
    max_images: int = 3,
    bad_color: npt.ArrayLike | opkernel.proto.TensorProto = ...,
    name: str | None = None,
) -> _Tensor:
    """A summary with a PNG file of each image [batch, height, width, channels]."""

def ImmutableConst(
    *,
    dtype: _Type,
    shape: _Shape,
    memory_region_name: str | bytes,
    name: str | None = None,
) -> _Tensor:
    """A tensor whose elements stand in the file `memory_region_name`, as in memory."""

def ImportEvent(
    *,
    writer: _Input,
    event: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Writes a serialized event."""

def InPolymorphicTwice(
    *,
    a: collections.abc.Sequence[_Input],
    b: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def InTopK(
    *,
    predictions: _Input,
    targets: _Input,
    k: int,
    name: str | None = None,
) -> _Tensor:
    """Whether fewer than `k` classes are predicted more strongly than the target, by example."""

def InTopKV2(
    *,
    predictions: _Input,
    targets: _Input,
    k: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether fewer than `k` classes are predicted more strongly than the target, by example."""

def IndexFlatMapDataset(
    *,
    input_dataset: _Input,
    map_func_other_args: collections.abc.Sequence[_Input],
    index_map_func_other_args: collections.abc.Sequence[_Input],
    output_cardinality: _Input,
    map_func: _Func,
    index_map_func: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The rows of what `map_func` gives; `index_map_func` says where the element of a number is."""

def InfeedDequeue(
    *,
    dtype: _Type,
    shape: _Shape,
    name: str | None = None,
) -> _Tensor: ...

def InfeedDequeueTuple(
    *,
    dtypes: collections.abc.Sequence[_Type],
    shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> list[_Tensor]: ...

def InfeedEnqueue(
    *,
    input: _Input,
    shape: _Shape = ...,
    layout: collections.abc.Sequence[int] = ...,
    device_ordinal: int = -1,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def InfeedEnqueuePrelinearizedBuffer(
    *,
    input: _Input,
    device_ordinal: int = -1,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def InfeedEnqueueTuple(
    *,
    inputs: collections.abc.Sequence[_Input],
    shapes: collections.abc.Sequence[_Shape],
    layouts: collections.abc.Sequence[int] = ...,
    device_ordinal: int = -1,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def InitializeTable(
    *,
    table_handle: _Input,
    keys: _Input,
    values: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Fills a table."""

def InitializeTableFromDataset(
    *,
    table_handle: _Input,
    dataset: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Fills a table with the elements of a dataset: pairs of a key and a value."""

def InitializeTableFromTextFile(
    *,
    table_handle: _Input,
    filename: _Input,
    key_index: int,
    value_index: int,
    vocab_size: int = -1,
    delimiter: str | bytes = '\t',
    offset: int = 0,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Fills a table from the lines of a file. The indexes choose the column of keys and values; -2 is the whole line, -1 its number."""

def InitializeTableFromTextFileV2(
    *,
    table_handle: _Input,
    filename: _Input,
    key_index: int,
    value_index: int,
    vocab_size: int = -1,
    delimiter: str | bytes = '\t',
    offset: int = 0,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Fills a table from the lines of a file. The indexes choose the column of keys and values; -2 is the whole line, -1 its number."""

def InitializeTableV2(
    *,
    table_handle: _Input,
    keys: _Input,
    values: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Fills a table."""

def InplaceAdd(
    *,
    x: _Input,
    i: _Input,
    v: _Input,
    name: str | None = None,
) -> _Tensor:
    """`x` plus the rows of `v` at the places `i`."""

def InplaceSub(
    *,
    x: _Input,
    i: _Input,
    v: _Input,
    name: str | None = None,
) -> _Tensor:
    """`x` minus the rows of `v` at the places `i`."""

def InplaceUpdate(
    *,
    x: _Input,
    i: _Input,
    v: _Input,
    name: str | None = None,
) -> _Tensor:
    """`x` with the rows of `v` at the places `i`."""

def Int64Output(
    *,
    name: str | None = None,
) -> _Tensor: ...

def IntAttr(
    *,
    foo: int = 1,
    name: str | None = None,
) -> _Tensor: ...

def IntInput(
    *,
    a: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def IntInputFloatInput(
    *,
    a: _Input,
    b: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def IntInputIntOutput(
    *,
    a: _Input,
    name: str | None = None,
) -> _Tensor: ...

def IntOutput(
    *,
    name: str | None = None,
) -> _Tensor: ...

class _IntOutputFloatOutputOutputs(typing.NamedTuple):
    a: _Tensor
    b: _Tensor

def IntOutputFloatOutput(
    *,
    name: str | None = None,
) -> _IntOutputFloatOutputOutputs: ...

def InterleaveDataset(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    cycle_length: _Input,
    block_length: _Input,
    f: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements of the datasets that `f` gives: `block_length` from each of `cycle_length` in turn."""

def Inv(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """`1 / x`; an older name of Reciprocal."""

def InvGrad(
    *,
    y: _Input,
    dy: _Input,
    name: str | None = None,
) -> _Tensor:
    """`-dy * y * y`; an older name of ReciprocalGrad."""

def Invert(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The bits that are not set in `x`."""

def InvertPermutation(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The permutation that undoes the permutation `x`: `y[x[i]] = i`."""

def IsBoostedTreesEnsembleInitialized(
    *,
    tree_ensemble_handle: _Input,
    name: str | None = None,
) -> _Tensor: ...

def IsBoostedTreesQuantileStreamResourceInitialized(
    *,
    quantile_stream_resource_handle: _Input,
    name: str | None = None,
) -> _Tensor: ...

def IsFinite(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x` is neither infinite nor NaN."""

def IsInf(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x` is infinite."""

def IsNan(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x` is not a number."""

def IsResourceHandleRefCounting(
    *,
    handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether the handle owns its resource, which ends with the last of its handles."""

def IsTPUEmbeddingInitialized(
    *,
    config: str | bytes = '',
    name: str | None = None,
) -> _Tensor: ...

def IsTensorFloat32Enabled(
    *,
    name: str | None = None,
) -> _Tensor: ...

def IsVariableInitialized(
    *,
    ref: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether the tensor was assigned a value."""

class _IsotonicRegressionOutputs(typing.NamedTuple):
    output: _Tensor
    segments: _Tensor

def IsotonicRegression(
    *,
    input: _Input,
    output_dtype: _Type = ...,
    name: str | None = None,
) -> _IsotonicRegressionOutputs:
    """The numbers closest to those of the last dimension that do not rise (least squares); and which of them are the mean of the same segment."""

def Iterator(
    *,
    shared_name: str | bytes,
    container: str | bytes,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The iterator of a name; MakeIterator lets it begin."""

def IteratorFromStringHandle(
    *,
    string_handle: _Input,
    output_types: collections.abc.Sequence[_Type] = ...,
    output_shapes: collections.abc.Sequence[_Shape] = ...,
    name: str | None = None,
) -> _Tensor:
    """The handle that IteratorToStringHandle has made a string of."""

def IteratorFromStringHandleV2(
    *,
    string_handle: _Input,
    output_types: collections.abc.Sequence[_Type] = ...,
    output_shapes: collections.abc.Sequence[_Shape] = ...,
    name: str | None = None,
) -> _Tensor:
    """The handle that IteratorToStringHandle has made a string of."""

def IteratorGetDevice(
    *,
    resource: _Input,
    name: str | None = None,
) -> _Tensor:
    """The name of the device that an iterator is on."""

def IteratorGetModelProto(
    *,
    iterator: _Input,
    name: str | None = None,
) -> _Tensor: ...

def IteratorGetNext(
    *,
    iterator: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> list[_Tensor]:
    """The next element of an iterator; an OutOfRangeError at the end."""

def IteratorGetNextAsOptional(
    *,
    iterator: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The next element of an iterator; an optional without value at the end."""

def IteratorGetNextSync(
    *,
    iterator: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> list[_Tensor]:
    """The next element of an iterator; an OutOfRangeError at the end."""

def IteratorToStringHandle(
    *,
    resource_handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """A string that stands for a handle."""

def IteratorV2(
    *,
    shared_name: str | bytes,
    container: str | bytes,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The iterator of a name; MakeIterator lets it begin."""

def KMC2ChainInitialization(
    *,
    distances: _Input,
    seed: _Input,
    name: str | None = None,
) -> _Tensor:
    """The last state of a Markov chain of points, which draws them by their distances."""

def KernelLabel(
    *,
    name: str | None = None,
) -> _Tensor: ...

def KernelLabelRequired(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor: ...

def KmeansPlusPlusInitialization(
    *,
    points: _Input,
    num_to_sample: _Input,
    seed: _Input,
    num_retries_per_sample: _Input,
    name: str | None = None,
) -> _Tensor:
    """Some of the points, each drawn by its distance from the nearest one before it. Of `num_retries_per_sample + 1` draws the best one counts; a negative number means about log(num_to_sample)."""

def KthOrderStatistic(
    *,
    input: _Input,
    k: int,
    name: str | None = None,
) -> _Tensor: ...

def L2Loss(
    *,
    t: _Input,
    name: str | None = None,
) -> _Tensor:
    """Half the sum of the squares of `t`."""

def LMDBDataset(
    *,
    filenames: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor: ...

def LMDBReader(
    *,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor: ...

def LRN(
    *,
    input: _Input,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
    name: str | None = None,
) -> _Tensor:
    """input / (bias + alpha * sum(input ** 2)) ** beta."""

def LRNGrad(
    *,
    input_grads: _Input,
    input_image: _Input,
    output_image: _Input,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
    name: str | None = None,
) -> _Tensor:
    """The gradient of LRN, from that of its result, its input and its result."""

class _LSTMBlockCellOutputs(typing.NamedTuple):
    i: _Tensor
    cs: _Tensor
    f: _Tensor
    o: _Tensor
    ci: _Tensor
    co: _Tensor
    h: _Tensor

def LSTMBlockCell(
    *,
    x: _Input,
    cs_prev: _Input,
    h_prev: _Input,
    w: _Input,
    wci: _Input,
    wcf: _Input,
    wco: _Input,
    b: _Input,
    forget_bias: float = 1.0,
    cell_clip: float = 3.0,
    use_peephole: bool = False,
    name: str | None = None,
) -> _LSTMBlockCellOutputs:
    """One step of an LSTM."""

class _LSTMBlockCellGradOutputs(typing.NamedTuple):
    cs_prev_grad: _Tensor
    dicfo: _Tensor
    wci_grad: _Tensor
    wcf_grad: _Tensor
    wco_grad: _Tensor

def LSTMBlockCellGrad(
    *,
    x: _Input,
    cs_prev: _Input,
    h_prev: _Input,
    w: _Input,
    wci: _Input,
    wcf: _Input,
    wco: _Input,
    b: _Input,
    i: _Input,
    cs: _Input,
    f: _Input,
    o: _Input,
    ci: _Input,
    co: _Input,
    cs_grad: _Input,
    h_grad: _Input,
    use_peephole: bool,
    name: str | None = None,
) -> _LSTMBlockCellGradOutputs:
    """The gradients of an LSTMBlockCell by its state, by [x, h] w + b, and by the peepholes."""

def LatencyStatsDataset(
    *,
    input_dataset: _Input,
    tag: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`."""

def LeakyRelu(
    *,
    features: _Input,
    alpha: float = 0.2,
    name: str | None = None,
) -> _Tensor:
    """The features, those below 0 times `alpha`."""

def LeakyReluGrad(
    *,
    gradients: _Input,
    features: _Input,
    alpha: float = 0.2,
    name: str | None = None,
) -> _Tensor:
    """The gradient of LeakyRelu, from that of its result and `features`."""

class _LearnedUnigramCandidateSamplerOutputs(typing.NamedTuple):
    sampled_candidates: _Tensor
    true_expected_count: _Tensor
    sampled_expected_count: _Tensor

def LearnedUnigramCandidateSampler(
    *,
    true_classes: _Input,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _LearnedUnigramCandidateSamplerOutputs:
    """Classes as likely as they were true before; and how often each, and each of the true ones, is expected."""

def LeftShift(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The bits of `x` moved up by `y`, which is taken for 0 if negative and for the highest bit's place if beyond."""

def LegacyParallelInterleaveDatasetV2(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    cycle_length: _Input,
    block_length: _Input,
    buffer_output_elements: _Input,
    prefetch_input_elements: _Input,
    f: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    deterministic: str | bytes = 'default',
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements of the datasets that `f` gives: `block_length` from each of `cycle_length` in turn."""

def Less(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x < y`."""

def LessEqual(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x <= y`."""

def Lgamma(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The logarithm of the absolute value of the gamma function of `x`."""

def LinSpace(
    *,
    start: _Input,
    stop: _Input,
    num: _Input,
    name: str | None = None,
) -> _Tensor:
    """`num` numbers from `start` to `stop`, both included, at equal distances."""

def ListDataset(
    *,
    tensors: collections.abc.Sequence[_Input],
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A dataset whose elements are the tensors of `tensors`, in order."""

class _ListDiffOutputs(typing.NamedTuple):
    out: _Tensor
    idx: _Tensor

def ListDiff(
    *,
    x: _Input,
    y: _Input,
    out_idx: _Type = ...,
    name: str | None = None,
) -> _ListDiffOutputs:
    """The elements of the vector `x` that are not in the vector `y`, and where they are."""

def ListInput(
    *,
    a: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def ListOutput(
    *,
    T: collections.abc.Sequence[_Type],
    name: str | None = None,
) -> list[_Tensor]: ...

def ListSnapshotChunksDataset(
    *,
    snapshot_path: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The names of the files of a distributed snapshot."""

def LoadAllTPUEmbeddingParameters(
    *,
    parameters: collections.abc.Sequence[_Input],
    auxiliary1: collections.abc.Sequence[_Input],
    auxiliary2: collections.abc.Sequence[_Input],
    auxiliary3: collections.abc.Sequence[_Input],
    auxiliary4: collections.abc.Sequence[_Input],
    auxiliary5: collections.abc.Sequence[_Input],
    auxiliary6: collections.abc.Sequence[_Input],
    auxiliary7: collections.abc.Sequence[_Input],
    config: str | bytes,
    num_shards: int,
    shard_id: int,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def LoadAndRemapMatrix(
    *,
    ckpt_path: _Input,
    old_tensor_name: _Input,
    row_remapping: _Input,
    col_remapping: _Input,
    initializing_values: _Input,
    num_rows: int,
    num_cols: int,
    max_rows_in_memory: int = -1,
    name: str | None = None,
) -> _Tensor:
    """    A matrix of a checkpoint with its rows and columns in another order."""

def LoadDataset(
    *,
    path: _Input,
    reader_func_other_args: collections.abc.Sequence[_Input],
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    reader_func: _Func,
    compression: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements that SaveDataset has saved."""

def LoadTPUEmbeddingADAMParameters(
    *,
    parameters: _Input,
    momenta: _Input,
    velocities: _Input,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def LoadTPUEmbeddingAdadeltaParameters(
    *,
    parameters: _Input,
    accumulators: _Input,
    updates: _Input,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def LoadTPUEmbeddingAdagradMomentumParameters(
    *,
    parameters: _Input,
    accumulators: _Input,
    momenta: _Input,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def LoadTPUEmbeddingAdagradParameters(
    *,
    parameters: _Input,
    accumulators: _Input,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def LoadTPUEmbeddingCenteredRMSPropParameters(
    *,
    parameters: _Input,
    ms: _Input,
    mom: _Input,
    mg: _Input,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def LoadTPUEmbeddingFTRLParameters(
    *,
    parameters: _Input,
    accumulators: _Input,
    linears: _Input,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def LoadTPUEmbeddingFrequencyEstimatorParameters(
    *,
    parameters: _Input,
    last_hit_step: _Input,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def LoadTPUEmbeddingMDLAdagradLightParameters(
    *,
    parameters: _Input,
    accumulators: _Input,
    weights: _Input,
    benefits: _Input,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def LoadTPUEmbeddingMomentumParameters(
    *,
    parameters: _Input,
    momenta: _Input,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def LoadTPUEmbeddingProximalAdagradParameters(
    *,
    parameters: _Input,
    accumulators: _Input,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def LoadTPUEmbeddingProximalYogiParameters(
    *,
    parameters: _Input,
    v: _Input,
    m: _Input,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def LoadTPUEmbeddingRMSPropParameters(
    *,
    parameters: _Input,
    ms: _Input,
    mom: _Input,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def LoadTPUEmbeddingStochasticGradientDescentParameters(
    *,
    parameters: _Input,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def Log(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The natural logarithm of `x`."""

def Log1p(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The natural logarithm of `1 + x`, exact near 0."""

class _LogMatrixDeterminantOutputs(typing.NamedTuple):
    sign: _Tensor
    log_abs_determinant: _Tensor

def LogMatrixDeterminant(
    *,
    input: _Input,
    name: str | None = None,
) -> _LogMatrixDeterminantOutputs:
    """The signs of determinants, and the logarithms of their absolute values."""

def LogSoftmax(
    *,
    logits: _Input,
    name: str | None = None,
) -> _Tensor:
    """log(softmax(logits)), without taking the exp."""

class _LogUniformCandidateSamplerOutputs(typing.NamedTuple):
    sampled_candidates: _Tensor
    true_expected_count: _Tensor
    sampled_expected_count: _Tensor

def LogUniformCandidateSampler(
    *,
    true_classes: _Input,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _LogUniformCandidateSamplerOutputs:
    """Classes by Zipf's law, frequent ones first; and how often each, and each of the true ones, is expected."""

def LogicalAnd(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether both `x` and `y` are true."""

def LogicalNot(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x` is false."""

def LogicalOr(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x` or `y` or both are true."""

class _LookupTableExportOutputs(typing.NamedTuple):
    keys: _Tensor
    values: _Tensor

def LookupTableExport(
    *,
    table_handle: _Input,
    Tkeys: _Type,
    Tvalues: _Type,
    name: str | None = None,
) -> _LookupTableExportOutputs:
    """All keys and values."""

class _LookupTableExportV2Outputs(typing.NamedTuple):
    keys: _Tensor
    values: _Tensor

def LookupTableExportV2(
    *,
    table_handle: _Input,
    Tkeys: _Type,
    Tvalues: _Type,
    name: str | None = None,
) -> _LookupTableExportV2Outputs:
    """All keys and values."""

def LookupTableFind(
    *,
    table_handle: _Input,
    keys: _Input,
    default_value: _Input,
    name: str | None = None,
) -> _Tensor:
    """The values of keys; `default_value` for those that the table lacks."""

def LookupTableFindV2(
    *,
    table_handle: _Input,
    keys: _Input,
    default_value: _Input,
    name: str | None = None,
) -> _Tensor:
    """The values of keys; `default_value` for those that the table lacks."""

def LookupTableImport(
    *,
    table_handle: _Input,
    keys: _Input,
    values: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Replaces all keys and values."""

def LookupTableImportV2(
    *,
    table_handle: _Input,
    keys: _Input,
    values: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Replaces all keys and values."""

def LookupTableInsert(
    *,
    table_handle: _Input,
    keys: _Input,
    values: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Sets the values of keys."""

def LookupTableInsertV2(
    *,
    table_handle: _Input,
    keys: _Input,
    values: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Sets the values of keys."""

def LookupTableRemoveV2(
    *,
    table_handle: _Input,
    keys: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Takes keys out."""

def LookupTableSize(
    *,
    table_handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of keys."""

def LookupTableSizeV2(
    *,
    table_handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of keys."""

def LoopCond(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """Passes on the condition that its loop goes by."""

def LowerBound(
    *,
    sorted_inputs: _Input,
    values: _Input,
    out_type: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """For each value the first place in its row of `sorted_inputs` where it is not too large."""

class _LuOutputs(typing.NamedTuple):
    lu: _Tensor
    p: _Tensor

def Lu(
    *,
    input: _Input,
    output_idx_type: _Type = ...,
    name: str | None = None,
) -> _LuOutputs:
    """The LU decomposition of matrices, both factors in one, and the permutation of the rows."""

def MakeIterator(
    *,
    dataset: _Input,
    iterator: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Lets an iterator begin a pass over a dataset."""

def MakeUnique(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor: ...

def MakeWeakResourceHandle(
    *,
    handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """A handle of the same names, which keeps no resource alive: one that its handles own is not found by it."""

def MapAndBatchDataset(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    batch_size: _Input,
    num_parallel_calls: _Input,
    drop_remainder: _Input,
    f: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    preserve_cardinality: bool = False,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Batches of the results of `f` for each element."""

def MapClear(
    *,
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Takes out everything."""

def MapDataset(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    f: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    use_inter_op_parallelism: bool = True,
    preserve_cardinality: bool = False,
    force_synchronous: bool = False,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The results of `f` for each element."""

def MapDefun(
    *,
    arguments: collections.abc.Sequence[_Input],
    captured_inputs: collections.abc.Sequence[_Input],
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    f: _Func,
    max_intra_op_parallelism: int = 1,
    name: str | None = None,
) -> list[_Tensor]:
    """    Calls `f` with each row of `arguments`, and stacks the results."""

def MapIncompleteSize(
    *,
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The number of keys that lack tensors."""

def MapPeek(
    *,
    key: _Input,
    indices: _Input,
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> list[_Tensor]:
    """Tensors of a key, which stay; waits until the key has all."""

def MapSize(
    *,
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The number of complete keys."""

def MapStage(
    *,
    key: _Input,
    indices: _Input,
    values: collections.abc.Sequence[_Input],
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Puts tensors under a key, as its tensors of these indices; waits while it is full."""

def MapUnstage(
    *,
    key: _Input,
    indices: _Input,
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> list[_Tensor]:
    """Takes tensors of a key out; waits until the key has all."""

class _MapUnstageNoKeyOutputs(typing.NamedTuple):
    key: _Tensor
    values: list[_Tensor]

def MapUnstageNoKey(
    *,
    indices: _Input,
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _MapUnstageNoKeyOutputs:
    """Takes tensors of any key out; of an ordered map, of the smallest."""

def MatMul(
    *,
    a: _Input,
    b: _Input,
    transpose_a: bool = False,
    transpose_b: bool = False,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Multiply the matrix `a` by the matrix `b`, each transposed first where its flag says so."""

def MatchingFiles(
    *,
    pattern: _Input,
    name: str | None = None,
) -> _Tensor:
    """The names of the files that match patterns (`*`, `?`, `[...]`), sorted; one for each pattern that it matches."""

def MatchingFilesDataset(
    *,
    patterns: _Input,
    name: str | None = None,
) -> _Tensor:
    """The names of the files that match patterns: those of each pattern in order."""

def MatrixBandPart(
    *,
    input: _Input,
    num_lower: _Input,
    num_upper: _Input,
    name: str | None = None,
) -> _Tensor:
    """Matrices with zeros outside of a band around the diagonal; negative: no limit."""

def MatrixDeterminant(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The determinants of matrices."""

def MatrixDiag(
    *,
    diagonal: _Input,
    name: str | None = None,
) -> _Tensor:
    """Matrices with the given diagonals, and with the padding value elsewhere."""

def MatrixDiagPart(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The diagonals of matrices, stacked, and filled up with the padding value."""

def MatrixDiagPartV2(
    *,
    input: _Input,
    k: _Input,
    padding_value: _Input,
    name: str | None = None,
) -> _Tensor:
    """The diagonals of matrices, stacked, and filled up with the padding value."""

def MatrixDiagPartV3(
    *,
    input: _Input,
    k: _Input,
    padding_value: _Input,
    align: typing.Literal['LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'] = 'RIGHT_LEFT',
    name: str | None = None,
) -> _Tensor:
    """The diagonals of matrices, stacked, and filled up with the padding value."""

def MatrixDiagV2(
    *,
    diagonal: _Input,
    k: _Input,
    num_rows: _Input,
    num_cols: _Input,
    padding_value: _Input,
    name: str | None = None,
) -> _Tensor:
    """Matrices with the given diagonals, and with the padding value elsewhere."""

def MatrixDiagV3(
    *,
    diagonal: _Input,
    k: _Input,
    num_rows: _Input,
    num_cols: _Input,
    padding_value: _Input,
    align: typing.Literal['LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'] = 'RIGHT_LEFT',
    name: str | None = None,
) -> _Tensor:
    """Matrices with the given diagonals, and with the padding value elsewhere."""

def MatrixExponential(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The exponentials of matrices."""

def MatrixInverse(
    *,
    input: _Input,
    adjoint: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The inverses of matrices, or of their adjoints."""

def MatrixLogarithm(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The principal logarithms of matrices."""

def MatrixSetDiag(
    *,
    input: _Input,
    diagonal: _Input,
    name: str | None = None,
) -> _Tensor:
    """The matrices `input` with other diagonals."""

def MatrixSetDiagV2(
    *,
    input: _Input,
    diagonal: _Input,
    k: _Input,
    name: str | None = None,
) -> _Tensor:
    """The matrices `input` with other diagonals."""

def MatrixSetDiagV3(
    *,
    input: _Input,
    diagonal: _Input,
    k: _Input,
    align: typing.Literal['LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'] = 'RIGHT_LEFT',
    name: str | None = None,
) -> _Tensor:
    """The matrices `input` with other diagonals."""

def MatrixSolve(
    *,
    matrix: _Input,
    rhs: _Input,
    adjoint: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The x with `matrix @ x == rhs`, or the same of the adjoints of the matrices."""

def MatrixSolveLs(
    *,
    matrix: _Input,
    rhs: _Input,
    l2_regularizer: _Input,
    fast: bool = True,
    name: str | None = None,
) -> _Tensor:
    """The x of the least sum of squares of `matrix @ x - rhs`, or the least x of many. `fast` solves the normal equations, with `l2_regularizer` added to their diagonals; without it, the rank may be any."""

def MatrixSquareRoot(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The principal square roots of matrices; NaN for real matrices whose roots are not real."""

def MatrixTriangularSolve(
    *,
    matrix: _Input,
    rhs: _Input,
    lower: bool = True,
    adjoint: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The x with `matrix @ x == rhs`, for triangular matrices or their adjoints."""

def Max(
    *,
    input: _Input,
    axis: _Input,
    keep_dims: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The largest element of `input` over the axes `reduction_indices`, negative ones from the end."""

def MaxIntraOpParallelismDataset(
    *,
    input_dataset: _Input,
    max_intra_op_parallelism: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`; a kernel may spread its work over so many threads."""

def MaxPool(
    *,
    input: _Input,
    ksize: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID', 'EXPLICIT'],
    explicit_paddings: collections.abc.Sequence[int] = ...,
    data_format: typing.Literal['NHWC', 'NCHW', 'NCHW_VECT_C'] = 'NHWC',
    name: str | None = None,
) -> _Tensor:
    """The maxima over windows of images, over rows and columns or over channels."""

def MaxPool3D(
    *,
    input: _Input,
    ksize: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    data_format: typing.Literal['NDHWC', 'NCDHW'] = 'NDHWC',
    name: str | None = None,
) -> _Tensor:
    """The maxima over windows of volumes."""

def MaxPool3DGrad(
    *,
    orig_input: _Input,
    orig_output: _Input,
    grad: _Input,
    ksize: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    data_format: typing.Literal['NDHWC', 'NCDHW'] = 'NDHWC',
    name: str | None = None,
) -> _Tensor:
    """The gradient of MaxPool3D by its input: each element equal to the maximum gets all of it."""

def MaxPool3DGradGrad(
    *,
    orig_input: _Input,
    orig_output: _Input,
    grad: _Input,
    ksize: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    data_format: typing.Literal['NDHWC', 'NCDHW'] = 'NDHWC',
    name: str | None = None,
) -> _Tensor:
    """The gradient of MaxPool3DGrad by its gradient: for each window, that of its largest element."""

def MaxPoolGrad(
    *,
    orig_input: _Input,
    orig_output: _Input,
    grad: _Input,
    ksize: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID', 'EXPLICIT'],
    explicit_paddings: collections.abc.Sequence[int] = ...,
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    name: str | None = None,
) -> _Tensor:
    """The gradient of MaxPool by its input: the largest element of each window gets all of it."""

def MaxPoolGradGrad(
    *,
    orig_input: _Input,
    orig_output: _Input,
    grad: _Input,
    ksize: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    name: str | None = None,
) -> _Tensor:
    """The gradient of MaxPoolGrad by its gradient: for each window, that of its largest element."""

def MaxPoolGradGradV2(
    *,
    orig_input: _Input,
    orig_output: _Input,
    grad: _Input,
    ksize: _Input,
    strides: _Input,
    padding: typing.Literal['SAME', 'VALID'],
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    name: str | None = None,
) -> _Tensor:
    """MaxPoolGradGrad, whose windows are inputs."""

def MaxPoolGradGradWithArgmax(
    *,
    input: _Input,
    grad: _Input,
    argmax: _Input,
    ksize: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The gradient of MaxPoolGradWithArgmax by its gradient."""

def MaxPoolGradV2(
    *,
    orig_input: _Input,
    orig_output: _Input,
    grad: _Input,
    ksize: _Input,
    strides: _Input,
    padding: typing.Literal['SAME', 'VALID'],
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    name: str | None = None,
) -> _Tensor:
    """MaxPoolGrad, whose windows are inputs."""

def MaxPoolGradWithArgmax(
    *,
    input: _Input,
    grad: _Input,
    argmax: _Input,
    ksize: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The gradient of MaxPoolWithArgmax by its input, given where the maxima are."""

def MaxPoolV2(
    *,
    input: _Input,
    ksize: _Input,
    strides: _Input,
    padding: typing.Literal['SAME', 'VALID'],
    data_format: typing.Literal['NHWC', 'NCHW', 'NCHW_VECT_C'] = 'NHWC',
    name: str | None = None,
) -> _Tensor:
    """MaxPool, whose windows are inputs."""

class _MaxPoolWithArgmaxOutputs(typing.NamedTuple):
    output: _Tensor
    argmax: _Tensor

def MaxPoolWithArgmax(
    *,
    input: _Input,
    ksize: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    Targmax: _Type = ...,
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> _MaxPoolWithArgmaxOutputs:
    """The maxima over windows of images, and where they are: the index in the flat image, or in all images."""

def Maximum(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The larger of `x` and `y`; NaN if either is."""

def Mean(
    *,
    input: _Input,
    axis: _Input,
    keep_dims: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The mean of `input` over the axes `reduction_indices`, negative ones from the end."""

class _MergeOutputs(typing.NamedTuple):
    output: _Tensor
    value_index: _Tensor

def Merge(
    *,
    inputs: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> _MergeOutputs:
    """Passes on whichever input is alive, and its index."""

def MergeDedupData(
    *,
    integer_tensor: _Input,
    float_tensor: _Input,
    tuple_mask: str | bytes,
    config: str | bytes = '',
    name: str | None = None,
) -> _Tensor: ...

def MergeSummary(
    *,
    inputs: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> _Tensor:
    """A summary with the values of all inputs, whose tags must differ."""

def MergeV2Checkpoints(
    *,
    checkpoint_prefixes: _Input,
    destination_prefix: _Input,
    delete_old_dirs: bool = True,
    allow_missing_files: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Makes one checkpoint of several, whose files it takes over."""

def Mfcc(
    *,
    spectrogram: _Input,
    sample_rate: _Input,
    upper_frequency_limit: float = 4000.0,
    lower_frequency_limit: float = 20.0,
    filterbank_channel_count: int = 40,
    dct_coefficient_count: int = 13,
    name: str | None = None,
) -> _Tensor:
    """The cosine transform of the logarithms of strengths in channels that are even on the Mel scale."""

def Min(
    *,
    input: _Input,
    axis: _Input,
    keep_dims: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The smallest element of `input` over the axes `reduction_indices`, negative ones from the end."""

def Minimum(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The smaller of `x` and `y`; NaN if either is."""

def MirrorPad(
    *,
    input: _Input,
    paddings: _Input,
    mode: typing.Literal['REFLECT', 'SYMMETRIC'],
    name: str | None = None,
) -> _Tensor:
    """`input` with its mirror image around it, `paddings[i]` in dimension i."""

def MirrorPadGrad(
    *,
    input: _Input,
    paddings: _Input,
    mode: typing.Literal['REFLECT', 'SYMMETRIC'],
    name: str | None = None,
) -> _Tensor:
    """The gradient of MirrorPad: the image is added to what it is an image of."""

class _MixedStructOutputs(typing.NamedTuple):
    a: list[_Tensor]
    b: _Tensor

def MixedStruct(
    *,
    n_a: int,
    name: str | None = None,
) -> _MixedStructOutputs: ...

def MlirPassthroughOp(
    *,
    inputs: collections.abc.Sequence[_Input],
    mlir_module: str | bytes,
    Toutputs: collections.abc.Sequence[_Type],
    name: str | None = None,
) -> list[_Tensor]: ...

def Mod(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The remainder of `x / y` with the quotient rounded towards 0; it has the sign of `x`."""

def ModelDataset(
    *,
    input_dataset: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    algorithm: int = 0,
    cpu_budget: int = 0,
    ram_budget: int = 0,
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`."""

def Mul(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The product `x * y`."""

def MulNoNan(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The product `x * y`; 0 where `y` is 0, whatever `x` is."""

def MultiDeviceIterator(
    *,
    devices: collections.abc.Sequence[str | bytes],
    shared_name: str | bytes,
    container: str | bytes,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The iterator for several devices of a name."""

def MultiDeviceIteratorFromStringHandle(
    *,
    string_handle: _Input,
    output_types: collections.abc.Sequence[_Type] = ...,
    output_shapes: collections.abc.Sequence[_Shape] = ...,
    name: str | None = None,
) -> _Tensor:
    """The handle that a string stands for."""

def MultiDeviceIteratorGetNextFromShard(
    *,
    multi_device_iterator: _Input,
    shard_num: _Input,
    incarnation_id: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> list[_Tensor]:
    """The next element for a device; an OutOfRangeError at the end."""

def MultiDeviceIteratorInit(
    *,
    dataset: _Input,
    multi_device_iterator: _Input,
    max_buffer_size: _Input,
    name: str | None = None,
) -> _Tensor:
    """Lets an iterator begin a pass; the number of the pass."""

def MultiDeviceIteratorToStringHandle(
    *,
    multi_device_iterator: _Input,
    name: str | None = None,
) -> _Tensor:
    """A string that stands for a handle."""

def Multinomial(
    *,
    logits: _Input,
    num_samples: _Input,
    seed: int = 0,
    seed2: int = 0,
    output_dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """`num_samples` classes for each row of logits, each as likely as its exponential."""

def MutableDenseHashTable(
    *,
    empty_key: _Input,
    value_dtype: _Type,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    use_node_name_sharing: bool = False,
    value_shape: _Shape = ...,
    initial_num_buckets: int = 131072,
    max_load_factor: float = 0.8,
    name: str | None = None,
) -> _Tensor:
    """A table that changes, kept in arrays; two keys mark what is not in use."""

def MutableDenseHashTableV2(
    *,
    empty_key: _Input,
    deleted_key: _Input,
    value_dtype: _Type,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    use_node_name_sharing: bool = False,
    value_shape: _Shape = ...,
    initial_num_buckets: int = 131072,
    max_load_factor: float = 0.8,
    name: str | None = None,
) -> _Tensor:
    """A table that changes, kept in arrays; two keys mark what is not in use."""

def MutableHashTable(
    *,
    key_dtype: _Type,
    value_dtype: _Type,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    use_node_name_sharing: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A table that changes."""

def MutableHashTableOfTensors(
    *,
    key_dtype: _Type,
    value_dtype: _Type,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    use_node_name_sharing: bool = False,
    value_shape: _Shape = ...,
    name: str | None = None,
) -> _Tensor:
    """A table that changes, of vectors."""

def MutableHashTableOfTensorsV2(
    *,
    key_dtype: _Type,
    value_dtype: _Type,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    use_node_name_sharing: bool = False,
    value_shape: _Shape = ...,
    name: str | None = None,
) -> _Tensor:
    """A table that changes, of vectors."""

def MutableHashTableV2(
    *,
    key_dtype: _Type,
    value_dtype: _Type,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    use_node_name_sharing: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A table that changes."""

def MutexLock(
    *,
    mutex: _Input,
    name: str | None = None,
) -> _Tensor:
    """Locks the mutex until nobody has the output any more; waits while it is locked."""

def MutexV2(
    *,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A handle to the mutex of that name and container."""

def NInPolymorphicTwice(
    *,
    a: collections.abc.Sequence[_Input],
    b: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def NInTwice(
    *,
    a: collections.abc.Sequence[_Input],
    b: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def NInTwoTypeVariables(
    *,
    a: collections.abc.Sequence[_Input],
    b: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def NIntsIn(
    *,
    a: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def NIntsOut(
    *,
    N: int,
    name: str | None = None,
) -> list[_Tensor]: ...

def NIntsOutDefault(
    *,
    N: int = 3,
    name: str | None = None,
) -> list[_Tensor]: ...

def NPolymorphicIn(
    *,
    a: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def NPolymorphicOut(
    *,
    T: _Type,
    N: int,
    name: str | None = None,
) -> list[_Tensor]: ...

def NPolymorphicOutDefault(
    *,
    T: _Type = ...,
    N: int = 2,
    name: str | None = None,
) -> list[_Tensor]: ...

def NPolymorphicRestrictIn(
    *,
    a: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def NPolymorphicRestrictOut(
    *,
    T: _Type,
    N: int,
    name: str | None = None,
) -> list[_Tensor]: ...

def NcclAllReduce(
    *,
    input: _Input,
    reduction: typing.Literal['min', 'max', 'prod', 'sum'],
    num_devices: int,
    shared_name: str | bytes,
    name: str | None = None,
) -> _Tensor:
    """The inputs of all `num_devices` nodes of one `shared_name`, reduced to one."""

def NcclBroadcast(
    *,
    input: _Input,
    shape: _Shape,
    name: str | None = None,
) -> _Tensor: ...

def NcclReduce(
    *,
    input: collections.abc.Sequence[_Input],
    reduction: typing.Literal['min', 'max', 'prod', 'sum'],
    name: str | None = None,
) -> _Tensor: ...

def Ndtri(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The quantile of the standard normal distribution for probability `x`."""

class _NearestNeighborsOutputs(typing.NamedTuple):
    nearest_center_indices: _Tensor
    nearest_center_distances: _Tensor

def NearestNeighbors(
    *,
    points: _Input,
    centers: _Input,
    k: _Input,
    name: str | None = None,
) -> _NearestNeighborsOutputs:
    """The `k` nearest centers of each point, the nearest first, and the squares of their distances."""

def Neg(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The negative of `x`."""

def NegTrain(
    *,
    w_in: _Input,
    w_out: _Input,
    examples: _Input,
    labels: _Input,
    lr: _Input,
    vocab_count: collections.abc.Sequence[int],
    num_negative_samples: int,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def NextAfter(
    *,
    x1: _Input,
    x2: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of the type that follows `x1` in the direction of `x2`."""

def NextIteration(
    *,
    data: _Input,
    name: str | None = None,
) -> _Tensor:
    """Passes `data` on to the next turn of its loop."""

def NoOp(
    *,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Does nothing; others may wait for it."""

def NonDeterministicInts(
    *,
    shape: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """Integers that the system chooses."""

def NonMaxSuppression(
    *,
    boxes: _Input,
    scores: _Input,
    max_output_size: _Input,
    iou_threshold: float = 0.5,
    name: str | None = None,
) -> _Tensor:
    """Indices of boxes, best score first, none of which overlaps a better one too much."""

def NonMaxSuppressionV2(
    *,
    boxes: _Input,
    scores: _Input,
    max_output_size: _Input,
    iou_threshold: _Input,
    name: str | None = None,
) -> _Tensor:
    """Indices of boxes, best score first, none of which overlaps a better one too much."""

def NonMaxSuppressionV3(
    *,
    boxes: _Input,
    scores: _Input,
    max_output_size: _Input,
    iou_threshold: _Input,
    score_threshold: _Input,
    name: str | None = None,
) -> _Tensor:
    """Indices of boxes, best score first, none of which overlaps a better one too much."""

class _NonMaxSuppressionV4Outputs(typing.NamedTuple):
    selected_indices: _Tensor
    valid_outputs: _Tensor

def NonMaxSuppressionV4(
    *,
    boxes: _Input,
    scores: _Input,
    max_output_size: _Input,
    iou_threshold: _Input,
    score_threshold: _Input,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
) -> _NonMaxSuppressionV4Outputs:
    """Indices of boxes, best score first, none of which overlaps a better one too much."""

class _NonMaxSuppressionV5Outputs(typing.NamedTuple):
    selected_indices: _Tensor
    selected_scores: _Tensor
    valid_outputs: _Tensor

def NonMaxSuppressionV5(
    *,
    boxes: _Input,
    scores: _Input,
    max_output_size: _Input,
    iou_threshold: _Input,
    score_threshold: _Input,
    soft_nms_sigma: _Input,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
) -> _NonMaxSuppressionV5Outputs:
    """Indices of boxes, best score first, none of which overlaps a better one too much."""

def NonMaxSuppressionWithOverlaps(
    *,
    overlaps: _Input,
    scores: _Input,
    max_output_size: _Input,
    overlap_threshold: _Input,
    score_threshold: _Input,
    name: str | None = None,
) -> _Tensor:
    """Indices of boxes, best score first, none of which overlaps a better one too much."""

def NonSerializableDataset(
    *,
    input_dataset: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`."""

def NotEqual(
    *,
    x: _Input,
    y: _Input,
    incompatible_shape_error: bool = True,
    name: str | None = None,
) -> _Tensor:
    """Whether `x != y`."""

def NthElement(
    *,
    input: _Input,
    n: _Input,
    reverse: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The `n`-th smallest element of each row, counted from 0; with `reverse` the n-th largest."""

def Old(
    *,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def OneHot(
    *,
    indices: _Input,
    depth: _Input,
    on_value: _Input,
    off_value: _Input,
    axis: int = -1,
    name: str | None = None,
) -> _Tensor:
    """`off_value` everywhere but at the places along `axis` that `indices` name: `on_value`."""

def OneShotIterator(
    *,
    dataset_factory: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """An iterator over the dataset that a function gives."""

def OnesLike(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """Ones of the shape and type of `x`."""

def OpWithDefaultAttr(
    *,
    default_float: float = 123.0,
    name: str | None = None,
) -> _Tensor: ...

def OpWithFutureDefaultAttr(
    *,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def OptimizeDataset(
    *,
    input_dataset: _Input,
    optimizations: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    optimization_configs: collections.abc.Sequence[str | bytes] = ...,
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`."""

def OptimizeDatasetV2(
    *,
    input_dataset: _Input,
    optimizations_enabled: _Input,
    optimizations_disabled: _Input,
    optimizations_default: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    optimization_configs: collections.abc.Sequence[str | bytes] = ...,
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`."""

def OptionalFromValue(
    *,
    components: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> _Tensor:
    """An optional that has tensors for its value."""

def OptionalGetValue(
    *,
    optional: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> list[_Tensor]:
    """The tensors of an optional; an error if it has none."""

def OptionalHasValue(
    *,
    optional: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether an optional has a value."""

def OptionalNone(
    *,
    name: str | None = None,
) -> _Tensor:
    """An optional without value."""

def OptionsDataset(
    *,
    input_dataset: _Input,
    serialized_options: str | bytes,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`, with options."""

def OrderedMapClear(
    *,
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Takes out everything."""

def OrderedMapIncompleteSize(
    *,
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The number of keys that lack tensors."""

def OrderedMapPeek(
    *,
    key: _Input,
    indices: _Input,
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> list[_Tensor]:
    """Tensors of a key, which stay; waits until the key has all."""

def OrderedMapSize(
    *,
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The number of complete keys."""

def OrderedMapStage(
    *,
    key: _Input,
    indices: _Input,
    values: collections.abc.Sequence[_Input],
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Puts tensors under a key, as its tensors of these indices; waits while it is full."""

def OrderedMapUnstage(
    *,
    key: _Input,
    indices: _Input,
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> list[_Tensor]:
    """Takes tensors of a key out; waits until the key has all."""

class _OrderedMapUnstageNoKeyOutputs(typing.NamedTuple):
    key: _Tensor
    values: list[_Tensor]

def OrderedMapUnstageNoKey(
    *,
    indices: _Input,
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _OrderedMapUnstageNoKeyOutputs:
    """Takes tensors of any key out; of an ordered map, of the smallest."""

def OutT(
    *,
    T: _Type,
    name: str | None = None,
) -> _Tensor: ...

def OutTypeList(
    *,
    T: collections.abc.Sequence[_Type],
    name: str | None = None,
) -> list[_Tensor]: ...

def OutTypeListRestrict(
    *,
    t: collections.abc.Sequence[_Type],
    name: str | None = None,
) -> list[_Tensor]: ...

def OutfeedDequeue(
    *,
    dtype: _Type,
    shape: _Shape,
    device_ordinal: int = -1,
    name: str | None = None,
) -> _Tensor: ...

def OutfeedDequeueTuple(
    *,
    dtypes: collections.abc.Sequence[_Type],
    shapes: collections.abc.Sequence[_Shape],
    device_ordinal: int = -1,
    name: str | None = None,
) -> list[_Tensor]: ...

def OutfeedDequeueTupleV2(
    *,
    device_ordinal: _Input,
    dtypes: collections.abc.Sequence[_Type],
    shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> list[_Tensor]: ...

def OutfeedDequeueV2(
    *,
    device_ordinal: _Input,
    dtype: _Type,
    shape: _Shape,
    name: str | None = None,
) -> _Tensor: ...

def OutfeedEnqueue(
    *,
    input: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def OutfeedEnqueueTuple(
    *,
    inputs: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def Pack(
    *,
    values: collections.abc.Sequence[_Input],
    axis: int = 0,
    name: str | None = None,
) -> _Tensor:
    """`values` stacked along a new dimension `axis`."""

def Pad(
    *,
    input: _Input,
    paddings: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input` with `paddings[i]` zeros before and after it in dimension i."""

def PadV2(
    *,
    input: _Input,
    paddings: _Input,
    constant_values: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input` with `constant_values`, `paddings[i]` before and after it in dimension i."""

def PaddedBatchDataset(
    *,
    input_dataset: _Input,
    batch_size: _Input,
    padded_shapes: collections.abc.Sequence[_Input],
    padding_values: collections.abc.Sequence[_Input],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Batches of `batch_size` elements, which are padded to one shape."""

def PaddedBatchDatasetV2(
    *,
    input_dataset: _Input,
    batch_size: _Input,
    padded_shapes: collections.abc.Sequence[_Input],
    padding_values: collections.abc.Sequence[_Input],
    drop_remainder: _Input,
    output_shapes: collections.abc.Sequence[_Shape],
    parallel_copy: bool = False,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Batches of `batch_size` elements, which are padded to one shape."""

def PaddingFIFOQueue(
    *,
    component_types: collections.abc.Sequence[_Type],
    shapes: collections.abc.Sequence[_Shape] = ...,
    capacity: int = -1,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A FIFOQueue whose elements vary in size; batches are filled up with zeros."""

def PaddingFIFOQueueV2(
    *,
    component_types: collections.abc.Sequence[_Type],
    shapes: collections.abc.Sequence[_Shape] = ...,
    capacity: int = -1,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A FIFOQueue whose elements vary in size; batches are filled up with zeros."""

def ParallelBatchDataset(
    *,
    input_dataset: _Input,
    batch_size: _Input,
    num_parallel_calls: _Input,
    drop_remainder: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    parallel_copy: bool = False,
    deterministic: str | bytes = 'default',
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Batches of `batch_size` elements; the last one may be smaller."""

def ParallelConcat(
    *,
    values: collections.abc.Sequence[_Input],
    shape: _Shape,
    name: str | None = None,
) -> _Tensor:
    """The rows `values`, one after the other. Their shapes must be known when the graph is built."""

def ParallelDynamicStitch(
    *,
    indices: collections.abc.Sequence[_Input],
    data: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> _Tensor:
    """A tensor whose row `indices[i][j]` is row j of `data[i]`; of several such the last."""

def ParallelFilterDataset(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    num_parallel_calls: _Input,
    predicate: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    deterministic: str | bytes = 'default',
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements that `predicate` holds for."""

def ParallelInterleaveDataset(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    cycle_length: _Input,
    block_length: _Input,
    sloppy: _Input,
    buffer_output_elements: _Input,
    prefetch_input_elements: _Input,
    f: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements of the datasets that `f` gives: `block_length` from each of `cycle_length` in turn."""

def ParallelInterleaveDatasetV2(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    cycle_length: _Input,
    block_length: _Input,
    num_parallel_calls: _Input,
    f: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    sloppy: bool = False,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements of the datasets that `f` gives: `block_length` from each of `cycle_length` in turn."""

def ParallelInterleaveDatasetV3(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    cycle_length: _Input,
    block_length: _Input,
    num_parallel_calls: _Input,
    f: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    deterministic: str | bytes = 'default',
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements of the datasets that `f` gives: `block_length` from each of `cycle_length` in turn."""

def ParallelInterleaveDatasetV4(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    cycle_length: _Input,
    block_length: _Input,
    buffer_output_elements: _Input,
    prefetch_input_elements: _Input,
    num_parallel_calls: _Input,
    f: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    deterministic: str | bytes = 'default',
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements of the datasets that `f` gives: `block_length` from each of `cycle_length` in turn."""

def ParallelMapDataset(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    num_parallel_calls: _Input,
    f: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    use_inter_op_parallelism: bool = True,
    sloppy: bool = False,
    preserve_cardinality: bool = False,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The results of `f` for each element."""

def ParallelMapDatasetV2(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    num_parallel_calls: _Input,
    f: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    use_inter_op_parallelism: bool = True,
    deterministic: str | bytes = 'default',
    preserve_cardinality: bool = False,
    use_unbounded_threadpool: bool = False,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The results of `f` for each element."""

def ParameterizedTruncatedNormal(
    *,
    shape: _Input,
    means: _Input,
    stdevs: _Input,
    minvals: _Input,
    maxvals: _Input,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _Tensor:
    """Normal numbers between bounds; parameters are scalars, or vectors for the first dimension."""

class _ParseExampleOutputs(typing.NamedTuple):
    sparse_indices: list[_Tensor]
    sparse_values: list[_Tensor]
    sparse_shapes: list[_Tensor]
    dense_values: list[_Tensor]

def ParseExample(
    *,
    serialized: _Input,
    names: _Input,
    sparse_keys: collections.abc.Sequence[_Input],
    dense_keys: collections.abc.Sequence[_Input],
    dense_defaults: collections.abc.Sequence[_Input],
    sparse_types: collections.abc.Sequence[_Type],
    dense_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _ParseExampleOutputs:
    """The features of serialized Example messages, as sparse and dense tensors."""

def ParseExampleDataset(
    *,
    input_dataset: _Input,
    num_parallel_calls: _Input,
    dense_defaults: collections.abc.Sequence[_Input],
    sparse_keys: collections.abc.Sequence[str | bytes],
    dense_keys: collections.abc.Sequence[str | bytes],
    sparse_types: collections.abc.Sequence[_Type],
    dense_shapes: collections.abc.Sequence[_Shape],
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    sloppy: bool = False,
    ragged_keys: collections.abc.Sequence[str | bytes] = ...,
    ragged_value_types: collections.abc.Sequence[_Type] = ...,
    ragged_split_types: collections.abc.Sequence[_Type] = ...,
    name: str | None = None,
) -> _Tensor:
    """The features of the Example messages of each element, in the order of their keys."""

def ParseExampleDatasetV2(
    *,
    input_dataset: _Input,
    num_parallel_calls: _Input,
    dense_defaults: collections.abc.Sequence[_Input],
    sparse_keys: collections.abc.Sequence[str | bytes],
    dense_keys: collections.abc.Sequence[str | bytes],
    sparse_types: collections.abc.Sequence[_Type],
    dense_shapes: collections.abc.Sequence[_Shape],
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    deterministic: str | bytes = 'default',
    ragged_keys: collections.abc.Sequence[str | bytes] = ...,
    ragged_value_types: collections.abc.Sequence[_Type] = ...,
    ragged_split_types: collections.abc.Sequence[_Type] = ...,
    name: str | None = None,
) -> _Tensor:
    """The features of the Example messages of each element, in the order of their keys."""

class _ParseExampleV2Outputs(typing.NamedTuple):
    sparse_indices: list[_Tensor]
    sparse_values: list[_Tensor]
    sparse_shapes: list[_Tensor]
    dense_values: list[_Tensor]
    ragged_values: list[_Tensor]
    ragged_row_splits: list[_Tensor]

def ParseExampleV2(
    *,
    serialized: _Input,
    names: _Input,
    sparse_keys: _Input,
    dense_keys: _Input,
    ragged_keys: _Input,
    dense_defaults: collections.abc.Sequence[_Input],
    num_sparse: int,
    sparse_types: collections.abc.Sequence[_Type],
    ragged_value_types: collections.abc.Sequence[_Type],
    ragged_split_types: collections.abc.Sequence[_Type],
    dense_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _ParseExampleV2Outputs:
    """The features of serialized Example messages, as sparse, dense and ragged tensors."""

class _ParseSequenceExampleOutputs(typing.NamedTuple):
    context_sparse_indices: list[_Tensor]
    context_sparse_values: list[_Tensor]
    context_sparse_shapes: list[_Tensor]
    context_dense_values: list[_Tensor]
    feature_list_sparse_indices: list[_Tensor]
    feature_list_sparse_values: list[_Tensor]
    feature_list_sparse_shapes: list[_Tensor]
    feature_list_dense_values: list[_Tensor]
    feature_list_dense_lengths: list[_Tensor]

def ParseSequenceExample(
    *,
    serialized: _Input,
    debug_name: _Input,
    context_dense_defaults: collections.abc.Sequence[_Input],
    feature_list_dense_missing_assumed_empty: collections.abc.Sequence[str | bytes],
    context_sparse_keys: collections.abc.Sequence[str | bytes],
    context_dense_keys: collections.abc.Sequence[str | bytes],
    feature_list_sparse_keys: collections.abc.Sequence[str | bytes],
    feature_list_dense_keys: collections.abc.Sequence[str | bytes],
    Ncontext_sparse: int = 0,
    Ncontext_dense: int = 0,
    Nfeature_list_sparse: int = 0,
    Nfeature_list_dense: int = 0,
    context_sparse_types: collections.abc.Sequence[_Type] = ...,
    feature_list_dense_types: collections.abc.Sequence[_Type] = ...,
    context_dense_shapes: collections.abc.Sequence[_Shape] = ...,
    feature_list_sparse_types: collections.abc.Sequence[_Type] = ...,
    feature_list_dense_shapes: collections.abc.Sequence[_Shape] = ...,
    name: str | None = None,
) -> _ParseSequenceExampleOutputs:
    """The context and the feature lists of serialized SequenceExample messages."""

class _ParseSequenceExampleV2Outputs(typing.NamedTuple):
    context_sparse_indices: list[_Tensor]
    context_sparse_values: list[_Tensor]
    context_sparse_shapes: list[_Tensor]
    context_dense_values: list[_Tensor]
    context_ragged_values: list[_Tensor]
    context_ragged_row_splits: list[_Tensor]
    feature_list_sparse_indices: list[_Tensor]
    feature_list_sparse_values: list[_Tensor]
    feature_list_sparse_shapes: list[_Tensor]
    feature_list_dense_values: list[_Tensor]
    feature_list_dense_lengths: list[_Tensor]
    feature_list_ragged_values: list[_Tensor]
    feature_list_ragged_outer_splits: list[_Tensor]
    feature_list_ragged_inner_splits: list[_Tensor]

def ParseSequenceExampleV2(
    *,
    serialized: _Input,
    debug_name: _Input,
    context_sparse_keys: _Input,
    context_dense_keys: _Input,
    context_ragged_keys: _Input,
    feature_list_sparse_keys: _Input,
    feature_list_dense_keys: _Input,
    feature_list_ragged_keys: _Input,
    feature_list_dense_missing_assumed_empty: _Input,
    context_dense_defaults: collections.abc.Sequence[_Input],
    Ncontext_sparse: int = 0,
    context_sparse_types: collections.abc.Sequence[_Type] = ...,
    context_ragged_value_types: collections.abc.Sequence[_Type] = ...,
    context_ragged_split_types: collections.abc.Sequence[_Type] = ...,
    context_dense_shapes: collections.abc.Sequence[_Shape] = ...,
    Nfeature_list_sparse: int = 0,
    Nfeature_list_dense: int = 0,
    feature_list_dense_types: collections.abc.Sequence[_Type] = ...,
    feature_list_sparse_types: collections.abc.Sequence[_Type] = ...,
    feature_list_ragged_value_types: collections.abc.Sequence[_Type] = ...,
    feature_list_ragged_split_types: collections.abc.Sequence[_Type] = ...,
    feature_list_dense_shapes: collections.abc.Sequence[_Shape] = ...,
    name: str | None = None,
) -> _ParseSequenceExampleV2Outputs:
    """The context and the feature lists of SequenceExample messages, ragged ones too."""

class _ParseSingleExampleOutputs(typing.NamedTuple):
    sparse_indices: list[_Tensor]
    sparse_values: list[_Tensor]
    sparse_shapes: list[_Tensor]
    dense_values: list[_Tensor]

def ParseSingleExample(
    *,
    serialized: _Input,
    dense_defaults: collections.abc.Sequence[_Input],
    num_sparse: int,
    sparse_keys: collections.abc.Sequence[str | bytes],
    dense_keys: collections.abc.Sequence[str | bytes],
    sparse_types: collections.abc.Sequence[_Type],
    dense_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _ParseSingleExampleOutputs:
    """The features of one serialized Example message."""

class _ParseSingleSequenceExampleOutputs(typing.NamedTuple):
    context_sparse_indices: list[_Tensor]
    context_sparse_values: list[_Tensor]
    context_sparse_shapes: list[_Tensor]
    context_dense_values: list[_Tensor]
    feature_list_sparse_indices: list[_Tensor]
    feature_list_sparse_values: list[_Tensor]
    feature_list_sparse_shapes: list[_Tensor]
    feature_list_dense_values: list[_Tensor]

def ParseSingleSequenceExample(
    *,
    serialized: _Input,
    feature_list_dense_missing_assumed_empty: _Input,
    context_sparse_keys: collections.abc.Sequence[_Input],
    context_dense_keys: collections.abc.Sequence[_Input],
    feature_list_sparse_keys: collections.abc.Sequence[_Input],
    feature_list_dense_keys: collections.abc.Sequence[_Input],
    context_dense_defaults: collections.abc.Sequence[_Input],
    debug_name: _Input,
    context_sparse_types: collections.abc.Sequence[_Type] = ...,
    feature_list_dense_types: collections.abc.Sequence[_Type] = ...,
    context_dense_shapes: collections.abc.Sequence[_Shape] = ...,
    feature_list_sparse_types: collections.abc.Sequence[_Type] = ...,
    feature_list_dense_shapes: collections.abc.Sequence[_Shape] = ...,
    name: str | None = None,
) -> _ParseSingleSequenceExampleOutputs:
    """The context and the feature lists of one serialized SequenceExample message."""

def ParseTensor(
    *,
    serialized: _Input,
    out_type: _Type,
    name: str | None = None,
) -> _Tensor:
    """The tensor in a serialized TensorProto."""

def PartitionedCall(
    *,
    args: collections.abc.Sequence[_Input],
    Tout: collections.abc.Sequence[_Type],
    f: _Func,
    config: str | bytes = '',
    config_proto: str | bytes = '',
    executor_type: str | bytes = '',
    name: str | None = None,
) -> list[_Tensor]:
    """f(args)."""

def Placeholder(
    *,
    dtype: _Type,
    shape: _Shape = None,
    name: str | None = None,
) -> _Tensor:
    """A tensor that the caller feeds; computing it is an error."""

def PlaceholderV2(
    *,
    dtype: _Type,
    shape: _Shape,
    name: str | None = None,
) -> _Tensor:
    """A tensor of the given shape that the caller feeds; computing it is an error."""

def PlaceholderWithDefault(
    *,
    input: _Input,
    shape: _Shape,
    name: str | None = None,
) -> _Tensor:
    """`input`, unless the caller feeds another tensor in its place."""

def Polygamma(
    *,
    a: _Input,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """Derivative number `a` of digamma at `x`."""

def Polymorphic(
    *,
    a: _Input,
    name: str | None = None,
) -> _Tensor: ...

def PolymorphicDefaultOut(
    *,
    T: _Type = ...,
    name: str | None = None,
) -> _Tensor: ...

def PolymorphicOut(
    *,
    T: _Type,
    name: str | None = None,
) -> _Tensor: ...

def PopulationCount(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of bits set in `x`."""

def Pow(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """`x ** y`; integers to a negative power are an error."""

def PrefetchDataset(
    *,
    input_dataset: _Input,
    buffer_size: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    slack_period: int = 0,
    legacy_autotune: bool = True,
    buffer_size_min: int = 0,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`; up to `buffer_size` may be computed ahead."""

def Prelinearize(
    *,
    input: _Input,
    shape: _Shape = ...,
    layout: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor: ...

def PrelinearizeTuple(
    *,
    inputs: collections.abc.Sequence[_Input],
    shapes: collections.abc.Sequence[_Shape],
    layouts: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor: ...

def PreventGradient(
    *,
    input: _Input,
    message: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """`input`; asking for its gradient is an error."""

def Print(
    *,
    input: _Input,
    data: collections.abc.Sequence[_Input],
    message: str | bytes = '',
    first_n: int = -1,
    summarize: int = 3,
    name: str | None = None,
) -> _Tensor:
    """`input`; prints `message` and `summarize` values of each of `data`, `first_n` times."""

def PrintV2(
    *,
    input: _Input,
    output_stream: str | bytes = 'stderr',
    end: str | bytes = '\n',
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Prints a string, and `end`, to `output_stream`."""

def PriorityQueue(
    *,
    shapes: collections.abc.Sequence[_Shape],
    component_types: collections.abc.Sequence[_Type] = ...,
    capacity: int = -1,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A queue that the element of the smallest priority, an int64, leaves first."""

def PriorityQueueV2(
    *,
    shapes: collections.abc.Sequence[_Shape],
    component_types: collections.abc.Sequence[_Type] = ...,
    capacity: int = -1,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A queue that the element of the smallest priority, an int64, leaves first."""

def PrivateThreadPoolDataset(
    *,
    input_dataset: _Input,
    num_threads: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`, for whose computation there may be threads of its own."""

def Prod(
    *,
    input: _Input,
    axis: _Input,
    keep_dims: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The product of `input` over the axes `reduction_indices`, negative ones from the end."""

def PyFunc(
    *,
    input: collections.abc.Sequence[_Input],
    token: str | bytes,
    Tout: collections.abc.Sequence[_Type],
    name: str | None = None,
) -> list[_Tensor]:
    """What the function of the program gives that `token` stands for."""

def PyFuncStateless(
    *,
    input: collections.abc.Sequence[_Input],
    token: str | bytes,
    Tout: collections.abc.Sequence[_Type],
    name: str | None = None,
) -> list[_Tensor]:
    """What the function of the program gives that `token` stands for."""

class _QrOutputs(typing.NamedTuple):
    q: _Tensor
    r: _Tensor

def Qr(
    *,
    input: _Input,
    full_matrices: bool = False,
    name: str | None = None,
) -> _QrOutputs:
    """`input == q @ r`, with orthonormal columns of q and an upper triangle r."""

def QuantizeAndDequantize(
    *,
    input: _Input,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    input_min: float = 0.0,
    input_max: float = 0.0,
    name: str | None = None,
) -> _Tensor:
    """QuantizeAndDequantizeV2 with the range in attrs, for graphs of old versions."""

def QuantizeAndDequantizeV2(
    *,
    input: _Input,
    input_min: _Input,
    input_max: _Input,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: typing.Literal['HALF_TO_EVEN', 'HALF_UP'] = 'HALF_TO_EVEN',
    narrow_range: bool = False,
    axis: int = -1,
    name: str | None = None,
) -> _Tensor:
    """Round to the values that integers of `num_bits` bits can stand for."""

def QuantizeAndDequantizeV3(
    *,
    input: _Input,
    input_min: _Input,
    input_max: _Input,
    num_bits: _Input,
    signed_input: bool = True,
    range_given: bool = True,
    narrow_range: bool = False,
    axis: int = -1,
    name: str | None = None,
) -> _Tensor:
    """Round to the values that integers of `num_bits` bits can stand for."""

def QuantizeAndDequantizeV4(
    *,
    input: _Input,
    input_min: _Input,
    input_max: _Input,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: typing.Literal['HALF_TO_EVEN', 'HALF_UP'] = 'HALF_TO_EVEN',
    narrow_range: bool = False,
    axis: int = -1,
    name: str | None = None,
) -> _Tensor:
    """Round to the values that integers of `num_bits` bits can stand for."""

class _QuantizeAndDequantizeV4GradOutputs(typing.NamedTuple):
    input_backprop: _Tensor
    input_min_backprop: _Tensor
    input_max_backprop: _Tensor

def QuantizeAndDequantizeV4Grad(
    *,
    gradients: _Input,
    input: _Input,
    input_min: _Input,
    input_max: _Input,
    axis: int = -1,
    name: str | None = None,
) -> _QuantizeAndDequantizeV4GradOutputs:
    """The gradient where `input` is in its range, 0 elsewhere and for the range."""

class _QuantizeDownAndShrinkRangeOutputs(typing.NamedTuple):
    output: _Tensor
    output_min: _Tensor
    output_max: _Tensor

def QuantizeDownAndShrinkRange(
    *,
    input: _Input,
    input_min: _Input,
    input_max: _Input,
    out_type: _Type,
    name: str | None = None,
) -> _QuantizeDownAndShrinkRangeOutputs:
    """Requantize, into the range that the values have."""

class _QuantizeV2Outputs(typing.NamedTuple):
    output: _Tensor
    output_min: _Tensor
    output_max: _Tensor

def QuantizeV2(
    *,
    input: _Input,
    min_range: _Input,
    max_range: _Input,
    T: _Type,
    mode: typing.Literal['MIN_COMBINED', 'MIN_FIRST', 'SCALED'] = 'MIN_COMBINED',
    round_mode: typing.Literal['HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'] = 'HALF_AWAY_FROM_ZERO',
    narrow_range: bool = False,
    axis: int = -1,
    ensure_minimum_range: float = 0.01,
    name: str | None = None,
) -> _QuantizeV2Outputs:
    """The integers that stand for floats, and the range that they stand in."""

class _QuantizedAddOutputs(typing.NamedTuple):
    z: _Tensor
    min_z: _Tensor
    max_z: _Tensor

def QuantizedAdd(
    *,
    x: _Input,
    y: _Input,
    min_x: _Input,
    max_x: _Input,
    min_y: _Input,
    max_y: _Input,
    Toutput: _Type = ...,
    name: str | None = None,
) -> _QuantizedAddOutputs:
    """x + y, in a range around 0 that has room for many sums."""

class _QuantizedAvgPoolOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedAvgPool(
    *,
    input: _Input,
    min_input: _Input,
    max_input: _Input,
    ksize: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    name: str | None = None,
) -> _QuantizedAvgPoolOutputs:
    """AvgPool of integers, rounded towards 0, and their range unchanged."""

class _QuantizedBatchNormWithGlobalNormalizationOutputs(typing.NamedTuple):
    result: _Tensor
    result_min: _Tensor
    result_max: _Tensor

def QuantizedBatchNormWithGlobalNormalization(
    *,
    t: _Input,
    t_min: _Input,
    t_max: _Input,
    m: _Input,
    m_min: _Input,
    m_max: _Input,
    v: _Input,
    v_min: _Input,
    v_max: _Input,
    beta: _Input,
    beta_min: _Input,
    beta_max: _Input,
    gamma: _Input,
    gamma_min: _Input,
    gamma_max: _Input,
    out_type: _Type,
    variance_epsilon: float,
    scale_after_normalization: bool,
    name: str | None = None,
) -> _QuantizedBatchNormWithGlobalNormalizationOutputs:
    """(t - m) / sqrt(v + variance_epsilon) * gamma + beta, in the range of +- 2**20."""

class _QuantizedBiasAddOutputs(typing.NamedTuple):
    output: _Tensor
    min_out: _Tensor
    max_out: _Tensor

def QuantizedBiasAdd(
    *,
    input: _Input,
    bias: _Input,
    min_input: _Input,
    max_input: _Input,
    min_bias: _Input,
    max_bias: _Input,
    out_type: _Type,
    name: str | None = None,
) -> _QuantizedBiasAddOutputs:
    """`bias` added to the last dimension of `input`, in a range that has room for many sums."""

class _QuantizedConcatOutputs(typing.NamedTuple):
    output: _Tensor
    output_min: _Tensor
    output_max: _Tensor

def QuantizedConcat(
    *,
    concat_dim: _Input,
    values: collections.abc.Sequence[_Input],
    input_mins: collections.abc.Sequence[_Input],
    input_maxes: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> _QuantizedConcatOutputs:
    """Concat; all integers become those of one range, which holds the ranges of all `values`."""

class _QuantizedConcatV2Outputs(typing.NamedTuple):
    output: _Tensor
    output_min: _Tensor
    output_max: _Tensor

def QuantizedConcatV2(
    *,
    values: collections.abc.Sequence[_Input],
    axis: _Input,
    input_mins: collections.abc.Sequence[_Input],
    input_maxes: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> _QuantizedConcatV2Outputs:
    """QuantizedConcat with the axis behind; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedConv2DOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedConv2D(
    *,
    input: _Input,
    filter: _Input,
    min_input: _Input,
    max_input: _Input,
    min_filter: _Input,
    max_filter: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    out_type: _Type = ...,
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _QuantizedConv2DOutputs:
    """The convolution of images of integers with filters, and the range that it stands in."""

class _QuantizedConv2DAndReluOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedConv2DAndRelu(
    *,
    input: _Input,
    filter: _Input,
    min_input: _Input,
    max_input: _Input,
    min_filter: _Input,
    max_filter: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    out_type: _Type = ...,
    dilations: collections.abc.Sequence[int] = ...,
    padding_list: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _QuantizedConv2DAndReluOutputs:
    """A convolution of integers, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedConv2DAndReluAndRequantizeOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedConv2DAndReluAndRequantize(
    *,
    input: _Input,
    filter: _Input,
    min_input: _Input,
    max_input: _Input,
    min_filter: _Input,
    max_filter: _Input,
    min_freezed_output: _Input,
    max_freezed_output: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    out_type: _Type = ...,
    dilations: collections.abc.Sequence[int] = ...,
    padding_list: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _QuantizedConv2DAndReluAndRequantizeOutputs:
    """A convolution of integers, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedConv2DAndRequantizeOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedConv2DAndRequantize(
    *,
    input: _Input,
    filter: _Input,
    min_input: _Input,
    max_input: _Input,
    min_filter: _Input,
    max_filter: _Input,
    min_freezed_output: _Input,
    max_freezed_output: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    out_type: _Type = ...,
    dilations: collections.abc.Sequence[int] = ...,
    padding_list: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _QuantizedConv2DAndRequantizeOutputs:
    """A convolution of integers, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedConv2DPerChannelOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedConv2DPerChannel(
    *,
    input: _Input,
    filter: _Input,
    min_input: _Input,
    max_input: _Input,
    min_filter: _Input,
    max_filter: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    out_type: _Type = ...,
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _QuantizedConv2DPerChannelOutputs:
    """A convolution of integers, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedConv2DWithBiasOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedConv2DWithBias(
    *,
    input: _Input,
    filter: _Input,
    bias: _Input,
    min_input: _Input,
    max_input: _Input,
    min_filter: _Input,
    max_filter: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    out_type: _Type = ...,
    dilations: collections.abc.Sequence[int] = ...,
    padding_list: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _QuantizedConv2DWithBiasOutputs:
    """A convolution of integers, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedConv2DWithBiasAndReluOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedConv2DWithBiasAndRelu(
    *,
    input: _Input,
    filter: _Input,
    bias: _Input,
    min_input: _Input,
    max_input: _Input,
    min_filter: _Input,
    max_filter: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    out_type: _Type = ...,
    dilations: collections.abc.Sequence[int] = ...,
    padding_list: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _QuantizedConv2DWithBiasAndReluOutputs:
    """A convolution of integers, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedConv2DWithBiasAndReluAndRequantizeOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedConv2DWithBiasAndReluAndRequantize(
    *,
    input: _Input,
    filter: _Input,
    bias: _Input,
    min_input: _Input,
    max_input: _Input,
    min_filter: _Input,
    max_filter: _Input,
    min_freezed_output: _Input,
    max_freezed_output: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    out_type: _Type = ...,
    dilations: collections.abc.Sequence[int] = ...,
    padding_list: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _QuantizedConv2DWithBiasAndReluAndRequantizeOutputs:
    """A convolution of integers, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedConv2DWithBiasAndRequantizeOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedConv2DWithBiasAndRequantize(
    *,
    input: _Input,
    filter: _Input,
    bias: _Input,
    min_input: _Input,
    max_input: _Input,
    min_filter: _Input,
    max_filter: _Input,
    min_freezed_output: _Input,
    max_freezed_output: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    out_type: _Type = ...,
    dilations: collections.abc.Sequence[int] = ...,
    padding_list: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _QuantizedConv2DWithBiasAndRequantizeOutputs:
    """A convolution of integers, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedConv2DWithBiasSignedSumAndReluAndRequantizeOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedConv2DWithBiasSignedSumAndReluAndRequantize(
    *,
    input: _Input,
    filter: _Input,
    bias: _Input,
    min_input: _Input,
    max_input: _Input,
    min_filter: _Input,
    max_filter: _Input,
    min_freezed_output: _Input,
    max_freezed_output: _Input,
    summand: _Input,
    min_summand: _Input,
    max_summand: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    out_type: _Type = ...,
    dilations: collections.abc.Sequence[int] = ...,
    padding_list: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _QuantizedConv2DWithBiasSignedSumAndReluAndRequantizeOutputs:
    """A convolution of integers, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedConv2DWithBiasSumAndReluOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedConv2DWithBiasSumAndRelu(
    *,
    input: _Input,
    filter: _Input,
    bias: _Input,
    min_input: _Input,
    max_input: _Input,
    min_filter: _Input,
    max_filter: _Input,
    summand: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    out_type: _Type = ...,
    dilations: collections.abc.Sequence[int] = ...,
    padding_list: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _QuantizedConv2DWithBiasSumAndReluOutputs:
    """A convolution of integers, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedConv2DWithBiasSumAndReluAndRequantizeOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedConv2DWithBiasSumAndReluAndRequantize(
    *,
    input: _Input,
    filter: _Input,
    bias: _Input,
    min_input: _Input,
    max_input: _Input,
    min_filter: _Input,
    max_filter: _Input,
    min_freezed_output: _Input,
    max_freezed_output: _Input,
    summand: _Input,
    min_summand: _Input,
    max_summand: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    out_type: _Type = ...,
    dilations: collections.abc.Sequence[int] = ...,
    padding_list: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _QuantizedConv2DWithBiasSumAndReluAndRequantizeOutputs:
    """A convolution of integers, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedDepthwiseConv2DOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedDepthwiseConv2D(
    *,
    input: _Input,
    filter: _Input,
    min_input: _Input,
    max_input: _Input,
    min_filter: _Input,
    max_filter: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    out_type: _Type = ...,
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _QuantizedDepthwiseConv2DOutputs:
    """A convolution of integers, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedDepthwiseConv2DWithBiasOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedDepthwiseConv2DWithBias(
    *,
    input: _Input,
    filter: _Input,
    bias: _Input,
    min_input: _Input,
    max_input: _Input,
    min_filter: _Input,
    max_filter: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    out_type: _Type = ...,
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _QuantizedDepthwiseConv2DWithBiasOutputs:
    """A convolution of integers, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedDepthwiseConv2DWithBiasAndReluOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedDepthwiseConv2DWithBiasAndRelu(
    *,
    input: _Input,
    filter: _Input,
    bias: _Input,
    min_input: _Input,
    max_input: _Input,
    min_filter: _Input,
    max_filter: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    out_type: _Type = ...,
    dilations: collections.abc.Sequence[int] = ...,
    padding_list: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _QuantizedDepthwiseConv2DWithBiasAndReluOutputs:
    """A convolution of integers, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedDepthwiseConv2DWithBiasAndReluAndRequantizeOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize(
    *,
    input: _Input,
    filter: _Input,
    bias: _Input,
    min_input: _Input,
    max_input: _Input,
    min_filter: _Input,
    max_filter: _Input,
    min_freezed_output: _Input,
    max_freezed_output: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    out_type: _Type = ...,
    dilations: collections.abc.Sequence[int] = ...,
    padding_list: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _QuantizedDepthwiseConv2DWithBiasAndReluAndRequantizeOutputs:
    """A convolution of integers, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedInstanceNormOutputs(typing.NamedTuple):
    y: _Tensor
    y_min: _Tensor
    y_max: _Tensor

def QuantizedInstanceNorm(
    *,
    x: _Input,
    x_min: _Input,
    x_max: _Input,
    output_range_given: bool = False,
    given_y_min: float = 0.0,
    given_y_max: float = 0.0,
    variance_epsilon: float = 1e-05,
    min_separation: float = 0.001,
    name: str | None = None,
) -> _QuantizedInstanceNormOutputs:
    """Each channel of each image with mean 0 and variance 1."""

class _QuantizedMatMulOutputs(typing.NamedTuple):
    out: _Tensor
    min_out: _Tensor
    max_out: _Tensor

def QuantizedMatMul(
    *,
    a: _Input,
    b: _Input,
    min_a: _Input,
    max_a: _Input,
    min_b: _Input,
    max_b: _Input,
    Toutput: _Type = ...,
    transpose_a: bool = False,
    transpose_b: bool = False,
    Tactivation: _Type = ...,
    name: str | None = None,
) -> _QuantizedMatMulOutputs:
    """The product of two matrices of integers, and the range that it stands in."""

class _QuantizedMatMulWithBiasOutputs(typing.NamedTuple):
    out: _Tensor
    min_out: _Tensor
    max_out: _Tensor

def QuantizedMatMulWithBias(
    *,
    a: _Input,
    b: _Input,
    bias: _Input,
    min_a: _Input,
    max_a: _Input,
    min_b: _Input,
    max_b: _Input,
    Toutput: _Type = ...,
    transpose_a: bool = False,
    transpose_b: bool = False,
    input_quant_mode: typing.Literal['MIN_FIRST', 'SCALED'] = 'MIN_FIRST',
    name: str | None = None,
) -> _QuantizedMatMulWithBiasOutputs:
    """A product of matrices of integers and a bias, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

def QuantizedMatMulWithBiasAndDequantize(
    *,
    a: _Input,
    b: _Input,
    bias: _Input,
    min_a: _Input,
    max_a: _Input,
    min_b: _Input,
    max_b: _Input,
    min_freezed_output: _Input,
    max_freezed_output: _Input,
    Toutput: _Type,
    transpose_a: bool = False,
    transpose_b: bool = False,
    input_quant_mode: typing.Literal['MIN_FIRST', 'SCALED'] = 'MIN_FIRST',
    name: str | None = None,
) -> _Tensor:
    """A product of matrices of integers and a bias, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedMatMulWithBiasAndReluOutputs(typing.NamedTuple):
    out: _Tensor
    min_out: _Tensor
    max_out: _Tensor

def QuantizedMatMulWithBiasAndRelu(
    *,
    a: _Input,
    b: _Input,
    bias: _Input,
    min_a: _Input,
    max_a: _Input,
    min_b: _Input,
    max_b: _Input,
    Toutput: _Type = ...,
    transpose_a: bool = False,
    transpose_b: bool = False,
    input_quant_mode: typing.Literal['MIN_FIRST', 'SCALED'] = 'MIN_FIRST',
    name: str | None = None,
) -> _QuantizedMatMulWithBiasAndReluOutputs:
    """A product of matrices of integers and a bias, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedMatMulWithBiasAndReluAndRequantizeOutputs(typing.NamedTuple):
    out: _Tensor
    min_out: _Tensor
    max_out: _Tensor

def QuantizedMatMulWithBiasAndReluAndRequantize(
    *,
    a: _Input,
    b: _Input,
    bias: _Input,
    min_a: _Input,
    max_a: _Input,
    min_b: _Input,
    max_b: _Input,
    min_freezed_output: _Input,
    max_freezed_output: _Input,
    Toutput: _Type = ...,
    transpose_a: bool = False,
    transpose_b: bool = False,
    input_quant_mode: typing.Literal['MIN_FIRST', 'SCALED'] = 'MIN_FIRST',
    name: str | None = None,
) -> _QuantizedMatMulWithBiasAndReluAndRequantizeOutputs:
    """A product of matrices of integers and a bias, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedMatMulWithBiasAndRequantizeOutputs(typing.NamedTuple):
    out: _Tensor
    min_out: _Tensor
    max_out: _Tensor

def QuantizedMatMulWithBiasAndRequantize(
    *,
    a: _Input,
    b: _Input,
    bias: _Input,
    min_a: _Input,
    max_a: _Input,
    min_b: _Input,
    max_b: _Input,
    min_freezed_output: _Input,
    max_freezed_output: _Input,
    Toutput: _Type = ...,
    transpose_a: bool = False,
    transpose_b: bool = False,
    input_quant_mode: typing.Literal['MIN_FIRST', 'SCALED'] = 'MIN_FIRST',
    name: str | None = None,
) -> _QuantizedMatMulWithBiasAndRequantizeOutputs:
    """A product of matrices of integers and a bias, with what its name adds; no output is set, as TensorFlow computes it by oneDNN alone."""

class _QuantizedMaxPoolOutputs(typing.NamedTuple):
    output: _Tensor
    min_output: _Tensor
    max_output: _Tensor

def QuantizedMaxPool(
    *,
    input: _Input,
    min_input: _Input,
    max_input: _Input,
    ksize: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID'],
    name: str | None = None,
) -> _QuantizedMaxPoolOutputs:
    """MaxPool of integers, and their range unchanged."""

class _QuantizedMulOutputs(typing.NamedTuple):
    z: _Tensor
    min_z: _Tensor
    max_z: _Tensor

def QuantizedMul(
    *,
    x: _Input,
    y: _Input,
    min_x: _Input,
    max_x: _Input,
    min_y: _Input,
    max_y: _Input,
    Toutput: _Type = ...,
    name: str | None = None,
) -> _QuantizedMulOutputs:
    """x * y, in the range that the product of both has."""

class _QuantizedReluOutputs(typing.NamedTuple):
    activations: _Tensor
    min_activations: _Tensor
    max_activations: _Tensor

def QuantizedRelu(
    *,
    features: _Input,
    min_features: _Input,
    max_features: _Input,
    out_type: _Type = ...,
    name: str | None = None,
) -> _QuantizedReluOutputs:
    """max(features, 0), in integers of the range [min_features, max_features]."""

class _QuantizedRelu6Outputs(typing.NamedTuple):
    activations: _Tensor
    min_activations: _Tensor
    max_activations: _Tensor

def QuantizedRelu6(
    *,
    features: _Input,
    min_features: _Input,
    max_features: _Input,
    out_type: _Type = ...,
    name: str | None = None,
) -> _QuantizedRelu6Outputs:
    """min(max(features, 0), 6), in integers of the range [min_features, max_features]."""

class _QuantizedReluXOutputs(typing.NamedTuple):
    activations: _Tensor
    min_activations: _Tensor
    max_activations: _Tensor

def QuantizedReluX(
    *,
    features: _Input,
    max_value: _Input,
    min_features: _Input,
    max_features: _Input,
    out_type: _Type = ...,
    name: str | None = None,
) -> _QuantizedReluXOutputs: ...

class _QuantizedReshapeOutputs(typing.NamedTuple):
    output: _Tensor
    output_min: _Tensor
    output_max: _Tensor

def QuantizedReshape(
    *,
    tensor: _Input,
    shape: _Input,
    input_min: _Input,
    input_max: _Input,
    name: str | None = None,
) -> _QuantizedReshapeOutputs:
    """Reshape, and the range unchanged."""

class _QuantizedResizeBilinearOutputs(typing.NamedTuple):
    resized_images: _Tensor
    out_min: _Tensor
    out_max: _Tensor

def QuantizedResizeBilinear(
    *,
    images: _Input,
    size: _Input,
    min: _Input,
    max: _Input,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
    name: str | None = None,
) -> _QuantizedResizeBilinearOutputs:
    """ResizeBilinear of images of integers, and their range unchanged."""

def QueueClose(
    *,
    handle: _Input,
    cancel_pending_enqueues: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Lets no more elements into the queue after those that wait."""

def QueueCloseV2(
    *,
    handle: _Input,
    cancel_pending_enqueues: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Lets no more elements into the queue after those that wait."""

def QueueDequeue(
    *,
    handle: _Input,
    component_types: collections.abc.Sequence[_Type],
    timeout_ms: int = -1,
    name: str | None = None,
) -> list[_Tensor]:
    """Takes an element out of the queue; waits until there is one."""

def QueueDequeueMany(
    *,
    handle: _Input,
    n: _Input,
    component_types: collections.abc.Sequence[_Type],
    timeout_ms: int = -1,
    name: str | None = None,
) -> list[_Tensor]:
    """Takes `n` elements out of the queue, as a batch; waits until there are as many."""

def QueueDequeueManyV2(
    *,
    handle: _Input,
    n: _Input,
    component_types: collections.abc.Sequence[_Type],
    timeout_ms: int = -1,
    name: str | None = None,
) -> list[_Tensor]:
    """Takes `n` elements out of the queue, as a batch; waits until there are as many."""

def QueueDequeueUpTo(
    *,
    handle: _Input,
    n: _Input,
    component_types: collections.abc.Sequence[_Type],
    timeout_ms: int = -1,
    name: str | None = None,
) -> list[_Tensor]:
    """As QueueDequeueMany; a queue that is closed gives what it has, if it has anything."""

def QueueDequeueUpToV2(
    *,
    handle: _Input,
    n: _Input,
    component_types: collections.abc.Sequence[_Type],
    timeout_ms: int = -1,
    name: str | None = None,
) -> list[_Tensor]:
    """As QueueDequeueMany; a queue that is closed gives what it has, if it has anything."""

def QueueDequeueV2(
    *,
    handle: _Input,
    component_types: collections.abc.Sequence[_Type],
    timeout_ms: int = -1,
    name: str | None = None,
) -> list[_Tensor]:
    """Takes an element out of the queue; waits until there is one."""

def QueueEnqueue(
    *,
    handle: _Input,
    components: collections.abc.Sequence[_Input],
    timeout_ms: int = -1,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Puts an element into the queue; waits while it is full."""

def QueueEnqueueMany(
    *,
    handle: _Input,
    components: collections.abc.Sequence[_Input],
    timeout_ms: int = -1,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Puts the rows of the components into the queue; waits while it is full."""

def QueueEnqueueManyV2(
    *,
    handle: _Input,
    components: collections.abc.Sequence[_Input],
    timeout_ms: int = -1,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Puts the rows of the components into the queue; waits while it is full."""

def QueueEnqueueV2(
    *,
    handle: _Input,
    components: collections.abc.Sequence[_Input],
    timeout_ms: int = -1,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Puts an element into the queue; waits while it is full."""

def QueueIsClosed(
    *,
    handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether the queue is closed."""

def QueueIsClosedV2(
    *,
    handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether the queue is closed."""

def QueueSize(
    *,
    handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of elements in the queue."""

def QueueSizeV2(
    *,
    handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of elements in the queue."""

def RFFT(
    *,
    input: _Input,
    fft_length: _Input,
    Tcomplex: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The Fourier transform of the last 1 dimensions of real numbers, without the negative frequencies of the last one."""

def RFFT2D(
    *,
    input: _Input,
    fft_length: _Input,
    Tcomplex: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The Fourier transform of the last 2 dimensions of real numbers, without the negative frequencies of the last one."""

def RFFT3D(
    *,
    input: _Input,
    fft_length: _Input,
    Tcomplex: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The Fourier transform of the last 3 dimensions of real numbers, without the negative frequencies of the last one."""

def RFFTND(
    *,
    input: _Input,
    fft_length: _Input,
    axes: _Input,
    Tcomplex: _Type = ...,
    name: str | None = None,
) -> _Tensor: ...

def RGBToHSV(
    *,
    images: _Input,
    name: str | None = None,
) -> _Tensor:
    """Hue, saturation and value, between 0 and 1, of colours whose last dimension is red, green, blue."""

def RaggedBincount(
    *,
    splits: _Input,
    values: _Input,
    size: _Input,
    weights: _Input,
    binary_output: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The sum of the weights of each value in each row of a ragged matrix."""

class _RaggedCountSparseOutputOutputs(typing.NamedTuple):
    output_indices: _Tensor
    output_values: _Tensor
    output_dense_shape: _Tensor

def RaggedCountSparseOutput(
    *,
    splits: _Input,
    values: _Input,
    weights: _Input,
    binary_output: bool,
    minlength: int = -1,
    maxlength: int = -1,
    name: str | None = None,
) -> _RaggedCountSparseOutputOutputs:
    """How often each value is in each row of a ragged matrix."""

class _RaggedCrossOutputs(typing.NamedTuple):
    output_values: _Tensor
    output_row_splits: _Tensor

def RaggedCross(
    *,
    ragged_values: collections.abc.Sequence[_Input],
    ragged_row_splits: collections.abc.Sequence[_Input],
    sparse_indices: collections.abc.Sequence[_Input],
    sparse_values: collections.abc.Sequence[_Input],
    sparse_shape: collections.abc.Sequence[_Input],
    dense_inputs: collections.abc.Sequence[_Input],
    input_order: str | bytes,
    hashed_output: bool,
    num_buckets: int,
    hash_key: int,
    out_values_type: _Type,
    out_row_splits_type: _Type,
    name: str | None = None,
) -> _RaggedCrossOutputs:
    """The combinations of values of the features in each row: joined by _X_, or hashed."""

class _RaggedFillEmptyRowsOutputs(typing.NamedTuple):
    output_value_rowids: _Tensor
    output_values: _Tensor
    empty_row_indicator: _Tensor
    reverse_index_map: _Tensor

def RaggedFillEmptyRows(
    *,
    value_rowids: _Input,
    values: _Input,
    nrows: _Input,
    default_value: _Input,
    name: str | None = None,
) -> _RaggedFillEmptyRowsOutputs:
    """The values in the order of their rows, with `default_value` in each row that had none."""

class _RaggedFillEmptyRowsGradOutputs(typing.NamedTuple):
    d_values: _Tensor
    d_default_value: _Tensor

def RaggedFillEmptyRowsGrad(
    *,
    reverse_index_map: _Input,
    grad_values: _Input,
    name: str | None = None,
) -> _RaggedFillEmptyRowsGradOutputs:
    """The gradients of the values and of the default value of RaggedFillEmptyRows."""

class _RaggedGatherOutputs(typing.NamedTuple):
    output_nested_splits: list[_Tensor]
    output_dense_values: _Tensor

def RaggedGather(
    *,
    params_nested_splits: collections.abc.Sequence[_Input],
    params_dense_values: _Input,
    indices: _Input,
    OUTPUT_RAGGED_RANK: int,
    name: str | None = None,
) -> _RaggedGatherOutputs:
    """The rows of a ragged tensor at `indices`."""

class _RaggedRangeOutputs(typing.NamedTuple):
    rt_nested_splits: _Tensor
    rt_dense_values: _Tensor

def RaggedRange(
    *,
    starts: _Input,
    limits: _Input,
    deltas: _Input,
    Tsplits: _Type = ...,
    name: str | None = None,
) -> _RaggedRangeOutputs:
    """Rows from `starts` to below `limits` in steps of `deltas`; scalars serve all rows."""

class _RaggedTensorFromVariantOutputs(typing.NamedTuple):
    output_nested_splits: list[_Tensor]
    output_dense_values: _Tensor

def RaggedTensorFromVariant(
    *,
    encoded_ragged: _Input,
    input_ragged_rank: int,
    output_ragged_rank: int,
    Tvalues: _Type,
    Tsplits: _Type = ...,
    name: str | None = None,
) -> _RaggedTensorFromVariantOutputs:
    """The ragged tensor in a variant, or that whose rows the variants are."""

class _RaggedTensorToSparseOutputs(typing.NamedTuple):
    sparse_indices: _Tensor
    sparse_values: _Tensor
    sparse_dense_shape: _Tensor

def RaggedTensorToSparse(
    *,
    rt_nested_splits: collections.abc.Sequence[_Input],
    rt_dense_values: _Input,
    name: str | None = None,
) -> _RaggedTensorToSparseOutputs:
    """The values of a ragged tensor with their indices."""

def RaggedTensorToTensor(
    *,
    shape: _Input,
    values: _Input,
    default_value: _Input,
    row_partition_tensors: collections.abc.Sequence[_Input],
    row_partition_types: collections.abc.Sequence[str | bytes],
    name: str | None = None,
) -> _Tensor:
    """A ragged tensor as a dense one of `shape`, with `default_value` where it has no values."""

def RaggedTensorToVariant(
    *,
    rt_nested_splits: collections.abc.Sequence[_Input],
    rt_dense_values: _Input,
    batched_input: bool,
    name: str | None = None,
) -> _Tensor:
    """A ragged tensor as a variant, or if `batched_input` its rows as a vector of variants."""

def RaggedTensorToVariantGradient(
    *,
    encoded_ragged_grad: _Input,
    row_splits: _Input,
    dense_values_shape: _Input,
    Tvalues: _Type,
    name: str | None = None,
) -> _Tensor:
    """The gradient of the values of RaggedTensorToVariant."""

def RandomCrop(
    *,
    image: _Input,
    size: _Input,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _Tensor:
    """A part of an image of the given size, at a random place."""

def RandomDataset(
    *,
    seed: _Input,
    seed2: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Random numbers from 0 to 2^32, without end."""

def RandomDatasetV2(
    *,
    seed: _Input,
    seed2: _Input,
    seed_generator: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    rerandomize_each_iteration: bool = False,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Random numbers from 0 to 2^32, without end."""

def RandomGamma(
    *,
    shape: _Input,
    alpha: _Input,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _Tensor:
    """For each `alpha` numbers of its gamma distribution, in a tensor of the given shape."""

def RandomGammaGrad(
    *,
    alpha: _Input,
    sample: _Input,
    name: str | None = None,
) -> _Tensor:
    """The derivative of a number of a gamma distribution by `alpha`."""

def RandomIndexShuffle(
    *,
    index: _Input,
    seed: _Input,
    max_index: _Input,
    rounds: int = 4,
    name: str | None = None,
) -> _Tensor:
    """Where `index` comes to lie when the numbers from 0 to `max_index` are shuffled."""

def RandomPoisson(
    *,
    shape: _Input,
    rate: _Input,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _Tensor:
    """As RandomPoissonV2, in the type of the rates."""

def RandomPoissonV2(
    *,
    shape: _Input,
    rate: _Input,
    seed: int = 0,
    seed2: int = 0,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """For each rate numbers of its Poisson distribution, in a tensor of the given shape."""

def RandomShuffle(
    *,
    value: _Input,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _Tensor:
    """The rows of a tensor in random order."""

def RandomShuffleQueue(
    *,
    component_types: collections.abc.Sequence[_Type],
    shapes: collections.abc.Sequence[_Shape] = ...,
    capacity: int = -1,
    min_after_dequeue: int = 0,
    seed: int = 0,
    seed2: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A queue that elements leave in random order."""

def RandomShuffleQueueV2(
    *,
    component_types: collections.abc.Sequence[_Type],
    shapes: collections.abc.Sequence[_Shape] = ...,
    capacity: int = -1,
    min_after_dequeue: int = 0,
    seed: int = 0,
    seed2: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A queue that elements leave in random order."""

def RandomStandardNormal(
    *,
    shape: _Input,
    dtype: _Type,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _Tensor:
    """Normal numbers of mean 0 and deviation 1, in a tensor of the given shape."""

def RandomUniform(
    *,
    shape: _Input,
    dtype: _Type,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _Tensor:
    """Numbers from 0 to 1, without 1, in a tensor of the given shape."""

def RandomUniformInt(
    *,
    shape: _Input,
    minval: _Input,
    maxval: _Input,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _Tensor:
    """Integers from `minval` to `maxval`, without `maxval`."""

def Range(
    *,
    start: _Input,
    limit: _Input,
    delta: _Input,
    name: str | None = None,
) -> _Tensor:
    """The numbers from `start` up to, not including, `limit` in steps of `delta`."""

def RangeDataset(
    *,
    start: _Input,
    stop: _Input,
    step: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    replicate_on_split: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The numbers from `start` to `stop`, without `stop`, by `step`."""

def Rank(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of dimensions of `input`."""

def ReadFile(
    *,
    filename: _Input,
    name: str | None = None,
) -> _Tensor:
    """The content of a file."""

def ReadVariableOp(
    *,
    resource: _Input,
    dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """The tensor that the variable has now."""

def ReadVariableXlaSplitND(
    *,
    resource: _Input,
    T: _Type,
    N: int,
    num_splits: collections.abc.Sequence[int],
    paddings: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> list[_Tensor]: ...

def ReaderNumRecordsProduced(
    *,
    reader_handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """How many records the reader has read."""

def ReaderNumRecordsProducedV2(
    *,
    reader_handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """How many records the reader has read."""

def ReaderNumWorkUnitsCompleted(
    *,
    reader_handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """How many files the reader has finished."""

def ReaderNumWorkUnitsCompletedV2(
    *,
    reader_handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """How many files the reader has finished."""

class _ReaderReadOutputs(typing.NamedTuple):
    key: _Tensor
    value: _Tensor

def ReaderRead(
    *,
    reader_handle: _Input,
    queue_handle: _Input,
    name: str | None = None,
) -> _ReaderReadOutputs:
    """The next record. At the end of a file the next one of the queue is read; waits until there is one."""

class _ReaderReadUpToOutputs(typing.NamedTuple):
    keys: _Tensor
    values: _Tensor

def ReaderReadUpTo(
    *,
    reader_handle: _Input,
    queue_handle: _Input,
    num_records: _Input,
    name: str | None = None,
) -> _ReaderReadUpToOutputs:
    """Up to `num_records` records: fewer where a file ends."""

class _ReaderReadUpToV2Outputs(typing.NamedTuple):
    keys: _Tensor
    values: _Tensor

def ReaderReadUpToV2(
    *,
    reader_handle: _Input,
    queue_handle: _Input,
    num_records: _Input,
    name: str | None = None,
) -> _ReaderReadUpToV2Outputs:
    """Up to `num_records` records: fewer where a file ends."""

class _ReaderReadV2Outputs(typing.NamedTuple):
    key: _Tensor
    value: _Tensor

def ReaderReadV2(
    *,
    reader_handle: _Input,
    queue_handle: _Input,
    name: str | None = None,
) -> _ReaderReadV2Outputs:
    """The next record. At the end of a file the next one of the queue is read; waits until there is one."""

def ReaderReset(
    *,
    reader_handle: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Has the reader forget its file and its counts."""

def ReaderResetV2(
    *,
    reader_handle: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Has the reader forget its file and its counts."""

def ReaderRestoreState(
    *,
    reader_handle: _Input,
    state: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Has an IdentityReader or WholeFileReader go on from a state."""

def ReaderRestoreStateV2(
    *,
    reader_handle: _Input,
    state: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Has an IdentityReader or WholeFileReader go on from a state."""

def ReaderSerializeState(
    *,
    reader_handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """The state of an IdentityReader or WholeFileReader."""

def ReaderSerializeStateV2(
    *,
    reader_handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """The state of an IdentityReader or WholeFileReader."""

def Real(
    *,
    input: _Input,
    Tout: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The real part of `input`."""

def RealDiv(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The quotient `x / y`."""

def RebatchDataset(
    *,
    input_dataset: _Input,
    num_replicas: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    use_fallback: bool = True,
    name: str | None = None,
) -> _Tensor:
    """Each batch in `num_replicas` parts."""

def RebatchDatasetV2(
    *,
    input_dataset: _Input,
    batch_sizes: _Input,
    drop_remainder: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The rows of batches in batches of the sizes `batch_sizes`, in turn."""

def Reciprocal(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """`1 / x`."""

def ReciprocalGrad(
    *,
    y: _Input,
    dy: _Input,
    name: str | None = None,
) -> _Tensor:
    """`-dy * y * y`, for `y = 1 / x`."""

def RecordInput(
    *,
    file_pattern: str | bytes,
    file_random_seed: int = 301,
    file_shuffle_shift_ratio: float = 0.0,
    file_buffer_size: int = 10000,
    file_parallelism: int = 16,
    batch_size: int = 32,
    compression_type: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """    Gives the next `batch_size` records of the files that match patterns, which commas separate."""

def Recv(
    *,
    tensor_type: _Type,
    tensor_name: str | bytes,
    send_device: str | bytes,
    send_device_incarnation: int,
    recv_device: str | bytes,
    client_terminated: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Gives the tensor that another node sends."""

def RecvTPUEmbeddingActivations(
    *,
    num_outputs: int,
    config: str | bytes,
    name: str | None = None,
) -> list[_Tensor]: ...

def ReduceDataset(
    *,
    input_dataset: _Input,
    initial_state: collections.abc.Sequence[_Input],
    other_arguments: collections.abc.Sequence[_Input],
    f: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    use_inter_op_parallelism: bool = True,
    metadata: str | bytes = '',
    name: str | None = None,
) -> list[_Tensor]:
    """Calls `f` with the state and each element; the state at the end."""

def ReduceJoin(
    *,
    inputs: _Input,
    reduction_indices: _Input,
    keep_dims: bool = False,
    separator: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The strings along dimensions joined, those of the first of `reduction_indices` next to one another."""

def RefEnter(
    *,
    data: _Input,
    frame_name: str | bytes,
    is_constant: bool = False,
    parallel_iterations: int = 10,
    name: str | None = None,
) -> _Tensor:
    """Passes `data` into the loop whose frame is `frame_name`."""

def RefExit(
    *,
    data: _Input,
    name: str | None = None,
) -> _Tensor:
    """Passes `data` out of its loop."""

def RefIdentity(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The same reference."""

def RefIn(
    *,
    a: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def RefInputFloatInput(
    *,
    a: _Input,
    b: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def RefInputFloatInputIntOutput(
    *,
    a: _Input,
    b: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RefInputIntInput(
    *,
    a: _Input,
    b: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

class _RefMergeOutputs(typing.NamedTuple):
    output: _Tensor
    value_index: _Tensor

def RefMerge(
    *,
    inputs: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> _RefMergeOutputs:
    """Passes on whichever input is alive, and its index."""

def RefNextIteration(
    *,
    data: _Input,
    name: str | None = None,
) -> _Tensor:
    """Passes `data` on to the next turn of its loop."""

def RefOut(
    *,
    T: _Type,
    name: str | None = None,
) -> _Tensor: ...

def RefOutput(
    *,
    name: str | None = None,
) -> _Tensor: ...

class _RefOutputFloatOutputOutputs(typing.NamedTuple):
    a: _Tensor
    b: _Tensor

def RefOutputFloatOutput(
    *,
    name: str | None = None,
) -> _RefOutputFloatOutputOutputs: ...

def RefSelect(
    *,
    index: _Input,
    inputs: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> _Tensor:
    """The reference of number `index`."""

class _RefSwitchOutputs(typing.NamedTuple):
    output_false: _Tensor
    output_true: _Tensor

def RefSwitch(
    *,
    data: _Input,
    pred: _Input,
    name: str | None = None,
) -> _RefSwitchOutputs:
    """Passes `data` on to `output_true` or `output_false`, as `pred` says."""

def RegexFullMatch(
    *,
    input: _Input,
    pattern: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether all of each string matches a regular expression of RE2."""

def RegexReplace(
    *,
    input: _Input,
    pattern: _Input,
    rewrite: _Input,
    replace_global: bool = True,
    name: str | None = None,
) -> _Tensor:
    """Each string with its matches of `pattern` replaced: all, or the first. `\\\\1` is the text of group 1."""

def RegisterDataset(
    *,
    dataset: _Input,
    address: _Input,
    protocol: _Input,
    external_state_policy: int,
    element_spec: str | bytes = '',
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor: ...

def RegisterDatasetV2(
    *,
    dataset: _Input,
    address: _Input,
    protocol: _Input,
    external_state_policy: int,
    element_spec: str | bytes = '',
    requested_dataset_id: str | bytes = '',
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor: ...

def Relayout(
    *,
    input: _Input,
    layout: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def RelayoutLike(
    *,
    input: _Input,
    layout_input: _Input,
    name: str | None = None,
) -> _Tensor: ...

def Relu(
    *,
    features: _Input,
    name: str | None = None,
) -> _Tensor:
    """max(features, 0)."""

def Relu6(
    *,
    features: _Input,
    name: str | None = None,
) -> _Tensor:
    """min(max(features, 0), 6)."""

def Relu6Grad(
    *,
    gradients: _Input,
    features: _Input,
    name: str | None = None,
) -> _Tensor:
    """The gradient of Relu6, from that of its result and `features`."""

def ReluGrad(
    *,
    gradients: _Input,
    features: _Input,
    name: str | None = None,
) -> _Tensor:
    """The gradient of Relu, from that of its result and `features`."""

def RemoteCall(
    *,
    target: _Input,
    args: collections.abc.Sequence[_Input],
    Tout: collections.abc.Sequence[_Type],
    f: _Func,
    name: str | None = None,
) -> list[_Tensor]:
    """    Calls `f` with `args` on another device, here one of this process."""

def RepeatDataset(
    *,
    input_dataset: _Input,
    count: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """All elements `count` times; for ever where it is negative."""

class _RequantizationRangeOutputs(typing.NamedTuple):
    output_min: _Tensor
    output_max: _Tensor

def RequantizationRange(
    *,
    input: _Input,
    input_min: _Input,
    input_max: _Input,
    name: str | None = None,
) -> _RequantizationRangeOutputs:
    """The range that the values have, with 0."""

class _RequantizationRangePerChannelOutputs(typing.NamedTuple):
    output_min: _Tensor
    output_max: _Tensor

def RequantizationRangePerChannel(
    *,
    input: _Input,
    input_min: _Input,
    input_max: _Input,
    clip_value_max: float,
    name: str | None = None,
) -> _RequantizationRangePerChannelOutputs:
    """The range around 0 that the values of all channels need; not beyond `clip_value_max`."""

class _RequantizeOutputs(typing.NamedTuple):
    output: _Tensor
    output_min: _Tensor
    output_max: _Tensor

def Requantize(
    *,
    input: _Input,
    input_min: _Input,
    input_max: _Input,
    requested_output_min: _Input,
    requested_output_max: _Input,
    out_type: _Type,
    name: str | None = None,
) -> _RequantizeOutputs:
    """Integers of the range [input_min, input_max] as integers of the requested range."""

class _RequantizePerChannelOutputs(typing.NamedTuple):
    output: _Tensor
    output_min: _Tensor
    output_max: _Tensor

def RequantizePerChannel(
    *,
    input: _Input,
    input_min: _Input,
    input_max: _Input,
    requested_output_min: _Input,
    requested_output_max: _Input,
    out_type: _Type = ...,
    name: str | None = None,
) -> _RequantizePerChannelOutputs:
    """Requantize, where each channel of images has a range of its own; 0 stands for 0."""

def RequiresOlderGraphVersion(
    *,
    name: str | None = None,
) -> _Tensor: ...

def ReservedAttr(
    *,
    range: int,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def ReservedInput(
    *,
    input: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def Reshape(
    *,
    tensor: _Input,
    shape: _Input,
    name: str | None = None,
) -> _Tensor:
    """The elements of `tensor`, in order, in a tensor of `shape`; one size may be -1."""

def ResizeArea(
    *,
    images: _Input,
    size: _Input,
    align_corners: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Resize images; each new pixel is the mean of the old ones that it covers."""

def ResizeBicubic(
    *,
    images: _Input,
    size: _Input,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Resize images; each new pixel is interpolated between sixteen old ones."""

def ResizeBicubicGrad(
    *,
    grads: _Input,
    original_image: _Input,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The gradient of ResizeBicubic by its images, of `original_image`'s size."""

def ResizeBilinear(
    *,
    images: _Input,
    size: _Input,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Resize images; each new pixel is interpolated between four old ones."""

def ResizeBilinearGrad(
    *,
    grads: _Input,
    original_image: _Input,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The gradient of ResizeBilinear by its images, of `original_image`'s size."""

def ResizeNearestNeighbor(
    *,
    images: _Input,
    size: _Input,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Resize images; each new pixel is the nearest old one."""

def ResizeNearestNeighborGrad(
    *,
    grads: _Input,
    size: _Input,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The gradient of ResizeNearestNeighbor by its images, which have the height and width `size`."""

def ResourceAccumulatorApplyGradient(
    *,
    handle: _Input,
    local_step: _Input,
    gradient: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Adds a gradient, unless it is stale."""

def ResourceAccumulatorNumAccumulated(
    *,
    handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """How many gradients have been added since the last were taken."""

def ResourceAccumulatorSetGlobalStep(
    *,
    handle: _Input,
    new_global_step: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Sets the step before which gradients are stale."""

def ResourceAccumulatorTakeGradient(
    *,
    handle: _Input,
    num_required: _Input,
    dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """Takes the mean, or sum, of the gradients out; waits until there are enough."""

def ResourceApplyAdaMax(
    *,
    var: _Input,
    m: _Input,
    v: _Input,
    beta1_power: _Input,
    lr: _Input,
    beta1: _Input,
    beta2: _Input,
    epsilon: _Input,
    grad: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of AdaMax on `var` and its slots."""

def ResourceApplyAdadelta(
    *,
    var: _Input,
    accum: _Input,
    accum_update: _Input,
    lr: _Input,
    rho: _Input,
    epsilon: _Input,
    grad: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of Adadelta on `var` and its slots."""

def ResourceApplyAdagrad(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    grad: _Input,
    use_locking: bool = False,
    update_slots: bool = True,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of Adagrad on `var` and its slots."""

def ResourceApplyAdagradDA(
    *,
    var: _Input,
    gradient_accumulator: _Input,
    gradient_squared_accumulator: _Input,
    grad: _Input,
    lr: _Input,
    l1: _Input,
    l2: _Input,
    global_step: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of AdagradDA on `var` and its slots."""

def ResourceApplyAdagradV2(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    epsilon: _Input,
    grad: _Input,
    use_locking: bool = False,
    update_slots: bool = True,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of AdagradV2 on `var` and its slots."""

def ResourceApplyAdam(
    *,
    var: _Input,
    m: _Input,
    v: _Input,
    beta1_power: _Input,
    beta2_power: _Input,
    lr: _Input,
    beta1: _Input,
    beta2: _Input,
    epsilon: _Input,
    grad: _Input,
    use_locking: bool = False,
    use_nesterov: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of Adam on `var` and its slots."""

def ResourceApplyAdamWithAmsgrad(
    *,
    var: _Input,
    m: _Input,
    v: _Input,
    vhat: _Input,
    beta1_power: _Input,
    beta2_power: _Input,
    lr: _Input,
    beta1: _Input,
    beta2: _Input,
    epsilon: _Input,
    grad: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of AdamWithAmsgrad on `var` and its slots."""

def ResourceApplyAddSign(
    *,
    var: _Input,
    m: _Input,
    lr: _Input,
    alpha: _Input,
    sign_decay: _Input,
    beta: _Input,
    grad: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of AddSign on `var` and its slots."""

def ResourceApplyCenteredRMSProp(
    *,
    var: _Input,
    mg: _Input,
    ms: _Input,
    mom: _Input,
    lr: _Input,
    rho: _Input,
    momentum: _Input,
    epsilon: _Input,
    grad: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of CenteredRMSProp on `var` and its slots."""

def ResourceApplyFtrl(
    *,
    var: _Input,
    accum: _Input,
    linear: _Input,
    grad: _Input,
    lr: _Input,
    l1: _Input,
    l2: _Input,
    lr_power: _Input,
    use_locking: bool = False,
    multiply_linear_by_lr: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of Ftrl on `var` and its slots."""

def ResourceApplyFtrlV2(
    *,
    var: _Input,
    accum: _Input,
    linear: _Input,
    grad: _Input,
    lr: _Input,
    l1: _Input,
    l2: _Input,
    l2_shrinkage: _Input,
    lr_power: _Input,
    use_locking: bool = False,
    multiply_linear_by_lr: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of FtrlV2 on `var` and its slots."""

def ResourceApplyGradientDescent(
    *,
    var: _Input,
    alpha: _Input,
    delta: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of GradientDescent on `var` and its slots."""

def ResourceApplyKerasMomentum(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    grad: _Input,
    momentum: _Input,
    use_locking: bool = False,
    use_nesterov: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of KerasMomentum on `var` and its slots."""

def ResourceApplyMomentum(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    grad: _Input,
    momentum: _Input,
    use_locking: bool = False,
    use_nesterov: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of Momentum on `var` and its slots."""

def ResourceApplyPowerSign(
    *,
    var: _Input,
    m: _Input,
    lr: _Input,
    logbase: _Input,
    sign_decay: _Input,
    beta: _Input,
    grad: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of PowerSign on `var` and its slots."""

def ResourceApplyProximalAdagrad(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    l1: _Input,
    l2: _Input,
    grad: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of ProximalAdagrad on `var` and its slots."""

def ResourceApplyProximalGradientDescent(
    *,
    var: _Input,
    alpha: _Input,
    l1: _Input,
    l2: _Input,
    delta: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of ProximalGradientDescent on `var` and its slots."""

def ResourceApplyRMSProp(
    *,
    var: _Input,
    ms: _Input,
    mom: _Input,
    lr: _Input,
    rho: _Input,
    momentum: _Input,
    epsilon: _Input,
    grad: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of RMSProp on `var` and its slots."""

def ResourceConditionalAccumulator(
    *,
    dtype: _Type,
    shape: _Shape,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    reduction_type: typing.Literal['MEAN', 'SUM'] = 'MEAN',
    name: str | None = None,
) -> _Tensor:
    """An accumulator of gradients."""

def ResourceCountUpTo(
    *,
    resource: _Input,
    limit: int,
    T: _Type,
    name: str | None = None,
) -> _Tensor:
    """The value of the variable, which is then one more; an error once it is `limit`."""

def ResourceCreateOp(
    *,
    resource: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def ResourceGather(
    *,
    resource: _Input,
    indices: _Input,
    dtype: _Type,
    batch_dims: int = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> _Tensor:
    """The slices of the variable along dimension `batch_dims` that `indices` name."""

def ResourceGatherNd(
    *,
    resource: _Input,
    indices: _Input,
    dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """The slices of the variable at the index vectors that the last dimension of `indices` holds."""

def ResourceInitializedOp(
    *,
    resource: _Input,
    name: str | None = None,
) -> _Tensor: ...

def ResourceScatterAdd(
    *,
    resource: _Input,
    indices: _Input,
    updates: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Adds `updates` to the rows of the variable that `indices` name."""

def ResourceScatterDiv(
    *,
    resource: _Input,
    indices: _Input,
    updates: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Divides the rows by `updates` of the variable that `indices` name."""

def ResourceScatterMax(
    *,
    resource: _Input,
    indices: _Input,
    updates: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Takes the larger of `updates` and the rows of the variable that `indices` name."""

def ResourceScatterMin(
    *,
    resource: _Input,
    indices: _Input,
    updates: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Takes the smaller of `updates` and the rows of the variable that `indices` name."""

def ResourceScatterMul(
    *,
    resource: _Input,
    indices: _Input,
    updates: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Multiplies the rows by `updates` of the variable that `indices` name."""

def ResourceScatterNdAdd(
    *,
    ref: _Input,
    indices: _Input,
    updates: _Input,
    use_locking: bool = True,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Adds `updates` to the slices of the variable that `indices` name."""

def ResourceScatterNdMax(
    *,
    ref: _Input,
    indices: _Input,
    updates: _Input,
    use_locking: bool = True,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Takes the larger of `updates` and the slices of the variable that `indices` name."""

def ResourceScatterNdMin(
    *,
    ref: _Input,
    indices: _Input,
    updates: _Input,
    use_locking: bool = True,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Takes the smaller of `updates` and the slices of the variable that `indices` name."""

def ResourceScatterNdSub(
    *,
    ref: _Input,
    indices: _Input,
    updates: _Input,
    use_locking: bool = True,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Subtracts `updates` from the slices of the variable that `indices` name."""

def ResourceScatterNdUpdate(
    *,
    ref: _Input,
    indices: _Input,
    updates: _Input,
    use_locking: bool = True,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Puts `updates` in the place of the slices of the variable that `indices` name."""

def ResourceScatterSub(
    *,
    resource: _Input,
    indices: _Input,
    updates: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Subtracts `updates` from the rows of the variable that `indices` name."""

def ResourceScatterUpdate(
    *,
    resource: _Input,
    indices: _Input,
    updates: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Puts `updates` in the place of the rows of the variable that `indices` name."""

def ResourceSparseApplyAdadelta(
    *,
    var: _Input,
    accum: _Input,
    accum_update: _Input,
    lr: _Input,
    rho: _Input,
    epsilon: _Input,
    grad: _Input,
    indices: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of Adadelta on some rows of `var` and its slots."""

def ResourceSparseApplyAdagrad(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    grad: _Input,
    indices: _Input,
    use_locking: bool = False,
    update_slots: bool = True,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of Adagrad on some rows of `var` and its slots."""

def ResourceSparseApplyAdagradDA(
    *,
    var: _Input,
    gradient_accumulator: _Input,
    gradient_squared_accumulator: _Input,
    grad: _Input,
    indices: _Input,
    lr: _Input,
    l1: _Input,
    l2: _Input,
    global_step: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of AdagradDA on some rows of `var` and its slots."""

def ResourceSparseApplyAdagradV2(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    epsilon: _Input,
    grad: _Input,
    indices: _Input,
    use_locking: bool = False,
    update_slots: bool = True,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of AdagradV2 on some rows of `var` and its slots."""

def ResourceSparseApplyCenteredRMSProp(
    *,
    var: _Input,
    mg: _Input,
    ms: _Input,
    mom: _Input,
    lr: _Input,
    rho: _Input,
    momentum: _Input,
    epsilon: _Input,
    grad: _Input,
    indices: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of CenteredRMSProp on some rows of `var` and its slots."""

def ResourceSparseApplyFtrl(
    *,
    var: _Input,
    accum: _Input,
    linear: _Input,
    grad: _Input,
    indices: _Input,
    lr: _Input,
    l1: _Input,
    l2: _Input,
    lr_power: _Input,
    use_locking: bool = False,
    multiply_linear_by_lr: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of Ftrl on some rows of `var` and its slots."""

def ResourceSparseApplyFtrlV2(
    *,
    var: _Input,
    accum: _Input,
    linear: _Input,
    grad: _Input,
    indices: _Input,
    lr: _Input,
    l1: _Input,
    l2: _Input,
    l2_shrinkage: _Input,
    lr_power: _Input,
    use_locking: bool = False,
    multiply_linear_by_lr: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of FtrlV2 on some rows of `var` and its slots."""

def ResourceSparseApplyKerasMomentum(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    grad: _Input,
    indices: _Input,
    momentum: _Input,
    use_locking: bool = False,
    use_nesterov: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of KerasMomentum on some rows of `var` and its slots."""

def ResourceSparseApplyMomentum(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    grad: _Input,
    indices: _Input,
    momentum: _Input,
    use_locking: bool = False,
    use_nesterov: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of Momentum on some rows of `var` and its slots."""

def ResourceSparseApplyProximalAdagrad(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    l1: _Input,
    l2: _Input,
    grad: _Input,
    indices: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of ProximalAdagrad on some rows of `var` and its slots."""

def ResourceSparseApplyProximalGradientDescent(
    *,
    var: _Input,
    alpha: _Input,
    l1: _Input,
    l2: _Input,
    grad: _Input,
    indices: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of ProximalGradientDescent on some rows of `var` and its slots."""

def ResourceSparseApplyRMSProp(
    *,
    var: _Input,
    ms: _Input,
    mom: _Input,
    lr: _Input,
    rho: _Input,
    momentum: _Input,
    epsilon: _Input,
    grad: _Input,
    indices: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """A step of RMSProp on some rows of `var` and its slots."""

def ResourceStridedSliceAssign(
    *,
    ref: _Input,
    begin: _Input,
    end: _Input,
    strides: _Input,
    value: _Input,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Writes `value`, broadcast, to where StridedSlice would take its result from."""

def ResourceUsingOp(
    *,
    resource: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def Restore(
    *,
    file_pattern: _Input,
    tensor_name: _Input,
    dt: _Type,
    preferred_shard: int = -1,
    name: str | None = None,
) -> _Tensor:
    """Restores a tensor from a checkpoint of format V1."""

def RestoreSlice(
    *,
    file_pattern: _Input,
    tensor_name: _Input,
    shape_and_slice: _Input,
    dt: _Type,
    preferred_shard: int = -1,
    name: str | None = None,
) -> _Tensor:
    """Restores a slice of a tensor from a checkpoint of format V1."""

def RestoreV2(
    *,
    prefix: _Input,
    tensor_names: _Input,
    shape_and_slices: _Input,
    dtypes: collections.abc.Sequence[_Type],
    name: str | None = None,
) -> list[_Tensor]:
    """Restores tensors, or slices of them, from a checkpoint of format V2 or V1."""

def Restrict(
    *,
    a: _Input,
    name: str | None = None,
) -> _Tensor: ...

class _RetrieveAllTPUEmbeddingParametersOutputs(typing.NamedTuple):
    parameters: list[_Tensor]
    auxiliary1: list[_Tensor]
    auxiliary2: list[_Tensor]
    auxiliary3: list[_Tensor]
    auxiliary4: list[_Tensor]
    auxiliary5: list[_Tensor]
    auxiliary6: list[_Tensor]
    auxiliary7: list[_Tensor]

def RetrieveAllTPUEmbeddingParameters(
    *,
    NumTables: int,
    config: str | bytes,
    num_shards: int,
    shard_id: int,
    name: str | None = None,
) -> _RetrieveAllTPUEmbeddingParametersOutputs: ...

class _RetrieveTPUEmbeddingADAMParametersOutputs(typing.NamedTuple):
    parameters: _Tensor
    momenta: _Tensor
    velocities: _Tensor

def RetrieveTPUEmbeddingADAMParameters(
    *,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> _RetrieveTPUEmbeddingADAMParametersOutputs: ...

class _RetrieveTPUEmbeddingAdadeltaParametersOutputs(typing.NamedTuple):
    parameters: _Tensor
    accumulators: _Tensor
    updates: _Tensor

def RetrieveTPUEmbeddingAdadeltaParameters(
    *,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> _RetrieveTPUEmbeddingAdadeltaParametersOutputs: ...

class _RetrieveTPUEmbeddingAdagradMomentumParametersOutputs(typing.NamedTuple):
    parameters: _Tensor
    accumulators: _Tensor
    momenta: _Tensor

def RetrieveTPUEmbeddingAdagradMomentumParameters(
    *,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> _RetrieveTPUEmbeddingAdagradMomentumParametersOutputs: ...

class _RetrieveTPUEmbeddingAdagradParametersOutputs(typing.NamedTuple):
    parameters: _Tensor
    accumulators: _Tensor

def RetrieveTPUEmbeddingAdagradParameters(
    *,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> _RetrieveTPUEmbeddingAdagradParametersOutputs: ...

class _RetrieveTPUEmbeddingCenteredRMSPropParametersOutputs(typing.NamedTuple):
    parameters: _Tensor
    ms: _Tensor
    mom: _Tensor
    mg: _Tensor

def RetrieveTPUEmbeddingCenteredRMSPropParameters(
    *,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> _RetrieveTPUEmbeddingCenteredRMSPropParametersOutputs: ...

class _RetrieveTPUEmbeddingFTRLParametersOutputs(typing.NamedTuple):
    parameters: _Tensor
    accumulators: _Tensor
    linears: _Tensor

def RetrieveTPUEmbeddingFTRLParameters(
    *,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> _RetrieveTPUEmbeddingFTRLParametersOutputs: ...

class _RetrieveTPUEmbeddingFrequencyEstimatorParametersOutputs(typing.NamedTuple):
    parameters: _Tensor
    last_hit_step: _Tensor

def RetrieveTPUEmbeddingFrequencyEstimatorParameters(
    *,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> _RetrieveTPUEmbeddingFrequencyEstimatorParametersOutputs: ...

class _RetrieveTPUEmbeddingMDLAdagradLightParametersOutputs(typing.NamedTuple):
    parameters: _Tensor
    accumulators: _Tensor
    weights: _Tensor
    benefits: _Tensor

def RetrieveTPUEmbeddingMDLAdagradLightParameters(
    *,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> _RetrieveTPUEmbeddingMDLAdagradLightParametersOutputs: ...

class _RetrieveTPUEmbeddingMomentumParametersOutputs(typing.NamedTuple):
    parameters: _Tensor
    momenta: _Tensor

def RetrieveTPUEmbeddingMomentumParameters(
    *,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> _RetrieveTPUEmbeddingMomentumParametersOutputs: ...

class _RetrieveTPUEmbeddingProximalAdagradParametersOutputs(typing.NamedTuple):
    parameters: _Tensor
    accumulators: _Tensor

def RetrieveTPUEmbeddingProximalAdagradParameters(
    *,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> _RetrieveTPUEmbeddingProximalAdagradParametersOutputs: ...

class _RetrieveTPUEmbeddingProximalYogiParametersOutputs(typing.NamedTuple):
    parameters: _Tensor
    v: _Tensor
    m: _Tensor

def RetrieveTPUEmbeddingProximalYogiParameters(
    *,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> _RetrieveTPUEmbeddingProximalYogiParametersOutputs: ...

class _RetrieveTPUEmbeddingRMSPropParametersOutputs(typing.NamedTuple):
    parameters: _Tensor
    ms: _Tensor
    mom: _Tensor

def RetrieveTPUEmbeddingRMSPropParameters(
    *,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> _RetrieveTPUEmbeddingRMSPropParametersOutputs: ...

def RetrieveTPUEmbeddingStochasticGradientDescentParameters(
    *,
    num_shards: int,
    shard_id: int,
    table_id: int = -1,
    table_name: str | bytes = '',
    config: str | bytes = '',
    name: str | None = None,
) -> _Tensor: ...

def Reverse(
    *,
    tensor: _Input,
    dims: _Input,
    name: str | None = None,
) -> _Tensor:
    """`tensor` with the order reversed along each dimension i for which `dims[i]` is true."""

def ReverseSequence(
    *,
    input: _Input,
    seq_lengths: _Input,
    seq_dim: int,
    batch_dim: int = 0,
    name: str | None = None,
) -> _Tensor:
    """`input`, of each slice of the batch the first `seq_lengths[i]` elements reversed."""

def ReverseV2(
    *,
    tensor: _Input,
    axis: _Input,
    name: str | None = None,
) -> _Tensor:
    """`tensor` with the order reversed along the dimensions `axis`."""

def RewriteDataset(
    *,
    input_dataset: _Input,
    rewrite_name: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`."""

def RightShift(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The bits of `x` moved down by `y`, keeping the sign; `y` is bounded as for LeftShift."""

def Rint(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The integer nearest to `x`; of two, the even one."""

def RiscAbs(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscAdd(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscBinaryArithmetic(
    *,
    x: _Input,
    y: _Input,
    op_type: typing.Literal['ADD', 'SUB', 'MUL', 'DIV', 'REM', 'MIN', 'POW'],
    name: str | None = None,
) -> _Tensor: ...

def RiscBinaryComparison(
    *,
    x: _Input,
    y: _Input,
    op_type: typing.Literal['EQ', 'NE', 'GE', 'GT', 'LE', 'LT'],
    name: str | None = None,
) -> _Tensor: ...

def RiscBitcast(
    *,
    x: _Input,
    DstT: _Type,
    name: str | None = None,
) -> _Tensor: ...

def RiscBroadcast(
    *,
    input: _Input,
    shape: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscCast(
    *,
    x: _Input,
    DstT: _Type,
    name: str | None = None,
) -> _Tensor: ...

def RiscCeil(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscCholesky(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscConcat(
    *,
    values: collections.abc.Sequence[_Input],
    axis: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscCondition(
    *,
    pred: _Input,
    input_true: _Input,
    input_false: _Input,
    func_true: _Func,
    func_false: _Func,
    DstT: _Type,
    name: str | None = None,
) -> _Tensor: ...

def RiscConv(
    *,
    input: _Input,
    filter: _Input,
    strides: collections.abc.Sequence[int],
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor: ...

def RiscCos(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscDiv(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscDot(
    *,
    a: _Input,
    b: _Input,
    transpose_a: bool = False,
    transpose_b: bool = False,
    name: str | None = None,
) -> _Tensor: ...

def RiscExp(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscFft(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscFloor(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscGather(
    *,
    params: _Input,
    indices: _Input,
    axis: _Input,
    batch_dims: int = 0,
    name: str | None = None,
) -> _Tensor: ...

def RiscImag(
    *,
    input: _Input,
    Tout: _Type = ...,
    name: str | None = None,
) -> _Tensor: ...

def RiscIsFinite(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscLog(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscLogicalAnd(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscLogicalNot(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscLogicalOr(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscMax(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscMin(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscMul(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscNeg(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscPad(
    *,
    input: _Input,
    paddings: _Input,
    constant_values: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscPool(
    *,
    value: _Input,
    ksize: collections.abc.Sequence[int],
    strides: collections.abc.Sequence[int],
    pooling_type: typing.Literal['AVG', 'MAX'],
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    name: str | None = None,
) -> _Tensor: ...

def RiscPow(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscRandomUniform(
    *,
    shape: _Input,
    seed: int = 0,
    name: str | None = None,
) -> _Tensor: ...

def RiscReal(
    *,
    input: _Input,
    Tout: _Type = ...,
    name: str | None = None,
) -> _Tensor: ...

def RiscReduce(
    *,
    tensor: _Input,
    axis: _Input,
    reduce_type: typing.Literal['MEAN', 'SUM'],
    name: str | None = None,
) -> _Tensor: ...

def RiscRem(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscReshape(
    *,
    tensor: _Input,
    shape: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscReverse(
    *,
    tensor: _Input,
    axis: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscScatter(
    *,
    indices: _Input,
    updates: _Input,
    shape: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscShape(
    *,
    input: _Input,
    out_type: _Type = ...,
    name: str | None = None,
) -> _Tensor: ...

def RiscSign(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscSlice(
    *,
    input: _Input,
    begin: _Input,
    size: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscSort(
    *,
    input: _Input,
    axis: _Input,
    direction: typing.Literal['ASCENDING', 'DESCENDING'],
    name: str | None = None,
) -> _Tensor: ...

def RiscSqueeze(
    *,
    input: _Input,
    squeeze_dims: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor: ...

def RiscSub(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscTranspose(
    *,
    x: _Input,
    perm: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RiscTriangularSolve(
    *,
    matrix: _Input,
    rhs: _Input,
    lower: bool = True,
    adjoint: bool = False,
    name: str | None = None,
) -> _Tensor: ...

def RiscUnary(
    *,
    x: _Input,
    op_type: typing.Literal['ABL', 'CEIL', 'COS', 'EXP', 'FLOOR', 'IMAG', 'LOG', 'NEG', 'REAL', 'SIGN'],
    name: str | None = None,
) -> _Tensor: ...

def RiscWhile(
    *,
    input: collections.abc.Sequence[_Input],
    cond: _Func,
    body: _Func,
    output_shapes: collections.abc.Sequence[_Shape] = ...,
    parallel_iterations: int = 10,
    name: str | None = None,
) -> list[_Tensor]: ...

def RngReadAndSkip(
    *,
    resource: _Input,
    alg: _Input,
    delta: _Input,
    name: str | None = None,
) -> _Tensor:
    """The state of a generator, which then moves on by the blocks of `delta` numbers."""

def RngSkip(
    *,
    resource: _Input,
    algorithm: _Input,
    delta: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Moves a generator on by the blocks of `delta` numbers."""

def Roll(
    *,
    input: _Input,
    shift: _Input,
    axis: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input` with its elements moved by `shift[i]` along dimension `axis[i]`, around the ends."""

def Round(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The integer nearest to `x`; of two, the even one. Of integers the kernel makes 0."""

class _RpcCallOutputs(typing.NamedTuple):
    future: _Tensor
    deleter: _Tensor

def RpcCall(
    *,
    client: _Input,
    method_name: _Input,
    args: collections.abc.Sequence[_Input],
    timeout_in_ms: _Input,
    name: str | None = None,
) -> _RpcCallOutputs: ...

class _RpcCheckStatusOutputs(typing.NamedTuple):
    error_code: _Tensor
    error: _Tensor

def RpcCheckStatus(
    *,
    status_or: _Input,
    name: str | None = None,
) -> _RpcCheckStatusOutputs: ...

class _RpcClientOutputs(typing.NamedTuple):
    client: _Tensor
    method_specs: _Tensor

def RpcClient(
    *,
    server_address: _Input,
    timeout_in_ms: _Input,
    shared_name: str | bytes = '',
    list_registered_methods: bool = False,
    name: str | None = None,
) -> _RpcClientOutputs: ...

def RpcGetValue(
    *,
    status_or: _Input,
    Tout: collections.abc.Sequence[_Type],
    name: str | None = None,
) -> list[_Tensor]: ...

def RpcServer(
    *,
    server_address: _Input,
    name: str | None = None,
) -> _Tensor: ...

def RpcServerRegister(
    *,
    server: _Input,
    method_name: _Input,
    captured_inputs: collections.abc.Sequence[_Input],
    f: _Func,
    output_specs: str | bytes,
    input_specs: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def RpcServerStart(
    *,
    server: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def Rsqrt(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """`1 / sqrt(x)`."""

def RsqrtGrad(
    *,
    y: _Input,
    dy: _Input,
    name: str | None = None,
) -> _Tensor:
    """`dy * -0.5 * y ** 3`, for `y = rsqrt(x)`."""

class _SampleDistortedBoundingBoxOutputs(typing.NamedTuple):
    begin: _Tensor
    size: _Tensor
    bboxes: _Tensor

def SampleDistortedBoundingBox(
    *,
    image_size: _Input,
    bounding_boxes: _Input,
    seed: int = 0,
    seed2: int = 0,
    min_object_covered: float = 0.1,
    aspect_ratio_range: collections.abc.Sequence[float] = ...,
    area_range: collections.abc.Sequence[float] = ...,
    max_attempts: int = 100,
    use_image_if_no_bounding_boxes: bool = False,
    name: str | None = None,
) -> _SampleDistortedBoundingBoxOutputs:
    """A random part of an image that covers enough of one of the boxes; all of it if none is found."""

class _SampleDistortedBoundingBoxV2Outputs(typing.NamedTuple):
    begin: _Tensor
    size: _Tensor
    bboxes: _Tensor

def SampleDistortedBoundingBoxV2(
    *,
    image_size: _Input,
    bounding_boxes: _Input,
    min_object_covered: _Input,
    seed: int = 0,
    seed2: int = 0,
    aspect_ratio_range: collections.abc.Sequence[float] = ...,
    area_range: collections.abc.Sequence[float] = ...,
    max_attempts: int = 100,
    use_image_if_no_bounding_boxes: bool = False,
    name: str | None = None,
) -> _SampleDistortedBoundingBoxV2Outputs:
    """A random part of an image that covers enough of one of the boxes; all of it if none is found."""

def SamplingDataset(
    *,
    input_dataset: _Input,
    rate: _Input,
    seed: _Input,
    seed2: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """Elements at random: each with the probability `rate`."""

def Save(
    *,
    filename: _Input,
    tensor_names: _Input,
    data: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Saves tensors in the format V1."""

def SaveDataset(
    *,
    input_dataset: _Input,
    path: _Input,
    shard_func_other_args: collections.abc.Sequence[_Input],
    shard_func: _Func,
    compression: str | bytes = '',
    use_shard_func: bool = True,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Writes the elements of a dataset to files."""

def SaveDatasetV2(
    *,
    input_dataset: _Input,
    path: _Input,
    shard_func_other_args: collections.abc.Sequence[_Input],
    shard_func: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    compression: str | bytes = '',
    use_shard_func: bool = True,
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`, which are written to files as they pass."""

def SaveSlices(
    *,
    filename: _Input,
    tensor_names: _Input,
    shapes_and_slices: _Input,
    data: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Saves slices of tensors in the format V1."""

def SaveV2(
    *,
    prefix: _Input,
    tensor_names: _Input,
    shape_and_slices: _Input,
    tensors: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Saves tensors, or slices of larger ones, in the format V2."""

def ScalarSummary(
    *,
    tags: _Input,
    values: _Input,
    name: str | None = None,
) -> _Tensor:
    """A summary with a number for each tag."""

def ScaleAndTranslate(
    *,
    images: _Input,
    size: _Input,
    scale: _Input,
    translation: _Input,
    kernel_type: str | bytes = 'lanczos3',
    antialias: bool = True,
    name: str | None = None,
) -> _Tensor:
    """Resample images; pixels from outside the image are 0."""

def ScaleAndTranslateGrad(
    *,
    grads: _Input,
    original_image: _Input,
    scale: _Input,
    translation: _Input,
    kernel_type: str | bytes = 'lanczos3',
    antialias: bool = True,
    name: str | None = None,
) -> _Tensor:
    """The gradient of ScaleAndTranslate by its images, of `original_image`'s size."""

def ScanDataset(
    *,
    input_dataset: _Input,
    initial_state: collections.abc.Sequence[_Input],
    other_arguments: collections.abc.Sequence[_Input],
    f: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    preserve_cardinality: bool = False,
    use_default_device: bool = True,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The results of `f` for the state and each element; its first results are the next state."""

def ScatterAdd(
    *,
    ref: _Input,
    indices: _Input,
    updates: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """As ResourceScatterAdd, on the variable that `ref` refers to."""

def ScatterDiv(
    *,
    ref: _Input,
    indices: _Input,
    updates: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """As ResourceScatterDiv, on the variable that `ref` refers to."""

def ScatterMax(
    *,
    ref: _Input,
    indices: _Input,
    updates: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """As ResourceScatterMax, on the variable that `ref` refers to."""

def ScatterMin(
    *,
    ref: _Input,
    indices: _Input,
    updates: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """As ResourceScatterMin, on the variable that `ref` refers to."""

def ScatterMul(
    *,
    ref: _Input,
    indices: _Input,
    updates: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """As ResourceScatterMul, on the variable that `ref` refers to."""

def ScatterNd(
    *,
    indices: _Input,
    updates: _Input,
    shape: _Input,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Zeros of `shape` to which `updates` are added at `indices`."""

def ScatterNdAdd(
    *,
    ref: _Input,
    indices: _Input,
    updates: _Input,
    use_locking: bool = False,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """As ResourceScatterNdAdd, on the variable that `ref` refers to."""

def ScatterNdMax(
    *,
    ref: _Input,
    indices: _Input,
    updates: _Input,
    use_locking: bool = False,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """As ResourceScatterNdMax, on the variable that `ref` refers to."""

def ScatterNdMin(
    *,
    ref: _Input,
    indices: _Input,
    updates: _Input,
    use_locking: bool = False,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """As ResourceScatterNdMin, on the variable that `ref` refers to."""

def ScatterNdNonAliasingAdd(
    *,
    input: _Input,
    indices: _Input,
    updates: _Input,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """`input` plus `updates` at `indices`."""

def ScatterNdSub(
    *,
    ref: _Input,
    indices: _Input,
    updates: _Input,
    use_locking: bool = False,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """As ResourceScatterNdSub, on the variable that `ref` refers to."""

def ScatterNdUpdate(
    *,
    ref: _Input,
    indices: _Input,
    updates: _Input,
    use_locking: bool = True,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """As ResourceScatterNdUpdate, on the variable that `ref` refers to."""

def ScatterSub(
    *,
    ref: _Input,
    indices: _Input,
    updates: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """As ResourceScatterSub, on the variable that `ref` refers to."""

def ScatterUpdate(
    *,
    ref: _Input,
    indices: _Input,
    updates: _Input,
    use_locking: bool = True,
    name: str | None = None,
) -> _Tensor:
    """As ResourceScatterUpdate, on the variable that `ref` refers to."""

def SdcaFprint(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """Fingerprints of 128 bits, the lower half first; that is never 0 or 1."""

class _SdcaOptimizerOutputs(typing.NamedTuple):
    out_example_state_data: _Tensor
    out_delta_sparse_weights: list[_Tensor]
    out_delta_dense_weights: list[_Tensor]

def SdcaOptimizer(
    *,
    sparse_example_indices: collections.abc.Sequence[_Input],
    sparse_feature_indices: collections.abc.Sequence[_Input],
    sparse_feature_values: collections.abc.Sequence[_Input],
    dense_features: collections.abc.Sequence[_Input],
    example_weights: _Input,
    example_labels: _Input,
    sparse_indices: collections.abc.Sequence[_Input],
    sparse_weights: collections.abc.Sequence[_Input],
    dense_weights: collections.abc.Sequence[_Input],
    example_state_data: _Input,
    loss_type: typing.Literal['logistic_loss', 'squared_loss', 'hinge_loss', 'smooth_hinge_loss', 'poisson_loss'],
    l1: float,
    l2: float,
    num_loss_partitions: int,
    num_inner_iterations: int,
    adaptative: bool = False,
    name: str | None = None,
) -> _SdcaOptimizerOutputs:
    """        Trains a linear model on a batch of examples, each once: gives the changes of its weights."""

class _SdcaOptimizerV2Outputs(typing.NamedTuple):
    out_example_state_data: _Tensor
    out_delta_sparse_weights: list[_Tensor]
    out_delta_dense_weights: list[_Tensor]

def SdcaOptimizerV2(
    *,
    sparse_example_indices: collections.abc.Sequence[_Input],
    sparse_feature_indices: collections.abc.Sequence[_Input],
    sparse_feature_values: collections.abc.Sequence[_Input],
    dense_features: collections.abc.Sequence[_Input],
    example_weights: _Input,
    example_labels: _Input,
    sparse_indices: collections.abc.Sequence[_Input],
    sparse_weights: collections.abc.Sequence[_Input],
    dense_weights: collections.abc.Sequence[_Input],
    example_state_data: _Input,
    loss_type: typing.Literal['logistic_loss', 'squared_loss', 'hinge_loss', 'smooth_hinge_loss', 'poisson_loss'],
    l1: float,
    l2: float,
    num_loss_partitions: int,
    num_inner_iterations: int,
    adaptive: bool = False,
    name: str | None = None,
) -> _SdcaOptimizerV2Outputs:
    """        Trains a linear model on a batch of examples, each once: gives the changes of its weights."""

def SdcaShrinkL1(
    *,
    weights: collections.abc.Sequence[_Input],
    l1: float,
    l2: float,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Brings weights nearer to 0 by l1 / l2, in place; those that are nearer become 0."""

def SegmentMax(
    *,
    data: _Input,
    segment_ids: _Input,
    name: str | None = None,
) -> _Tensor:
    """Max of the rows of `data` of each segment; `segment_ids`, [rows], is sorted."""

def SegmentMaxV2(
    *,
    data: _Input,
    segment_ids: _Input,
    num_segments: _Input,
    name: str | None = None,
) -> _Tensor:
    """Reduce the parts of `data` of each of `num_segments` segments to one."""

def SegmentMean(
    *,
    data: _Input,
    segment_ids: _Input,
    name: str | None = None,
) -> _Tensor:
    """Mean of the rows of `data` of each segment; `segment_ids`, [rows], is sorted."""

def SegmentMin(
    *,
    data: _Input,
    segment_ids: _Input,
    name: str | None = None,
) -> _Tensor:
    """Min of the rows of `data` of each segment; `segment_ids`, [rows], is sorted."""

def SegmentMinV2(
    *,
    data: _Input,
    segment_ids: _Input,
    num_segments: _Input,
    name: str | None = None,
) -> _Tensor:
    """Reduce the parts of `data` of each of `num_segments` segments to one."""

def SegmentProd(
    *,
    data: _Input,
    segment_ids: _Input,
    name: str | None = None,
) -> _Tensor:
    """Prod of the rows of `data` of each segment; `segment_ids`, [rows], is sorted."""

def SegmentProdV2(
    *,
    data: _Input,
    segment_ids: _Input,
    num_segments: _Input,
    name: str | None = None,
) -> _Tensor:
    """Reduce the parts of `data` of each of `num_segments` segments to one."""

def SegmentSum(
    *,
    data: _Input,
    segment_ids: _Input,
    name: str | None = None,
) -> _Tensor:
    """Sum of the rows of `data` of each segment; `segment_ids`, [rows], is sorted."""

def SegmentSumV2(
    *,
    data: _Input,
    segment_ids: _Input,
    num_segments: _Input,
    name: str | None = None,
) -> _Tensor:
    """Reduce the parts of `data` of each of `num_segments` segments to one."""

def Select(
    *,
    condition: _Input,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """Elements of `t` where `condition` is true, of `e` elsewhere. `condition` has their shape, or is a scalar, or a vector that chooses whole rows."""

def SelectV2(
    *,
    condition: _Input,
    t: _Input,
    e: _Input,
    name: str | None = None,
) -> _Tensor:
    """Elements of `t` where `condition` is true, of `e` elsewhere; all three are broadcast."""

def SelfAdjointEig(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The eigenvalues, in ascending order, and below them the eigenvectors of SelfAdjointEigV2."""

class _SelfAdjointEigV2Outputs(typing.NamedTuple):
    e: _Tensor
    v: _Tensor

def SelfAdjointEigV2(
    *,
    input: _Input,
    compute_v: bool = True,
    name: str | None = None,
) -> _SelfAdjointEigV2Outputs:
    """The eigenvalues, in ascending order, and eigenvectors of matrices given by their lower triangles."""

def Selu(
    *,
    features: _Input,
    name: str | None = None,
) -> _Tensor:
    """scale * features; scale * alpha * (exp(features) - 1) below 0."""

def SeluGrad(
    *,
    gradients: _Input,
    outputs: _Input,
    name: str | None = None,
) -> _Tensor:
    """The gradient of Selu, from that of its result and `outputs`."""

def Send(
    *,
    tensor: _Input,
    tensor_name: str | bytes,
    send_device: str | bytes,
    send_device_incarnation: int,
    recv_device: str | bytes,
    client_terminated: bool = False,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Hands a tensor over to the node that receives it."""

def SendTPUEmbeddingGradients(
    *,
    inputs: collections.abc.Sequence[_Input],
    learning_rates: collections.abc.Sequence[_Input],
    config: str | bytes,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def SerializeIterator(
    *,
    resource_handle: _Input,
    external_state_policy: int = 0,
    name: str | None = None,
) -> _Tensor:
    """The state of an iterator, as a vector of variants."""

def SerializeManySparse(
    *,
    sparse_indices: _Input,
    sparse_values: _Input,
    sparse_shape: _Input,
    out_type: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """SerializeSparse of each row of a sparse tensor: the part of one index of the first dimension."""

def SerializeSparse(
    *,
    sparse_indices: _Input,
    sparse_values: _Input,
    sparse_shape: _Input,
    out_type: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The three tensors of a sparse tensor, as TensorProtos or in variants."""

def SerializeTensor(
    *,
    tensor: _Input,
    name: str | None = None,
) -> _Tensor:
    """A tensor as a serialized TensorProto."""

def SetSize(
    *,
    set_indices: _Input,
    set_values: _Input,
    set_shape: _Input,
    validate_indices: bool = True,
    name: str | None = None,
) -> _Tensor:
    """How many different members each set has."""

def SetStatsAggregatorDataset(
    *,
    input_dataset: _Input,
    stats_aggregator: _Input,
    tag: _Input,
    counter_prefix: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`, whose statistics a collector may have."""

def Shape(
    *,
    input: _Input,
    out_type: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The shape of `input`, as a vector."""

def ShapeN(
    *,
    input: collections.abc.Sequence[_Input],
    out_type: _Type = ...,
    name: str | None = None,
) -> list[_Tensor]:
    """The shape of each tensor of `input`, as a vector."""

def ShardDataset(
    *,
    input_dataset: _Input,
    num_shards: _Input,
    index: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    require_non_empty: bool = False,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Every `num_shards`-th element, beginning with the element number `index`."""

def ShardedFilename(
    *,
    basename: _Input,
    shard: _Input,
    num_shards: _Input,
    name: str | None = None,
) -> _Tensor:
    """The name of one part: `basename-00003-of-00010`."""

def ShardedFilespec(
    *,
    basename: _Input,
    num_shards: _Input,
    name: str | None = None,
) -> _Tensor:
    """The pattern of the names of all parts: `basename-?????-of-00010`."""

def ShuffleAndRepeatDataset(
    *,
    input_dataset: _Input,
    buffer_size: _Input,
    seed: _Input,
    seed2: _Input,
    count: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    reshuffle_each_iteration: bool = True,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements `count` times, each time in random order."""

def ShuffleAndRepeatDatasetV2(
    *,
    input_dataset: _Input,
    buffer_size: _Input,
    seed: _Input,
    seed2: _Input,
    count: _Input,
    seed_generator: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    reshuffle_each_iteration: bool = True,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements `count` times, each time in random order."""

def ShuffleDataset(
    *,
    input_dataset: _Input,
    buffer_size: _Input,
    seed: _Input,
    seed2: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    reshuffle_each_iteration: bool = True,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements in random order: each is drawn from a buffer of `buffer_size` elements."""

def ShuffleDatasetV2(
    *,
    input_dataset: _Input,
    buffer_size: _Input,
    seed_generator: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements in random order: each is drawn from a buffer of `buffer_size` elements."""

def ShuffleDatasetV3(
    *,
    input_dataset: _Input,
    buffer_size: _Input,
    seed: _Input,
    seed2: _Input,
    seed_generator: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    reshuffle_each_iteration: bool = True,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements in random order: each is drawn from a buffer of `buffer_size` elements."""

def ShutdownDistributedTPU(
    *,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def ShutdownTPUSystem(
    *,
    name: str | None = None,
) -> _Tensor: ...

def Sigmoid(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """`1 / (1 + e ** -x)`."""

def SigmoidGrad(
    *,
    y: _Input,
    dy: _Input,
    name: str | None = None,
) -> _Tensor:
    """`dy * y * (1 - y)`, for `y = sigmoid(x)`."""

def Sign(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """-1, 0 or 1 by the sign of `x`, NaN for NaN; of a complex number, `x / |x|`."""

def Simple(
    *,
    a: _Input,
    name: str | None = None,
) -> _Tensor: ...

def SimpleStruct(
    *,
    n_a: int,
    name: str | None = None,
) -> list[_Tensor]: ...

def Sin(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The sine of `x`, in radians."""

def Sinh(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The hyperbolic sine of `x`."""

def Size(
    *,
    input: _Input,
    out_type: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The number of elements of `input`."""

def SkipDataset(
    *,
    input_dataset: _Input,
    count: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """All but the first `count` elements; none where it is negative."""

class _SkipgramOutputs(typing.NamedTuple):
    vocab_word: _Tensor
    vocab_freq: _Tensor
    words_per_epoch: _Tensor
    current_epoch: _Tensor
    total_words_processed: _Tensor
    examples: _Tensor
    labels: _Tensor

def Skipgram(
    *,
    filename: str | bytes,
    batch_size: int,
    window_size: int = 5,
    min_count: int = 5,
    subsample: float = 0.001,
    name: str | None = None,
) -> _SkipgramOutputs: ...

def SleepDataset(
    *,
    input_dataset: _Input,
    sleep_microseconds: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements, each after a pause."""

def SleepIdentityOp(
    *,
    sleep_seconds: _Input,
    input: _Input,
    name: str | None = None,
) -> _Tensor: ...

def SleepOp(
    *,
    sleep_seconds: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def Slice(
    *,
    input: _Input,
    begin: _Input,
    size: _Input,
    name: str | None = None,
) -> _Tensor:
    """The block of `input` that starts at `begin` and has shape `size`; -1 is all that is left."""

def SlidingWindowDataset(
    *,
    input_dataset: _Input,
    window_size: _Input,
    window_shift: _Input,
    window_stride: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    drop_remainder: bool = True,
    name: str | None = None,
) -> _Tensor:
    """Batches of `window_size` elements that are `window_stride` apart."""

def Snapshot(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """A copy of `input`."""

def SnapshotChunkDataset(
    *,
    chunk_file: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    compression: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements of a file of a distributed snapshot."""

def SnapshotDataset(
    *,
    input_dataset: _Input,
    path: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    compression: str | bytes = '',
    reader_path_prefix: str | bytes = '',
    writer_path_prefix: str | bytes = '',
    shard_size_bytes: int = 10737418240,
    pending_snapshot_expiry_seconds: int = 86400,
    num_reader_threads: int = 1,
    reader_buffer_size: int = 1,
    num_writer_threads: int = 1,
    writer_buffer_size: int = 1,
    shuffle_on_read: bool = False,
    seed: int = 0,
    seed2: int = 0,
    mode: str | bytes = 'auto',
    snapshot_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`, which a whole pass writes to a file for later ones."""

def SnapshotDatasetReader(
    *,
    shard_dir: _Input,
    start_index: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    version: int,
    compression: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements of the files of a shard."""

def SnapshotDatasetV2(
    *,
    input_dataset: _Input,
    path: _Input,
    reader_func_other_args: collections.abc.Sequence[_Input],
    shard_func_other_args: collections.abc.Sequence[_Input],
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    reader_func: _Func,
    shard_func: _Func,
    compression: str | bytes = '',
    reader_prefix: str | bytes = '',
    writer_prefix: str | bytes = '',
    hash_valid: bool = False,
    hash: int = 0,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`, which a whole pass writes to files for later ones."""

def SnapshotNestedDatasetReader(
    *,
    inputs: collections.abc.Sequence[_Input],
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """A dataset of the datasets `inputs`."""

def SobolSample(
    *,
    dim: _Input,
    num_results: _Input,
    skip: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """Points of the Sobol sequence of `dim` coordinates, `skip` of them left out first."""

def Softmax(
    *,
    logits: _Input,
    name: str | None = None,
) -> _Tensor:
    """exp(logits), divided by its sum along the last dimension."""

class _SoftmaxCrossEntropyWithLogitsOutputs(typing.NamedTuple):
    loss: _Tensor
    backprop: _Tensor

def SoftmaxCrossEntropyWithLogits(
    *,
    features: _Input,
    labels: _Input,
    name: str | None = None,
) -> _SoftmaxCrossEntropyWithLogitsOutputs:
    """The cross entropy of each row of softmax(features) with the same row of `labels`."""

def Softplus(
    *,
    features: _Input,
    name: str | None = None,
) -> _Tensor:
    """log(exp(features) + 1)."""

def SoftplusGrad(
    *,
    gradients: _Input,
    features: _Input,
    name: str | None = None,
) -> _Tensor:
    """The gradient of Softplus, from that of its result and `features`."""

def Softsign(
    *,
    features: _Input,
    name: str | None = None,
) -> _Tensor:
    """features / (abs(features) + 1)."""

def SoftsignGrad(
    *,
    gradients: _Input,
    features: _Input,
    name: str | None = None,
) -> _Tensor:
    """The gradient of Softsign, from that of its result and `features`."""

class _SortListOfSparseCoreCooTensorsOutputs(typing.NamedTuple):
    sorted_row_ids: _Tensor
    sorted_col_ids: _Tensor
    sorted_gains: _Tensor
    id_counts: _Tensor

def SortListOfSparseCoreCooTensors(
    *,
    row_ids_list: collections.abc.Sequence[_Input],
    col_ids_list: collections.abc.Sequence[_Input],
    gains_list: collections.abc.Sequence[_Input],
    sample_count_list: collections.abc.Sequence[int],
    col_offset_list: collections.abc.Sequence[int],
    num_replica: int,
    table_vocab_size: int,
    feature_width: int,
    num_sc_per_chip: int,
    max_ids_per_sparse_core: int,
    max_unique_ids_per_sparse_core: int,
    table_name: str | bytes,
    name: str | None = None,
) -> _SortListOfSparseCoreCooTensorsOutputs: ...

def SpaceToBatch(
    *,
    input: _Input,
    paddings: _Input,
    block_size: int,
    name: str | None = None,
) -> _Tensor:
    """SpaceToBatchND of images [batch, height, width, depth] with square blocks."""

def SpaceToBatchND(
    *,
    input: _Input,
    block_shape: _Input,
    paddings: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input`, padded with zeros, with the places within each block moved into the batch."""

def SpaceToDepth(
    *,
    input: _Input,
    block_size: int,
    data_format: typing.Literal['NHWC', 'NCHW', 'NCHW_VECT_C'] = 'NHWC',
    name: str | None = None,
) -> _Tensor:
    """Images `input` with the places within each block moved into the depth."""

def SparseAccumulatorApplyGradient(
    *,
    handle: _Input,
    local_step: _Input,
    gradient_indices: _Input,
    gradient_values: _Input,
    gradient_shape: _Input,
    has_known_shape: bool,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Adds rows of a gradient, unless it is stale."""

class _SparseAccumulatorTakeGradientOutputs(typing.NamedTuple):
    indices: _Tensor
    values: _Tensor
    shape: _Tensor

def SparseAccumulatorTakeGradient(
    *,
    handle: _Input,
    num_required: _Input,
    dtype: _Type,
    name: str | None = None,
) -> _SparseAccumulatorTakeGradientOutputs:
    """Takes the mean, or sum, of the rows out; waits until there are enough gradients."""

class _SparseAddOutputs(typing.NamedTuple):
    sum_indices: _Tensor
    sum_values: _Tensor
    sum_shape: _Tensor

def SparseAdd(
    *,
    a_indices: _Input,
    a_values: _Input,
    a_shape: _Input,
    b_indices: _Input,
    b_values: _Input,
    b_shape: _Input,
    thresh: _Input,
    name: str | None = None,
) -> _SparseAddOutputs:
    """The sum of two sparse tensors; sums of two entries that are smaller than `thresh` are left out."""

class _SparseAddGradOutputs(typing.NamedTuple):
    a_val_grad: _Tensor
    b_val_grad: _Tensor

def SparseAddGrad(
    *,
    backprop_val_grad: _Input,
    a_indices: _Input,
    b_indices: _Input,
    sum_indices: _Input,
    name: str | None = None,
) -> _SparseAddGradOutputs:
    """The gradients of the values of both operands of SparseAdd."""

def SparseApplyAdadelta(
    *,
    var: _Input,
    accum: _Input,
    accum_update: _Input,
    lr: _Input,
    rho: _Input,
    epsilon: _Input,
    grad: _Input,
    indices: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of Adadelta on some rows of `var` and its slots."""

def SparseApplyAdagrad(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    grad: _Input,
    indices: _Input,
    use_locking: bool = False,
    update_slots: bool = True,
    name: str | None = None,
) -> _Tensor:
    """A step of Adagrad on some rows of `var` and its slots."""

def SparseApplyAdagradDA(
    *,
    var: _Input,
    gradient_accumulator: _Input,
    gradient_squared_accumulator: _Input,
    grad: _Input,
    indices: _Input,
    lr: _Input,
    l1: _Input,
    l2: _Input,
    global_step: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of AdagradDA on some rows of `var` and its slots."""

def SparseApplyAdagradV2(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    epsilon: _Input,
    grad: _Input,
    indices: _Input,
    use_locking: bool = False,
    update_slots: bool = True,
    name: str | None = None,
) -> _Tensor:
    """A step of AdagradV2 on some rows of `var` and its slots."""

def SparseApplyCenteredRMSProp(
    *,
    var: _Input,
    mg: _Input,
    ms: _Input,
    mom: _Input,
    lr: _Input,
    rho: _Input,
    momentum: _Input,
    epsilon: _Input,
    grad: _Input,
    indices: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of CenteredRMSProp on some rows of `var` and its slots."""

def SparseApplyFtrl(
    *,
    var: _Input,
    accum: _Input,
    linear: _Input,
    grad: _Input,
    indices: _Input,
    lr: _Input,
    l1: _Input,
    l2: _Input,
    lr_power: _Input,
    use_locking: bool = False,
    multiply_linear_by_lr: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of Ftrl on some rows of `var` and its slots."""

def SparseApplyFtrlV2(
    *,
    var: _Input,
    accum: _Input,
    linear: _Input,
    grad: _Input,
    indices: _Input,
    lr: _Input,
    l1: _Input,
    l2: _Input,
    l2_shrinkage: _Input,
    lr_power: _Input,
    use_locking: bool = False,
    multiply_linear_by_lr: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of FtrlV2 on some rows of `var` and its slots."""

def SparseApplyMomentum(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    grad: _Input,
    indices: _Input,
    momentum: _Input,
    use_locking: bool = False,
    use_nesterov: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of Momentum on some rows of `var` and its slots."""

def SparseApplyProximalAdagrad(
    *,
    var: _Input,
    accum: _Input,
    lr: _Input,
    l1: _Input,
    l2: _Input,
    grad: _Input,
    indices: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of ProximalAdagrad on some rows of `var` and its slots."""

def SparseApplyProximalGradientDescent(
    *,
    var: _Input,
    alpha: _Input,
    l1: _Input,
    l2: _Input,
    grad: _Input,
    indices: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of ProximalGradientDescent on some rows of `var` and its slots."""

def SparseApplyRMSProp(
    *,
    var: _Input,
    ms: _Input,
    mom: _Input,
    lr: _Input,
    rho: _Input,
    momentum: _Input,
    epsilon: _Input,
    grad: _Input,
    indices: _Input,
    use_locking: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A step of RMSProp on some rows of `var` and its slots."""

def SparseBincount(
    *,
    indices: _Input,
    values: _Input,
    dense_shape: _Input,
    size: _Input,
    weights: _Input,
    binary_output: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The sum of the weights of each value of a sparse vector, or row of a matrix."""

class _SparseConcatOutputs(typing.NamedTuple):
    output_indices: _Tensor
    output_values: _Tensor
    output_shape: _Tensor

def SparseConcat(
    *,
    indices: collections.abc.Sequence[_Input],
    values: collections.abc.Sequence[_Input],
    shapes: collections.abc.Sequence[_Input],
    concat_dim: int,
    name: str | None = None,
) -> _SparseConcatOutputs:
    """Sparse tensors one after the other along a dimension."""

def SparseConditionalAccumulator(
    *,
    dtype: _Type,
    shape: _Shape,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    reduction_type: typing.Literal['MEAN', 'SUM'] = 'MEAN',
    name: str | None = None,
) -> _Tensor:
    """An accumulator of gradients."""

class _SparseCountSparseOutputOutputs(typing.NamedTuple):
    output_indices: _Tensor
    output_values: _Tensor
    output_dense_shape: _Tensor

def SparseCountSparseOutput(
    *,
    indices: _Input,
    values: _Input,
    dense_shape: _Input,
    weights: _Input,
    binary_output: bool,
    minlength: int = -1,
    maxlength: int = -1,
    name: str | None = None,
) -> _SparseCountSparseOutputOutputs:
    """How often each value is in a sparse vector, or in each row, or higher part, of a sparse matrix or tensor."""

class _SparseCrossOutputs(typing.NamedTuple):
    output_indices: _Tensor
    output_values: _Tensor
    output_shape: _Tensor

def SparseCross(
    *,
    indices: collections.abc.Sequence[_Input],
    values: collections.abc.Sequence[_Input],
    shapes: collections.abc.Sequence[_Input],
    dense_inputs: collections.abc.Sequence[_Input],
    hashed_output: bool,
    num_buckets: int,
    hash_key: int,
    out_type: _Type,
    internal_type: _Type,
    name: str | None = None,
) -> _SparseCrossOutputs:
    """The combinations of the features of each row, joined by _X_ or hashed."""

class _SparseCrossHashedOutputs(typing.NamedTuple):
    output_indices: _Tensor
    output_values: _Tensor
    output_shape: _Tensor

def SparseCrossHashed(
    *,
    indices: collections.abc.Sequence[_Input],
    values: collections.abc.Sequence[_Input],
    shapes: collections.abc.Sequence[_Input],
    dense_inputs: collections.abc.Sequence[_Input],
    num_buckets: _Input,
    strong_hash: _Input,
    salt: _Input,
    name: str | None = None,
) -> _SparseCrossHashedOutputs:
    """The hashes of the combinations of the features of each row, modulo `num_buckets` unless 0."""

class _SparseCrossV2Outputs(typing.NamedTuple):
    output_indices: _Tensor
    output_values: _Tensor
    output_shape: _Tensor

def SparseCrossV2(
    *,
    indices: collections.abc.Sequence[_Input],
    values: collections.abc.Sequence[_Input],
    shapes: collections.abc.Sequence[_Input],
    dense_inputs: collections.abc.Sequence[_Input],
    sep: _Input,
    name: str | None = None,
) -> _SparseCrossV2Outputs:
    """The combinations of the features of each row, joined by `sep`."""

def SparseDenseCwiseAdd(
    *,
    sp_indices: _Input,
    sp_values: _Input,
    sp_shape: _Input,
    dense: _Input,
    name: str | None = None,
) -> _Tensor:
    """The values of a sparse tensor, plus the elements of a dense one at their places."""

def SparseDenseCwiseDiv(
    *,
    sp_indices: _Input,
    sp_values: _Input,
    sp_shape: _Input,
    dense: _Input,
    name: str | None = None,
) -> _Tensor:
    """The values of a sparse tensor, divided by the elements of a dense one at their places."""

def SparseDenseCwiseMul(
    *,
    sp_indices: _Input,
    sp_values: _Input,
    sp_shape: _Input,
    dense: _Input,
    name: str | None = None,
) -> _Tensor:
    """The values of a sparse tensor, times the elements of a dense one at their places."""

class _SparseFillEmptyRowsOutputs(typing.NamedTuple):
    output_indices: _Tensor
    output_values: _Tensor
    empty_row_indicator: _Tensor
    reverse_index_map: _Tensor

def SparseFillEmptyRows(
    *,
    indices: _Input,
    values: _Input,
    dense_shape: _Input,
    default_value: _Input,
    name: str | None = None,
) -> _SparseFillEmptyRowsOutputs:
    """A sparse tensor with the default value in the first column of each row without entries."""

class _SparseFillEmptyRowsGradOutputs(typing.NamedTuple):
    d_values: _Tensor
    d_default_value: _Tensor

def SparseFillEmptyRowsGrad(
    *,
    reverse_index_map: _Input,
    grad_values: _Input,
    name: str | None = None,
) -> _SparseFillEmptyRowsGradOutputs:
    """The gradients of the values and of the default value of SparseFillEmptyRows."""

def SparseMatMul(
    *,
    a: _Input,
    b: _Input,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> _Tensor:
    """As MatMul, in float; `a_is_sparse` and `b_is_sparse` hint at matrices of many zeros."""

def SparseMatrixAdd(
    *,
    a: _Input,
    b: _Input,
    alpha: _Input,
    beta: _Input,
    name: str | None = None,
) -> _Tensor: ...

def SparseMatrixMatMul(
    *,
    a: _Input,
    b: _Input,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    transpose_output: bool = False,
    conjugate_output: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The product of a sparse matrix and a dense one, or of each pair of two batches."""

def SparseMatrixMul(
    *,
    a: _Input,
    b: _Input,
    name: str | None = None,
) -> _Tensor: ...

def SparseMatrixNNZ(
    *,
    sparse_matrix: _Input,
    name: str | None = None,
) -> _Tensor:
    """How many entries each matrix has."""

def SparseMatrixOrderingAMD(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """A permutation of rows and columns that keeps the Cholesky factor sparse: least degree first."""

def SparseMatrixSoftmax(
    *,
    logits: _Input,
    type: _Type,
    name: str | None = None,
) -> _Tensor: ...

def SparseMatrixSoftmaxGrad(
    *,
    softmax: _Input,
    grad_softmax: _Input,
    type: _Type,
    name: str | None = None,
) -> _Tensor: ...

def SparseMatrixSparseCholesky(
    *,
    input: _Input,
    permutation: _Input,
    type: _Type,
    name: str | None = None,
) -> _Tensor:
    """The Cholesky factor of a sparse matrix whose rows and columns are permuted; its lower half counts."""

def SparseMatrixSparseMatMul(
    *,
    a: _Input,
    b: _Input,
    type: _Type,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The product of two sparse matrices, or of each pair of two batches."""

def SparseMatrixTranspose(
    *,
    input: _Input,
    type: _Type,
    conjugate: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The transposed sparse matrix, of the conjugate numbers if `conjugate`."""

def SparseMatrixZeros(
    *,
    dense_shape: _Input,
    type: _Type,
    name: str | None = None,
) -> _Tensor: ...

def SparseReduceMax(
    *,
    input_indices: _Input,
    input_values: _Input,
    input_shape: _Input,
    reduction_axes: _Input,
    keep_dims: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The maximum of the entries of a sparse tensor over the given dimensions; 0 where there are none."""

class _SparseReduceMaxSparseOutputs(typing.NamedTuple):
    output_indices: _Tensor
    output_values: _Tensor
    output_shape: _Tensor

def SparseReduceMaxSparse(
    *,
    input_indices: _Input,
    input_values: _Input,
    input_shape: _Input,
    reduction_axes: _Input,
    keep_dims: bool = False,
    name: str | None = None,
) -> _SparseReduceMaxSparseOutputs:
    """The maximum of the entries of a sparse tensor over the given dimensions, as a sparse tensor."""

def SparseReduceSum(
    *,
    input_indices: _Input,
    input_values: _Input,
    input_shape: _Input,
    reduction_axes: _Input,
    keep_dims: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The sum of the entries of a sparse tensor over the given dimensions; 0 where there are none."""

class _SparseReduceSumSparseOutputs(typing.NamedTuple):
    output_indices: _Tensor
    output_values: _Tensor
    output_shape: _Tensor

def SparseReduceSumSparse(
    *,
    input_indices: _Input,
    input_values: _Input,
    input_shape: _Input,
    reduction_axes: _Input,
    keep_dims: bool = False,
    name: str | None = None,
) -> _SparseReduceSumSparseOutputs:
    """The sum of the entries of a sparse tensor over the given dimensions, as a sparse tensor."""

class _SparseReorderOutputs(typing.NamedTuple):
    output_indices: _Tensor
    output_values: _Tensor

def SparseReorder(
    *,
    input_indices: _Input,
    input_values: _Input,
    input_shape: _Input,
    name: str | None = None,
) -> _SparseReorderOutputs:
    """The entries of a sparse tensor sorted by their indices, the first dimension first."""

class _SparseReshapeOutputs(typing.NamedTuple):
    output_indices: _Tensor
    output_shape: _Tensor

def SparseReshape(
    *,
    input_indices: _Input,
    input_shape: _Input,
    new_shape: _Input,
    name: str | None = None,
) -> _SparseReshapeOutputs:
    """The indices and the shape of a sparse tensor in another shape, of which one size may be -1."""

def SparseSegmentMean(
    *,
    data: _Input,
    indices: _Input,
    segment_ids: _Input,
    sparse_gradient: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The means of the rows `indices` of `data`, by the sorted `segment_ids`."""

def SparseSegmentMeanGrad(
    *,
    grad: _Input,
    indices: _Input,
    segment_ids: _Input,
    output_dim0: _Input,
    name: str | None = None,
) -> _Tensor:
    """The gradient of SparseSegmentMean with respect to its data, of `output_dim0` rows."""

class _SparseSegmentMeanGradV2Outputs(typing.NamedTuple):
    output: _Tensor
    sorted_unique_indices: _Tensor

def SparseSegmentMeanGradV2(
    *,
    grad: _Input,
    indices: _Input,
    segment_ids: _Input,
    dense_output_dim0: _Input,
    name: str | None = None,
) -> _SparseSegmentMeanGradV2Outputs:
    """The rows of the gradient of SparseSegmentMean that need not be 0, and their indices."""

def SparseSegmentMeanWithNumSegments(
    *,
    data: _Input,
    indices: _Input,
    segment_ids: _Input,
    num_segments: _Input,
    sparse_gradient: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The means of the rows `indices` of `data`, by the sorted `segment_ids`."""

def SparseSegmentSqrtN(
    *,
    data: _Input,
    indices: _Input,
    segment_ids: _Input,
    sparse_gradient: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The sums, divided by the roots of the numbers of rows, of the rows `indices` of `data`, by the sorted `segment_ids`."""

def SparseSegmentSqrtNGrad(
    *,
    grad: _Input,
    indices: _Input,
    segment_ids: _Input,
    output_dim0: _Input,
    name: str | None = None,
) -> _Tensor:
    """The gradient of SparseSegmentSqrtN with respect to its data, of `output_dim0` rows."""

class _SparseSegmentSqrtNGradV2Outputs(typing.NamedTuple):
    output: _Tensor
    sorted_unique_indices: _Tensor

def SparseSegmentSqrtNGradV2(
    *,
    grad: _Input,
    indices: _Input,
    segment_ids: _Input,
    dense_output_dim0: _Input,
    name: str | None = None,
) -> _SparseSegmentSqrtNGradV2Outputs:
    """The rows of the gradient of SparseSegmentSqrtN that need not be 0, and their indices."""

def SparseSegmentSqrtNWithNumSegments(
    *,
    data: _Input,
    indices: _Input,
    segment_ids: _Input,
    num_segments: _Input,
    sparse_gradient: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The sums, divided by the roots of the numbers of rows, of the rows `indices` of `data`, by the sorted `segment_ids`."""

def SparseSegmentSum(
    *,
    data: _Input,
    indices: _Input,
    segment_ids: _Input,
    sparse_gradient: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The sums of the rows `indices` of `data`, by the sorted `segment_ids`."""

def SparseSegmentSumGrad(
    *,
    grad: _Input,
    indices: _Input,
    segment_ids: _Input,
    output_dim0: _Input,
    name: str | None = None,
) -> _Tensor:
    """The gradient of SparseSegmentSum with respect to its data, of `output_dim0` rows."""

class _SparseSegmentSumGradV2Outputs(typing.NamedTuple):
    output: _Tensor
    sorted_unique_indices: _Tensor

def SparseSegmentSumGradV2(
    *,
    grad: _Input,
    indices: _Input,
    segment_ids: _Input,
    dense_output_dim0: _Input,
    name: str | None = None,
) -> _SparseSegmentSumGradV2Outputs:
    """The rows of the gradient of SparseSegmentSum that need not be 0, and their indices."""

def SparseSegmentSumWithNumSegments(
    *,
    data: _Input,
    indices: _Input,
    segment_ids: _Input,
    num_segments: _Input,
    sparse_gradient: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The sums of the rows `indices` of `data`, by the sorted `segment_ids`."""

class _SparseSliceOutputs(typing.NamedTuple):
    output_indices: _Tensor
    output_values: _Tensor
    output_shape: _Tensor

def SparseSlice(
    *,
    indices: _Input,
    values: _Input,
    shape: _Input,
    start: _Input,
    size: _Input,
    name: str | None = None,
) -> _SparseSliceOutputs:
    """The part of a sparse tensor from `start` on, of `size` where the tensor is that large."""

def SparseSliceGrad(
    *,
    backprop_val_grad: _Input,
    input_indices: _Input,
    input_start: _Input,
    output_indices: _Input,
    name: str | None = None,
) -> _Tensor:
    """The gradient of the values of SparseSlice: 0 for the values that it left out."""

def SparseSoftmax(
    *,
    sp_indices: _Input,
    sp_values: _Input,
    sp_shape: _Input,
    name: str | None = None,
) -> _Tensor:
    """The softmax over the entries of each row of the last dimension, in the order of sorted indices."""

class _SparseSoftmaxCrossEntropyWithLogitsOutputs(typing.NamedTuple):
    loss: _Tensor
    backprop: _Tensor

def SparseSoftmaxCrossEntropyWithLogits(
    *,
    features: _Input,
    labels: _Input,
    name: str | None = None,
) -> _SparseSoftmaxCrossEntropyWithLogitsOutputs:
    """The cross entropy of each row of softmax(features) with the certainty of one class."""

class _SparseSparseMaximumOutputs(typing.NamedTuple):
    output_indices: _Tensor
    output_values: _Tensor

def SparseSparseMaximum(
    *,
    a_indices: _Input,
    a_values: _Input,
    a_shape: _Input,
    b_indices: _Input,
    b_values: _Input,
    b_shape: _Input,
    name: str | None = None,
) -> _SparseSparseMaximumOutputs:
    """The larger of each two elements; an entry that is missing counts as 0."""

class _SparseSparseMinimumOutputs(typing.NamedTuple):
    output_indices: _Tensor
    output_values: _Tensor

def SparseSparseMinimum(
    *,
    a_indices: _Input,
    a_values: _Input,
    a_shape: _Input,
    b_indices: _Input,
    b_values: _Input,
    b_shape: _Input,
    name: str | None = None,
) -> _SparseSparseMinimumOutputs:
    """The smaller of each two elements; an entry that is missing counts as 0."""

class _SparseSplitOutputs(typing.NamedTuple):
    output_indices: list[_Tensor]
    output_values: list[_Tensor]
    output_shape: list[_Tensor]

def SparseSplit(
    *,
    split_dim: _Input,
    indices: _Input,
    values: _Input,
    shape: _Input,
    num_split: int,
    name: str | None = None,
) -> _SparseSplitOutputs:
    """A sparse tensor cut into `num_split` parts along a dimension, the first ones larger by 1."""

def SparseTensorDenseAdd(
    *,
    a_indices: _Input,
    a_values: _Input,
    a_shape: _Input,
    b: _Input,
    name: str | None = None,
) -> _Tensor:
    """The sum of a sparse tensor and a dense one."""

def SparseTensorDenseMatMul(
    *,
    a_indices: _Input,
    a_values: _Input,
    a_shape: _Input,
    b: _Input,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The product of a sparse matrix, whose entries may come in any order, with a dense one."""

def SparseTensorSliceDataset(
    *,
    indices: _Input,
    values: _Input,
    dense_shape: _Input,
    name: str | None = None,
) -> _Tensor:
    """A dataset whose elements are the rows of a sparse tensor: their indices, values and shape."""

def SparseTensorToCSRSparseMatrix(
    *,
    indices: _Input,
    values: _Input,
    dense_shape: _Input,
    name: str | None = None,
) -> _Tensor:
    """The sparse matrix, or the batch of them, of a sparse tensor whose indices are sorted."""

def SparseToDense(
    *,
    sparse_indices: _Input,
    output_shape: _Input,
    sparse_values: _Input,
    default_value: _Input,
    validate_indices: bool = True,
    name: str | None = None,
) -> _Tensor:
    """The tensor with the values at the indices, and the default value everywhere else."""

class _SparseToSparseSetOperationOutputs(typing.NamedTuple):
    result_indices: _Tensor
    result_values: _Tensor
    result_shape: _Tensor

def SparseToSparseSetOperation(
    *,
    set1_indices: _Input,
    set1_values: _Input,
    set1_shape: _Input,
    set2_indices: _Input,
    set2_values: _Input,
    set2_shape: _Input,
    set_operation: str | bytes,
    validate_indices: bool = True,
    name: str | None = None,
) -> _SparseToSparseSetOperationOutputs:
    """DenseToDenseSetOperation whose sets are sparse tensors."""

def Spence(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """Spence's integral: of `log(t) / (1 - t)` from 1 to x."""

def Split(
    *,
    axis: _Input,
    value: _Input,
    num_split: int,
    name: str | None = None,
) -> list[_Tensor]:
    """`value` in `num_split` equal parts along dimension `split_dim`."""

class _SplitDedupDataOutputs(typing.NamedTuple):
    integer_tensor: _Tensor
    float_tensor: _Tensor

def SplitDedupData(
    *,
    input: _Input,
    integer_type: _Type,
    float_type: _Type,
    tuple_mask: str | bytes,
    config: str | bytes = '',
    name: str | None = None,
) -> _SplitDedupDataOutputs: ...

def SplitV(
    *,
    value: _Input,
    size_splits: _Input,
    axis: _Input,
    num_split: int,
    name: str | None = None,
) -> list[_Tensor]:
    """`value` in parts of sizes `size_splits` along dimension `split_dim`; one may be -1."""

def SqlDataset(
    *,
    driver_name: _Input,
    data_source_name: _Input,
    query: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The rows that a query of an SQLite database gives."""

def Sqrt(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The square root of `x`."""

def SqrtGrad(
    *,
    y: _Input,
    dy: _Input,
    name: str | None = None,
) -> _Tensor:
    """`dy * 0.5 / y`, for `y = sqrt(x)`."""

def Square(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The square of `x`."""

def SquaredDifference(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """`(x - y) * (x - y)`, the first factor conjugated."""

def Squeeze(
    *,
    input: _Input,
    axis: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor:
    """`input` without the dimensions `squeeze_dims`, or without all dimensions of size 1."""

def Stack(
    *,
    elem_type: _Type,
    stack_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A new stack of the step."""

def StackClose(
    *,
    handle: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Empties the stack, which takes no elements any more."""

def StackCloseV2(
    *,
    handle: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Empties the stack, which takes no elements any more."""

def StackPop(
    *,
    handle: _Input,
    elem_type: _Type,
    name: str | None = None,
) -> _Tensor:
    """Takes the last element from the stack."""

def StackPopV2(
    *,
    handle: _Input,
    elem_type: _Type,
    name: str | None = None,
) -> _Tensor:
    """Takes the last element from the stack."""

def StackPush(
    *,
    handle: _Input,
    elem: _Input,
    swap_memory: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Puts `elem` on the stack; the output is `elem`."""

def StackPushV2(
    *,
    handle: _Input,
    elem: _Input,
    swap_memory: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Puts `elem` on the stack; the output is `elem`."""

def StackV2(
    *,
    max_size: _Input,
    elem_type: _Type,
    stack_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A new stack of the step."""

def Stage(
    *,
    values: collections.abc.Sequence[_Input],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Puts tensors at the end of the staging area; waits while it is full."""

def StageClear(
    *,
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Takes out everything."""

def StagePeek(
    *,
    index: _Input,
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> list[_Tensor]:
    """The tensors that were put in as number `index`, which stay; waits until they are there."""

def StageSize(
    *,
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """How many times tensors were put in that are still there."""

def StatefulPartitionedCall(
    *,
    args: collections.abc.Sequence[_Input],
    Tout: collections.abc.Sequence[_Type],
    f: _Func,
    config: str | bytes = '',
    config_proto: str | bytes = '',
    executor_type: str | bytes = '',
    name: str | None = None,
) -> list[_Tensor]:
    """f(args)."""

def StatefulRandomBinomial(
    *,
    resource: _Input,
    algorithm: _Input,
    shape: _Input,
    counts: _Input,
    probs: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """As StatelessRandomBinomial, from the state of a generator."""

def StatefulStandardNormal(
    *,
    resource: _Input,
    shape: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """As StatefulStandardNormalV2; the generator's first number says the algorithm."""

def StatefulStandardNormalV2(
    *,
    resource: _Input,
    algorithm: _Input,
    shape: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """Normal numbers of mean 0 and deviation 1. They are those of a generator, a variable, which moves on."""

def StatefulTruncatedNormal(
    *,
    resource: _Input,
    algorithm: _Input,
    shape: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """Normal numbers of which none is as far from 0 as 2. They are those of a generator, a variable, which moves on."""

def StatefulUniform(
    *,
    resource: _Input,
    algorithm: _Input,
    shape: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """Numbers from 0 to 1, without 1. They are those of a generator, a variable, which moves on."""

def StatefulUniformFullInt(
    *,
    resource: _Input,
    algorithm: _Input,
    shape: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """Integers of the whole range of their type. They are those of a generator, a variable, which moves on."""

def StatefulUniformInt(
    *,
    resource: _Input,
    algorithm: _Input,
    shape: _Input,
    minval: _Input,
    maxval: _Input,
    name: str | None = None,
) -> _Tensor:
    """Integers of a generator from `minval` to `maxval`, without `maxval`."""

def StatelessCase(
    *,
    branch_index: _Input,
    input: collections.abc.Sequence[_Input],
    Tout: collections.abc.Sequence[_Type],
    branches: collections.abc.Sequence[_Func],
    output_shapes: collections.abc.Sequence[_Shape] = ...,
    name: str | None = None,
) -> list[_Tensor]:
    """The branch of number `branch_index`, called with `input`; the last where none is."""

def StatelessIf(
    *,
    cond: _Input,
    input: collections.abc.Sequence[_Input],
    Tout: collections.abc.Sequence[_Type],
    then_branch: _Func,
    else_branch: _Func,
    output_shapes: collections.abc.Sequence[_Shape] = ...,
    name: str | None = None,
) -> list[_Tensor]:
    """then_branch(input) if cond holds, else else_branch(input)."""

def StatelessMultinomial(
    *,
    logits: _Input,
    num_samples: _Input,
    seed: _Input,
    output_dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """As Multinomial; the seed determines the classes."""

def StatelessParameterizedTruncatedNormal(
    *,
    shape: _Input,
    seed: _Input,
    means: _Input,
    stddevs: _Input,
    minvals: _Input,
    maxvals: _Input,
    name: str | None = None,
) -> _Tensor:
    """Normal numbers between bounds; the shape ends with that of the parameters together."""

def StatelessRandomBinomial(
    *,
    shape: _Input,
    seed: _Input,
    counts: _Input,
    probs: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """How many of `counts` trials succeed that each do with probability `probs`."""

def StatelessRandomGammaV2(
    *,
    shape: _Input,
    seed: _Input,
    alpha: _Input,
    name: str | None = None,
) -> _Tensor:
    """Numbers of gamma distributions; the shape ends with that of `alpha`."""

def StatelessRandomGammaV3(
    *,
    shape: _Input,
    key: _Input,
    counter: _Input,
    alg: _Input,
    alpha: _Input,
    name: str | None = None,
) -> _Tensor:
    """Numbers of gamma distributions, which a key and a counter determine."""

def StatelessRandomGetAlg(
    *,
    name: str | None = None,
) -> _Tensor:
    """The number of the algorithm that suits the device: 1, Philox."""

class _StatelessRandomGetKeyCounterOutputs(typing.NamedTuple):
    key: _Tensor
    counter: _Tensor

def StatelessRandomGetKeyCounter(
    *,
    seed: _Input,
    name: str | None = None,
) -> _StatelessRandomGetKeyCounterOutputs:
    """A key and a counter that a seed, two integers, determines."""

class _StatelessRandomGetKeyCounterAlgOutputs(typing.NamedTuple):
    key: _Tensor
    counter: _Tensor
    alg: _Tensor

def StatelessRandomGetKeyCounterAlg(
    *,
    seed: _Input,
    name: str | None = None,
) -> _StatelessRandomGetKeyCounterAlgOutputs:
    """A key and a counter that a seed, two integers, determines, and the algorithm for them."""

def StatelessRandomNormal(
    *,
    shape: _Input,
    seed: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """Normal numbers of mean 0 and deviation 1. The seed, two integers, determines them."""

def StatelessRandomNormalV2(
    *,
    shape: _Input,
    key: _Input,
    counter: _Input,
    alg: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """Normal numbers of mean 0 and deviation 1. The key and the counter determine them; `alg` is 1 (Philox) or 3 (any)."""

def StatelessRandomPoisson(
    *,
    shape: _Input,
    seed: _Input,
    lam: _Input,
    dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """Numbers of Poisson distributions; the shape ends with that of the rates, `lam`."""

def StatelessRandomUniform(
    *,
    shape: _Input,
    seed: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """Numbers from 0 to 1, without 1. The seed, two integers, determines them."""

def StatelessRandomUniformFullInt(
    *,
    shape: _Input,
    seed: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """Integers of the whole range of their type. The seed, two integers, determines them."""

def StatelessRandomUniformFullIntV2(
    *,
    shape: _Input,
    key: _Input,
    counter: _Input,
    alg: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """Integers of the whole range of their type. The key and the counter determine them; `alg` is 1 (Philox) or 3 (any)."""

def StatelessRandomUniformInt(
    *,
    shape: _Input,
    seed: _Input,
    minval: _Input,
    maxval: _Input,
    name: str | None = None,
) -> _Tensor:
    """Integers from `minval` to `maxval`, without `maxval`. The seed determines them."""

def StatelessRandomUniformIntV2(
    *,
    shape: _Input,
    key: _Input,
    counter: _Input,
    alg: _Input,
    minval: _Input,
    maxval: _Input,
    name: str | None = None,
) -> _Tensor:
    """Integers from `minval` to `maxval`, without `maxval`. The key and the counter determine them."""

def StatelessRandomUniformV2(
    *,
    shape: _Input,
    key: _Input,
    counter: _Input,
    alg: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """Numbers from 0 to 1, without 1. The key and the counter determine them; `alg` is 1 (Philox) or 3 (any)."""

class _StatelessSampleDistortedBoundingBoxOutputs(typing.NamedTuple):
    begin: _Tensor
    size: _Tensor
    bboxes: _Tensor

def StatelessSampleDistortedBoundingBox(
    *,
    image_size: _Input,
    bounding_boxes: _Input,
    min_object_covered: _Input,
    seed: _Input,
    aspect_ratio_range: collections.abc.Sequence[float] = ...,
    area_range: collections.abc.Sequence[float] = ...,
    max_attempts: int = 100,
    use_image_if_no_bounding_boxes: bool = False,
    name: str | None = None,
) -> _StatelessSampleDistortedBoundingBoxOutputs:
    """A random part of an image that covers enough of one of the boxes; all of it if none is found."""

def StatelessShuffle(
    *,
    value: _Input,
    key: _Input,
    counter: _Input,
    alg: _Input,
    name: str | None = None,
) -> _Tensor:
    """The rows of a tensor in an order that a key and a counter determine."""

def StatelessTruncatedNormal(
    *,
    shape: _Input,
    seed: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """Normal numbers of which none is as far from 0 as 2. The seed, two integers, determines them."""

def StatelessTruncatedNormalV2(
    *,
    shape: _Input,
    key: _Input,
    counter: _Input,
    alg: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """Normal numbers of which none is as far from 0 as 2. The key and the counter determine them; `alg` is 1 (Philox) or 3 (any)."""

def StatelessWhile(
    *,
    input: collections.abc.Sequence[_Input],
    cond: _Func,
    body: _Func,
    output_shapes: collections.abc.Sequence[_Shape] = ...,
    parallel_iterations: int = 10,
    name: str | None = None,
) -> list[_Tensor]:
    """output = input; while cond(output): output = body(output)."""

def StaticRegexFullMatch(
    *,
    input: _Input,
    pattern: str | bytes,
    name: str | None = None,
) -> _Tensor:
    """RegexFullMatch with an expression that is known when the graph is made."""

def StaticRegexReplace(
    *,
    input: _Input,
    pattern: str | bytes,
    rewrite: str | bytes,
    replace_global: bool = True,
    name: str | None = None,
) -> _Tensor:
    """RegexReplace with pattern and rewrite that are known when the graph is made."""

def StatsAggregatorHandle(
    *,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A handle to a collector of statistics."""

def StatsAggregatorHandleV2(
    *,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A handle to a collector of statistics."""

def StatsAggregatorSetSummaryWriter(
    *,
    stats_aggregator: _Input,
    summary: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Has a collector write its statistics: none."""

def StatsAggregatorSummary(
    *,
    iterator: _Input,
    name: str | None = None,
) -> _Tensor:
    """The statistics of a collector as a serialized Summary, which is empty."""

def StochasticCastToInt(
    *,
    input: _Input,
    key: _Input,
    counter: _Input,
    alg: _Input,
    Tout: _Type,
    name: str | None = None,
) -> _Tensor:
    """The integers beside numbers, the larger one as often as the number is near it."""

def StopGradient(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input`; gradients take it for a constant."""

def StoreMinibatchStatisticsInFdo(
    *,
    program_key: _Input,
    max_ids: _Input,
    max_uniques: _Input,
    sample_count: int,
    num_replica: int,
    feature_width: int,
    num_sc_per_chip: int,
    table_name: str | bytes,
    mini_batch_splits: str | bytes,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def StridedSlice(
    *,
    input: _Input,
    begin: _Input,
    end: _Input,
    strides: _Input,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    name: str | None = None,
) -> _Tensor:
    """`input[begin:end:strides]`, one entry an index; the masks have one bit an entry."""

def StridedSliceAssign(
    *,
    ref: _Input,
    begin: _Input,
    end: _Input,
    strides: _Input,
    value: _Input,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    name: str | None = None,
) -> _Tensor:
    """Writes `value`, broadcast, to where StridedSlice would take its result from."""

def StridedSliceGrad(
    *,
    shape: _Input,
    begin: _Input,
    end: _Input,
    strides: _Input,
    dy: _Input,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    name: str | None = None,
) -> _Tensor:
    """Zeros of `shape` with `dy` where StridedSlice takes its result from."""

def StringFormat(
    *,
    inputs: collections.abc.Sequence[_Input],
    template: str | bytes = '%s',
    placeholder: str | bytes = '%s',
    summarize: int = 3,
    name: str | None = None,
) -> _Tensor:
    """`template` with the inputs for its placeholders, `summarize` values at each end of a row."""

def StringJoin(
    *,
    inputs: collections.abc.Sequence[_Input],
    separator: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The strings of all inputs at each place, one after the other, `separator` between them."""

def StringLength(
    *,
    input: _Input,
    unit: typing.Literal['BYTE', 'UTF8_CHAR'] = 'BYTE',
    name: str | None = None,
) -> _Tensor:
    """The length of each string, in bytes or characters."""

def StringListAttr(
    *,
    a: collections.abc.Sequence[str | bytes],
    b: str | bytes,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def StringLower(
    *,
    input: _Input,
    encoding: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Each string with its letters in lower case: those of ASCII, or all where `encoding` is utf-8."""

class _StringNGramsOutputs(typing.NamedTuple):
    ngrams: _Tensor
    ngrams_splits: _Tensor

def StringNGrams(
    *,
    data: _Input,
    data_splits: _Input,
    separator: str | bytes,
    ngram_widths: collections.abc.Sequence[int],
    left_pad: str | bytes,
    right_pad: str | bytes,
    pad_width: int,
    preserve_short_sequences: bool,
    name: str | None = None,
) -> _StringNGramsOutputs:
    """The n-grams of each row, of each width, with `pad_width` pads at its ends (-1: as many as fit)."""

class _StringSplitOutputs(typing.NamedTuple):
    indices: _Tensor
    values: _Tensor
    shape: _Tensor

def StringSplit(
    *,
    input: _Input,
    delimiter: _Input,
    skip_empty: bool = True,
    name: str | None = None,
) -> _StringSplitOutputs:
    """The parts of each string between any bytes of `delimiter`, as a sparse matrix; all bytes if it is empty."""

class _StringSplitV2Outputs(typing.NamedTuple):
    indices: _Tensor
    values: _Tensor
    shape: _Tensor

def StringSplitV2(
    *,
    input: _Input,
    sep: _Input,
    maxsplit: int = -1,
    name: str | None = None,
) -> _StringSplitV2Outputs:
    """The parts of each string between `sep`, or between blanks if it is empty, as a sparse matrix."""

def StringStrip(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """Each string without the blanks at its ends."""

def StringToHashBucket(
    *,
    string_tensor: _Input,
    num_buckets: int,
    name: str | None = None,
) -> _Tensor:
    """The number of the bucket of each string: its MurmurHash modulo `num_buckets`."""

def StringToHashBucketFast(
    *,
    input: _Input,
    num_buckets: int,
    name: str | None = None,
) -> _Tensor:
    """The number of the bucket of each string: its FarmHash fingerprint modulo `num_buckets`."""

def StringToHashBucketStrong(
    *,
    input: _Input,
    num_buckets: int,
    key: collections.abc.Sequence[int],
    name: str | None = None,
) -> _Tensor:
    """The number of the bucket of each string: its SipHash under `key` modulo `num_buckets`."""

def StringToNumber(
    *,
    string_tensor: _Input,
    out_type: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The number that each string says, with blanks around."""

def StringUpper(
    *,
    input: _Input,
    encoding: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Each string with its letters in upper case: those of ASCII, or all where `encoding` is utf-8."""

def StubResourceHandleOp(
    *,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor: ...

def Sub(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The difference `x - y`."""

def Substr(
    *,
    input: _Input,
    pos: _Input,
    len: _Input,
    unit: typing.Literal['BYTE', 'UTF8_CHAR'] = 'BYTE',
    name: str | None = None,
) -> _Tensor:
    """`len` bytes or characters of each string, from `pos` on; a negative `pos` counts from the end."""

def Sum(
    *,
    input: _Input,
    axis: _Input,
    keep_dims: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The sum of `input` over the axes `reduction_indices`, negative ones from the end."""

def SummaryWriter(
    *,
    shared_name: str | bytes = '',
    container: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The handle of a writer of event files, which CreateSummaryFileWriter lets begin."""

class _SvdOutputs(typing.NamedTuple):
    s: _Tensor
    u: _Tensor
    v: _Tensor

def Svd(
    *,
    input: _Input,
    compute_uv: bool = True,
    full_matrices: bool = False,
    name: str | None = None,
) -> _SvdOutputs:
    """`input == u @ diag(s) @ adjoint(v)`, the singular values in descending order."""

class _SwitchOutputs(typing.NamedTuple):
    output_false: _Tensor
    output_true: _Tensor

def Switch(
    *,
    data: _Input,
    pred: _Input,
    name: str | None = None,
) -> _SwitchOutputs:
    """Passes `data` on to `output_true` or `output_false`, as `pred` says."""

def SymbolicGradient(
    *,
    input: collections.abc.Sequence[_Input],
    Tout: collections.abc.Sequence[_Type],
    f: _Func,
    name: str | None = None,
) -> list[_Tensor]: ...

def SyncDevice(
    *,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Waits for what the device was asked to do; here kernels end when their work is done."""

def TFRecordDataset(
    *,
    filenames: _Input,
    compression_type: _Input,
    buffer_size: _Input,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The records of TFRecord files."""

def TFRecordDatasetV2(
    *,
    filenames: _Input,
    compression_type: _Input,
    buffer_size: _Input,
    byte_offsets: _Input,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The records of TFRecord files."""

def TFRecordReader(
    *,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    compression_type: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A reader of TFRecords; keys are FILE:POSITION."""

def TFRecordReaderV2(
    *,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    compression_type: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A reader of TFRecords; keys are FILE:POSITION."""

def TPUAnnotateTensorsWithDynamicShape(
    *,
    tensors: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> list[_Tensor]: ...

def TPUCompilationResult(
    *,
    name: str | None = None,
) -> _Tensor: ...

class _TPUCompileOutputs(typing.NamedTuple):
    compilation_status: _Tensor
    program: list[_Tensor]
    may_modify_variables: list[_Tensor]

def TPUCompile(
    *,
    dynamic_shapes: collections.abc.Sequence[_Input],
    guaranteed_constants: collections.abc.Sequence[_Input],
    num_computations: int,
    function: _Func,
    metadata: str | bytes,
    name: str | None = None,
) -> _TPUCompileOutputs: ...

def TPUCompileSucceededAssert(
    *,
    compilation_status: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def TPUCopyWithDynamicShape(
    *,
    tensors: collections.abc.Sequence[_Input],
    unpadded_sizes: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> list[_Tensor]: ...

def TPUDummyInput(
    *,
    dtype: _Type,
    shape: _Shape,
    name: str | None = None,
) -> _Tensor: ...

def TPUEmbeddingActivations(
    *,
    embedding_variable: _Input,
    sliced_activations: _Input,
    table_id: int,
    lookup_id: int,
    name: str | None = None,
) -> _Tensor: ...

def TPUExecute(
    *,
    args: collections.abc.Sequence[_Input],
    key: _Input,
    Tresults: collections.abc.Sequence[_Type],
    name: str | None = None,
) -> list[_Tensor]: ...

def TPUExecuteAndUpdateVariables(
    *,
    args: collections.abc.Sequence[_Input],
    key: _Input,
    Tresults: collections.abc.Sequence[_Type],
    device_var_reads_indices: collections.abc.Sequence[int],
    device_var_updates_indices: collections.abc.Sequence[int],
    name: str | None = None,
) -> list[_Tensor]: ...

def TPUOrdinalSelector(
    *,
    name: str | None = None,
) -> _Tensor: ...

def TPUPartitionedCall(
    *,
    args: collections.abc.Sequence[_Input],
    device_ordinal: _Input,
    Tout: collections.abc.Sequence[_Type],
    f: _Func,
    autotuner_thresh: int = 0,
    name: str | None = None,
) -> list[_Tensor]: ...

def TPUPartitionedInput(
    *,
    inputs: collections.abc.Sequence[_Input],
    partition_dim: int = 0,
    name: str | None = None,
) -> _Tensor: ...

def TPUPartitionedInputV2(
    *,
    inputs: collections.abc.Sequence[_Input],
    partition_dims: collections.abc.Sequence[int],
    is_packed: bool = False,
    name: str | None = None,
) -> _Tensor: ...

def TPUPartitionedOutput(
    *,
    inputs: _Input,
    num_splits: int,
    partition_dim: int = 0,
    name: str | None = None,
) -> list[_Tensor]: ...

def TPUPartitionedOutputV2(
    *,
    inputs: _Input,
    num_splits: int,
    partition_dims: collections.abc.Sequence[int],
    name: str | None = None,
) -> list[_Tensor]: ...

def TPUReplicateMetadata(
    *,
    num_replicas: int,
    num_cores_per_replica: int = 1,
    topology: str | bytes = '',
    use_tpu: bool = True,
    device_assignment: collections.abc.Sequence[int] = ...,
    computation_shape: collections.abc.Sequence[int] = ...,
    host_compute_core: collections.abc.Sequence[str | bytes] = ...,
    padding_map: collections.abc.Sequence[str | bytes] = ...,
    step_marker_location: str | bytes = 'STEP_MARK_AT_ENTRY',
    allow_soft_placement: bool = False,
    use_spmd_for_xla_partitioning: bool = False,
    use_shardy_partitioner: bool = False,
    tpu_compile_options_proto: str | bytes = '',
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def TPUReplicatedInput(
    *,
    inputs: collections.abc.Sequence[_Input],
    is_mirrored_variable: bool = False,
    index: int = -1,
    is_packed: bool = False,
    name: str | None = None,
) -> _Tensor: ...

def TPUReplicatedOutput(
    *,
    input: _Input,
    num_replicas: int,
    name: str | None = None,
) -> list[_Tensor]: ...

def TPUReshardVariables(
    *,
    vars: collections.abc.Sequence[_Input],
    new_format_key: _Input,
    format_state_var: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def TPURoundRobin(
    *,
    name: str | None = None,
) -> _Tensor: ...

def TakeDataset(
    *,
    input_dataset: _Input,
    count: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The first `count` elements; all where it is negative."""

class _TakeManySparseFromTensorsMapOutputs(typing.NamedTuple):
    sparse_indices: _Tensor
    sparse_values: _Tensor
    sparse_shape: _Tensor

def TakeManySparseFromTensorsMap(
    *,
    sparse_handles: _Input,
    dtype: _Type,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _TakeManySparseFromTensorsMapOutputs:
    """Takes sparse tensors from the map of that name: one sparse tensor of all, row by row."""

def TakeWhileDataset(
    *,
    input_dataset: _Input,
    other_arguments: collections.abc.Sequence[_Input],
    predicate: _Func,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements before the first one that `predicate` does not hold for."""

def Tan(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The tangent of `x`, in radians."""

def Tanh(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The hyperbolic tangent of `x`."""

def TanhGrad(
    *,
    y: _Input,
    dy: _Input,
    name: str | None = None,
) -> _Tensor:
    """`dy * (1 - y * y)`, for `y = tanh(x)`."""

def TemporaryVariable(
    *,
    shape: _Shape,
    dtype: _Type,
    var_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A reference to a tensor of this step alone."""

def TensorArray(
    *,
    size: _Input,
    dtype: _Type,
    dynamic_size: bool = False,
    clear_after_read: bool = True,
    tensor_array_name: str | bytes = '',
    element_shape: _Shape = None,
    name: str | None = None,
) -> _Tensor:
    """As TensorArrayV3, where the handle is a reference to a vector of two strings."""

def TensorArrayClose(
    *,
    handle: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Gives up the elements before the step ends."""

def TensorArrayCloseV2(
    *,
    handle: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Gives up the elements before the step ends."""

def TensorArrayCloseV3(
    *,
    handle: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Gives up the elements before the step ends."""

class _TensorArrayConcatOutputs(typing.NamedTuple):
    value: _Tensor
    lengths: _Tensor

def TensorArrayConcat(
    *,
    handle: _Input,
    flow_in: _Input,
    dtype: _Type,
    element_shape_except0: _Shape = None,
    name: str | None = None,
) -> _TensorArrayConcatOutputs:
    """All elements one after the other, and the length of each."""

class _TensorArrayConcatV2Outputs(typing.NamedTuple):
    value: _Tensor
    lengths: _Tensor

def TensorArrayConcatV2(
    *,
    handle: _Input,
    flow_in: _Input,
    dtype: _Type,
    element_shape_except0: _Shape = None,
    name: str | None = None,
) -> _TensorArrayConcatV2Outputs:
    """All elements one after the other, and the length of each."""

class _TensorArrayConcatV3Outputs(typing.NamedTuple):
    value: _Tensor
    lengths: _Tensor

def TensorArrayConcatV3(
    *,
    handle: _Input,
    flow_in: _Input,
    dtype: _Type,
    element_shape_except0: _Shape = None,
    name: str | None = None,
) -> _TensorArrayConcatV3Outputs:
    """All elements one after the other, and the length of each."""

def TensorArrayGather(
    *,
    handle: _Input,
    indices: _Input,
    flow_in: _Input,
    dtype: _Type,
    element_shape: _Shape = None,
    name: str | None = None,
) -> _Tensor:
    """The elements at `indices` as the rows of one tensor."""

def TensorArrayGatherV2(
    *,
    handle: _Input,
    indices: _Input,
    flow_in: _Input,
    dtype: _Type,
    element_shape: _Shape = None,
    name: str | None = None,
) -> _Tensor:
    """The elements at `indices` as the rows of one tensor."""

def TensorArrayGatherV3(
    *,
    handle: _Input,
    indices: _Input,
    flow_in: _Input,
    dtype: _Type,
    element_shape: _Shape = None,
    name: str | None = None,
) -> _Tensor:
    """The elements at `indices` as the rows of one tensor."""

def TensorArrayGrad(
    *,
    handle: _Input,
    flow_in: _Input,
    source: str | bytes,
    name: str | None = None,
) -> _Tensor:
    """The array for the gradients of an array's elements; one for each `source`."""

def TensorArrayGradV2(
    *,
    handle: _Input,
    flow_in: _Input,
    source: str | bytes,
    name: str | None = None,
) -> _Tensor:
    """The array for the gradients of an array's elements; one for each `source`."""

class _TensorArrayGradV3Outputs(typing.NamedTuple):
    grad_handle: _Tensor
    flow_out: _Tensor

def TensorArrayGradV3(
    *,
    handle: _Input,
    flow_in: _Input,
    source: str | bytes,
    name: str | None = None,
) -> _TensorArrayGradV3Outputs:
    """The array for the gradients of an array's elements; one for each `source`."""

class _TensorArrayGradWithShapeOutputs(typing.NamedTuple):
    grad_handle: _Tensor
    flow_out: _Tensor

def TensorArrayGradWithShape(
    *,
    handle: _Input,
    flow_in: _Input,
    shape_to_prepend: _Input,
    source: str | bytes,
    name: str | None = None,
) -> _TensorArrayGradWithShapeOutputs:
    """As TensorArrayGradV3, where gradients have `shape_to_prepend` before their shapes."""

def TensorArrayPack(
    *,
    handle: _Input,
    flow_in: _Input,
    dtype: _Type,
    element_shape: _Shape = None,
    name: str | None = None,
) -> _Tensor:
    """All elements as the rows of one tensor."""

def TensorArrayRead(
    *,
    handle: _Input,
    index: _Input,
    flow_in: _Input,
    dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """The element `index`."""

def TensorArrayReadV2(
    *,
    handle: _Input,
    index: _Input,
    flow_in: _Input,
    dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """The element `index`."""

def TensorArrayReadV3(
    *,
    handle: _Input,
    index: _Input,
    flow_in: _Input,
    dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """The element `index`."""

def TensorArrayScatter(
    *,
    handle: _Input,
    indices: _Input,
    value: _Input,
    flow_in: _Input,
    name: str | None = None,
) -> _Tensor:
    """Writes the rows of `value`."""

def TensorArrayScatterV2(
    *,
    handle: _Input,
    indices: _Input,
    value: _Input,
    flow_in: _Input,
    name: str | None = None,
) -> _Tensor:
    """Writes the rows of `value`."""

def TensorArrayScatterV3(
    *,
    handle: _Input,
    indices: _Input,
    value: _Input,
    flow_in: _Input,
    name: str | None = None,
) -> _Tensor:
    """Writes the rows of `value`."""

def TensorArraySize(
    *,
    handle: _Input,
    flow_in: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of elements."""

def TensorArraySizeV2(
    *,
    handle: _Input,
    flow_in: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of elements."""

def TensorArraySizeV3(
    *,
    handle: _Input,
    flow_in: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of elements."""

def TensorArraySplit(
    *,
    handle: _Input,
    value: _Input,
    lengths: _Input,
    flow_in: _Input,
    name: str | None = None,
) -> _Tensor:
    """Writes `value` cut into lengths."""

def TensorArraySplitV2(
    *,
    handle: _Input,
    value: _Input,
    lengths: _Input,
    flow_in: _Input,
    name: str | None = None,
) -> _Tensor:
    """Writes `value` cut into lengths."""

def TensorArraySplitV3(
    *,
    handle: _Input,
    value: _Input,
    lengths: _Input,
    flow_in: _Input,
    name: str | None = None,
) -> _Tensor:
    """Writes `value` cut into lengths."""

def TensorArrayUnpack(
    *,
    handle: _Input,
    value: _Input,
    flow_in: _Input,
    name: str | None = None,
) -> _Tensor:
    """Writes all rows of `value`."""

def TensorArrayV2(
    *,
    size: _Input,
    dtype: _Type,
    element_shape: _Shape = None,
    dynamic_size: bool = False,
    clear_after_read: bool = True,
    tensor_array_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """As TensorArrayV3, where the handle is a vector of two strings."""

class _TensorArrayV3Outputs(typing.NamedTuple):
    handle: _Tensor
    flow: _Tensor

def TensorArrayV3(
    *,
    size: _Input,
    dtype: _Type,
    element_shape: _Shape = None,
    dynamic_size: bool = False,
    clear_after_read: bool = True,
    identical_element_shapes: bool = False,
    tensor_array_name: str | bytes = '',
    name: str | None = None,
) -> _TensorArrayV3Outputs:
    """A new array of `size` tensors, for this step. The flow orders the ops on the array."""

def TensorArrayWrite(
    *,
    handle: _Input,
    index: _Input,
    value: _Input,
    flow_in: _Input,
    name: str | None = None,
) -> _Tensor:
    """Writes the element `index`."""

def TensorArrayWriteV2(
    *,
    handle: _Input,
    index: _Input,
    value: _Input,
    flow_in: _Input,
    name: str | None = None,
) -> _Tensor:
    """Writes the element `index`."""

def TensorArrayWriteV3(
    *,
    handle: _Input,
    index: _Input,
    value: _Input,
    flow_in: _Input,
    name: str | None = None,
) -> _Tensor:
    """Writes the element `index`."""

def TensorDataset(
    *,
    components: collections.abc.Sequence[_Input],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A dataset whose only element is `components`."""

class _TensorListConcatOutputs(typing.NamedTuple):
    tensor: _Tensor
    lengths: _Tensor

def TensorListConcat(
    *,
    input_handle: _Input,
    element_dtype: _Type,
    element_shape: _Shape = None,
    name: str | None = None,
) -> _TensorListConcatOutputs:
    """The elements of the list one after the other, and the length of each."""

def TensorListConcatLists(
    *,
    input_a: _Input,
    input_b: _Input,
    element_dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """The elements of the lists of `input_a`, and after them those of `input_b`."""

class _TensorListConcatV2Outputs(typing.NamedTuple):
    tensor: _Tensor
    lengths: _Tensor

def TensorListConcatV2(
    *,
    input_handle: _Input,
    element_shape: _Input,
    leading_dims: _Input,
    element_dtype: _Type,
    name: str | None = None,
) -> _TensorListConcatV2Outputs:
    """As TensorListConcat; elements that were not set have the lengths `leading_dims`."""

def TensorListElementShape(
    *,
    input_handle: _Input,
    shape_type: _Type,
    name: str | None = None,
) -> _Tensor:
    """What the shapes of the elements share, -1 for an unknown size; -1 alone for any shape."""

def TensorListFromTensor(
    *,
    tensor: _Input,
    element_shape: _Input,
    name: str | None = None,
) -> _Tensor:
    """The list of the rows of `tensor`."""

def TensorListGather(
    *,
    input_handle: _Input,
    indices: _Input,
    element_shape: _Input,
    element_dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """The elements of the list at `indices`, stacked."""

def TensorListGetItem(
    *,
    input_handle: _Input,
    index: _Input,
    element_shape: _Input,
    element_dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """Element `index` of the list; zeros if it was not set."""

def TensorListLength(
    *,
    input_handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of elements of the list."""

class _TensorListPopBackOutputs(typing.NamedTuple):
    output_handle: _Tensor
    tensor: _Tensor

def TensorListPopBack(
    *,
    input_handle: _Input,
    element_shape: _Input,
    element_dtype: _Type,
    name: str | None = None,
) -> _TensorListPopBackOutputs:
    """The list without its last element, and that element; zeros if it was not set."""

def TensorListPushBack(
    *,
    input_handle: _Input,
    tensor: _Input,
    name: str | None = None,
) -> _Tensor:
    """The list with `tensor` after its last element."""

def TensorListPushBackBatch(
    *,
    input_handles: _Input,
    tensor: _Input,
    name: str | None = None,
) -> _Tensor:
    """Each list of the vector, with its row of `tensor` after its last element."""

def TensorListReserve(
    *,
    element_shape: _Input,
    num_elements: _Input,
    element_dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """A list of `num_elements` elements that are not set; they are read as zeros."""

def TensorListResize(
    *,
    input_handle: _Input,
    size: _Input,
    name: str | None = None,
) -> _Tensor:
    """The first `size` elements of the list; those beyond its end are not set."""

def TensorListScatter(
    *,
    tensor: _Input,
    indices: _Input,
    element_shape: _Input,
    name: str | None = None,
) -> _Tensor:
    """A list whose element `indices[i]` is row i of `tensor`, just long enough for all."""

def TensorListScatterIntoExistingList(
    *,
    input_handle: _Input,
    tensor: _Input,
    indices: _Input,
    name: str | None = None,
) -> _Tensor:
    """The list with row i of `tensor` for element `indices[i]`, longer if needed."""

def TensorListScatterV2(
    *,
    tensor: _Input,
    indices: _Input,
    element_shape: _Input,
    num_elements: _Input,
    name: str | None = None,
) -> _Tensor:
    """A list of `num_elements` (as many as needed if -1), element `indices[i]` row i of `tensor`."""

def TensorListSetItem(
    *,
    input_handle: _Input,
    index: _Input,
    item: _Input,
    resize_if_index_out_of_bounds: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The list with `item` for element `index`."""

def TensorListSplit(
    *,
    tensor: _Input,
    element_shape: _Input,
    lengths: _Input,
    name: str | None = None,
) -> _Tensor:
    """The list of the parts of `tensor` that have the given `lengths`, in order."""

def TensorListStack(
    *,
    input_handle: _Input,
    element_shape: _Input,
    element_dtype: _Type,
    num_elements: int = -1,
    name: str | None = None,
) -> _Tensor:
    """The elements of the list, stacked; it must have `num_elements` unless that is -1."""

def TensorMapErase(
    *,
    input_handle: _Input,
    key: _Input,
    value_dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """The map without a key; an InvalidArgumentError if the map does not have it."""

def TensorMapHasKey(
    *,
    input_handle: _Input,
    key: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether a map has a key."""

def TensorMapInsert(
    *,
    input_handle: _Input,
    key: _Input,
    value: _Input,
    name: str | None = None,
) -> _Tensor:
    """The map with one more entry, or with another value for the key."""

def TensorMapLookup(
    *,
    input_handle: _Input,
    key: _Input,
    value_dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """The value of a key; an InvalidArgumentError if the map does not have it."""

def TensorMapSize(
    *,
    input_handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of entries of a map."""

def TensorMapStackKeys(
    *,
    input_handle: _Input,
    key_dtype: _Type,
    name: str | None = None,
) -> _Tensor:
    """The keys, which must have one type and shape, in the order of their insertion."""

def TensorScatterAdd(
    *,
    tensor: _Input,
    indices: _Input,
    updates: _Input,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """`tensor` plus `updates` at `indices`."""

def TensorScatterMax(
    *,
    tensor: _Input,
    indices: _Input,
    updates: _Input,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The larger of `tensor` and `updates` at `indices`."""

def TensorScatterMin(
    *,
    tensor: _Input,
    indices: _Input,
    updates: _Input,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The smaller of `tensor` and `updates` at `indices`."""

def TensorScatterSub(
    *,
    tensor: _Input,
    indices: _Input,
    updates: _Input,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """`tensor` minus `updates` at `indices`."""

def TensorScatterUpdate(
    *,
    tensor: _Input,
    indices: _Input,
    updates: _Input,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """`tensor` with `updates` at `indices`; of several for one place the last counts."""

def TensorSliceDataset(
    *,
    components: collections.abc.Sequence[_Input],
    output_shapes: collections.abc.Sequence[_Shape],
    is_files: bool = False,
    metadata: str | bytes = '',
    replicate_on_split: bool = False,
    name: str | None = None,
) -> _Tensor:
    """A dataset whose elements are the rows of `components`, one by one."""

def TensorStridedSliceUpdate(
    *,
    input: _Input,
    begin: _Input,
    end: _Input,
    strides: _Input,
    value: _Input,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    name: str | None = None,
) -> _Tensor:
    """`input` with `value`, broadcast, where StridedSlice takes its result from."""

def TensorSummary(
    *,
    tensor: _Input,
    description: str | bytes = '',
    labels: collections.abc.Sequence[str | bytes] = ...,
    display_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A summary with a tensor, and the name of the node."""

def TensorSummaryV2(
    *,
    tag: _Input,
    tensor: _Input,
    serialized_summary_metadata: _Input,
    name: str | None = None,
) -> _Tensor:
    """A summary with a tensor and its SummaryMetadata."""

def TestAttr(
    *,
    T: _Type,
    name: str | None = None,
) -> _Tensor: ...

class _TestStringOutputOutputs(typing.NamedTuple):
    output1: _Tensor
    output2: _Tensor

def TestStringOutput(
    *,
    input: _Input,
    name: str | None = None,
) -> _TestStringOutputOutputs: ...

def TextLineDataset(
    *,
    filenames: _Input,
    compression_type: _Input,
    buffer_size: _Input,
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The lines of files."""

def TextLineReader(
    *,
    skip_header_lines: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A reader of lines, without their ends; keys are FILE:NUMBER, from 1 on."""

def TextLineReaderV2(
    *,
    skip_header_lines: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A reader of lines, without their ends; keys are FILE:NUMBER, from 1 on."""

def ThreadPoolDataset(
    *,
    input_dataset: _Input,
    thread_pool: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """The elements of `input_dataset`."""

def ThreadPoolHandle(
    *,
    num_threads: int,
    display_name: str | bytes,
    max_intra_op_parallelism: int = 1,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A handle to a pool of threads."""

class _ThreadUnsafeUnigramCandidateSamplerOutputs(typing.NamedTuple):
    sampled_candidates: _Tensor
    true_expected_count: _Tensor
    sampled_expected_count: _Tensor

def ThreadUnsafeUnigramCandidateSampler(
    *,
    true_classes: _Input,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _ThreadUnsafeUnigramCandidateSamplerOutputs:
    """As LearnedUnigramCandidateSampler; and how often each, and each of the true ones, is expected."""

def Tile(
    *,
    input: _Input,
    multiples: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input` repeated `multiples[i]` times along dimension i."""

def TileGrad(
    *,
    input: _Input,
    multiples: _Input,
    name: str | None = None,
) -> _Tensor:
    """The sum of the parts that Tile repeats."""

def Timestamp(
    *,
    name: str | None = None,
) -> _Tensor:
    """The seconds since the epoch, at the time that the op runs."""

def ToBool(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether a scalar is not zero, a string not empty; of another tensor, if it has elements."""

class _TopKOutputs(typing.NamedTuple):
    values: _Tensor
    indices: _Tensor

def TopK(
    *,
    input: _Input,
    k: int,
    sorted: bool = True,
    name: str | None = None,
) -> _TopKOutputs:
    """The `k` largest elements of each row of `input`, with k as an attr."""

class _TopKUniqueOutputs(typing.NamedTuple):
    topk: _Tensor
    topk_indices: _Tensor

def TopKUnique(
    *,
    input: _Input,
    k: int,
    name: str | None = None,
) -> _TopKUniqueOutputs: ...

class _TopKV2Outputs(typing.NamedTuple):
    values: _Tensor
    indices: _Tensor

def TopKV2(
    *,
    input: _Input,
    k: _Input,
    sorted: bool = True,
    index_type: _Type = ...,
    name: str | None = None,
) -> _TopKV2Outputs:
    """The `k` largest elements of each row, the last dimension of `input`, and their places."""

class _TopKWithUniqueOutputs(typing.NamedTuple):
    topk: _Tensor
    topk_indices: _Tensor

def TopKWithUnique(
    *,
    input: _Input,
    k: int,
    name: str | None = None,
) -> _TopKWithUniqueOutputs: ...

def TpuHandleToProtoKey(
    *,
    uid: _Input,
    name: str | None = None,
) -> _Tensor: ...

def Transpose(
    *,
    x: _Input,
    perm: _Input,
    name: str | None = None,
) -> _Tensor:
    """`x` with dimension `perm[i]` as its dimension i."""

def TridiagonalMatMul(
    *,
    superdiag: _Input,
    maindiag: _Input,
    subdiag: _Input,
    rhs: _Input,
    name: str | None = None,
) -> _Tensor:
    """The product of a tridiagonal matrix, given by its diagonals, and a matrix."""

def TridiagonalSolve(
    *,
    diagonals: _Input,
    rhs: _Input,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The x with `matrix @ x == rhs` for tridiagonal matrices, given by the diagonals above, at and below the main one; NaN where the matrix is singular, unless `perturb_singular` moves pivots from 0."""

def TruncateDiv(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """`x / y`, rounded towards 0."""

def TruncateMod(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The remainder of `x / y` with the quotient rounded towards 0; it has the sign of `x`."""

def TruncatedNormal(
    *,
    shape: _Input,
    dtype: _Type,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _Tensor:
    """Normal numbers of which none is as far from 0 as 2, in a tensor of the given shape."""

def TwoFloatInputs(
    *,
    a: _Input,
    b: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def TwoFloatInputsFloatOutput(
    *,
    a: _Input,
    b: _Input,
    name: str | None = None,
) -> _Tensor: ...

def TwoFloatInputsIntOutput(
    *,
    a: _Input,
    b: _Input,
    name: str | None = None,
) -> _Tensor: ...

class _TwoFloatOutputsOutputs(typing.NamedTuple):
    a: _Tensor
    b: _Tensor

def TwoFloatOutputs(
    *,
    name: str | None = None,
) -> _TwoFloatOutputsOutputs: ...

def TwoIntInputs(
    *,
    a: _Input,
    b: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

class _TwoIntOutputsOutputs(typing.NamedTuple):
    a: _Tensor
    b: _Tensor

def TwoIntOutputs(
    *,
    name: str | None = None,
) -> _TwoIntOutputsOutputs: ...

def TwoRefsIn(
    *,
    a: _Input,
    b: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def TypeList(
    *,
    a: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def TypeListRestrict(
    *,
    a: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def TypeListTwice(
    *,
    a: collections.abc.Sequence[_Input],
    b: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def Unary(
    *,
    a: _Input,
    name: str | None = None,
) -> _Tensor: ...

def Unbatch(
    *,
    batched_tensor: _Input,
    batch_index: _Input,
    id: _Input,
    timeout_micros: int,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """    The rows of the step whose id is `id`, which another step may give: the one that got the batch."""

def UnbatchDataset(
    *,
    input_dataset: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The rows of the elements, one by one."""

def UnbatchGrad(
    *,
    original_input: _Input,
    batch_index: _Input,
    grad: _Input,
    id: _Input,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """    The gradients of the rows of a batch, which its steps give; no rows for steps whose `original_input` is empty."""

def UncompressElement(
    *,
    compressed: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> list[_Tensor]:
    """The components of an element that CompressElement made."""

class _UnicodeDecodeOutputs(typing.NamedTuple):
    row_splits: _Tensor
    char_values: _Tensor

def UnicodeDecode(
    *,
    input: _Input,
    input_encoding: str | bytes,
    errors: typing.Literal['strict', 'replace', 'ignore'] = 'replace',
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    Tsplits: _Type = ...,
    name: str | None = None,
) -> _UnicodeDecodeOutputs:
    """The code points of each string, as the rows of a ragged tensor."""

class _UnicodeDecodeWithOffsetsOutputs(typing.NamedTuple):
    row_splits: _Tensor
    char_values: _Tensor
    char_to_byte_starts: _Tensor

def UnicodeDecodeWithOffsets(
    *,
    input: _Input,
    input_encoding: str | bytes,
    errors: typing.Literal['strict', 'replace', 'ignore'] = 'replace',
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    Tsplits: _Type = ...,
    name: str | None = None,
) -> _UnicodeDecodeWithOffsetsOutputs:
    """The code points of each string and the bytes at which they begin, as ragged rows."""

def UnicodeEncode(
    *,
    input_values: _Input,
    input_splits: _Input,
    output_encoding: typing.Literal['UTF-8', 'UTF-16-BE', 'UTF-32-BE'],
    errors: typing.Literal['ignore', 'replace', 'strict'] = 'replace',
    replacement_char: int = 65533,
    name: str | None = None,
) -> _Tensor:
    """A string of each row of code points."""

def UnicodeScript(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """ICU's number of the script of each code point; -1 for what is none."""

def UnicodeTranscode(
    *,
    input: _Input,
    input_encoding: str | bytes,
    output_encoding: typing.Literal['UTF-8', 'UTF-16-BE', 'UTF-32-BE'],
    errors: typing.Literal['strict', 'replace', 'ignore'] = 'replace',
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Each string in another encoding."""

class _UniformCandidateSamplerOutputs(typing.NamedTuple):
    sampled_candidates: _Tensor
    true_expected_count: _Tensor
    sampled_expected_count: _Tensor

def UniformCandidateSampler(
    *,
    true_classes: _Input,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> _UniformCandidateSamplerOutputs:
    """Classes that are equally likely; and how often each, and each of the true ones, is expected."""

def UniformDequantize(
    *,
    input: _Input,
    scales: _Input,
    zero_points: _Input,
    Tout: _Type,
    quantization_min_val: int,
    quantization_max_val: int,
    quantization_axis: int = -1,
    name: str | None = None,
) -> _Tensor:
    """(input - zero point) * scale."""

def UniformQuantize(
    *,
    input: _Input,
    scales: _Input,
    zero_points: _Input,
    Tout: _Type,
    quantization_min_val: int,
    quantization_max_val: int,
    quantization_axis: int = -1,
    name: str | None = None,
) -> _Tensor:
    """input / scale + zero point, rounded, between the limits of the attrs."""

def UniformQuantizedAdd(
    *,
    lhs: _Input,
    rhs: _Input,
    lhs_scales: _Input,
    lhs_zero_points: _Input,
    rhs_scales: _Input,
    rhs_zero_points: _Input,
    output_scales: _Input,
    output_zero_points: _Input,
    lhs_quantization_min_val: int,
    lhs_quantization_max_val: int,
    rhs_quantization_min_val: int,
    rhs_quantization_max_val: int,
    output_quantization_min_val: int,
    output_quantization_max_val: int,
    lhs_quantization_axis: int = -1,
    rhs_quantization_axis: int = -1,
    output_quantization_axis: int = -1,
    name: str | None = None,
) -> _Tensor:
    """lhs + rhs, each as integers of the output's scale first."""

def UniformQuantizedClipByValue(
    *,
    operand: _Input,
    min: _Input,
    max: _Input,
    scales: _Input,
    zero_points: _Input,
    quantization_min_val: int,
    quantization_max_val: int,
    quantization_axis: int = -1,
    name: str | None = None,
) -> _Tensor:
    """Integers between `min` and `max`, of which each channel has its own where there is an axis."""

def UniformQuantizedConvolution(
    *,
    lhs: _Input,
    rhs: _Input,
    lhs_scales: _Input,
    lhs_zero_points: _Input,
    rhs_scales: _Input,
    rhs_zero_points: _Input,
    output_scales: _Input,
    output_zero_points: _Input,
    Tout: _Type,
    padding: str | bytes,
    lhs_quantization_min_val: int,
    lhs_quantization_max_val: int,
    rhs_quantization_min_val: int,
    rhs_quantization_max_val: int,
    output_quantization_min_val: int,
    output_quantization_max_val: int,
    window_strides: collections.abc.Sequence[int] = ...,
    explicit_padding: collections.abc.Sequence[int] = ...,
    lhs_dilation: collections.abc.Sequence[int] = ...,
    rhs_dilation: collections.abc.Sequence[int] = ...,
    batch_group_count: int = 1,
    feature_group_count: int = 1,
    dimension_numbers: str | bytes = '',
    lhs_quantization_axis: int = -1,
    rhs_quantization_axis: int = -1,
    output_quantization_axis: int = -1,
    name: str | None = None,
) -> _Tensor:
    """The convolution of quantised images with quantised filters, as integers of the output's scale."""

def UniformQuantizedConvolutionHybrid(
    *,
    lhs: _Input,
    rhs: _Input,
    rhs_scales: _Input,
    rhs_zero_points: _Input,
    Tout: _Type,
    padding: str | bytes,
    rhs_quantization_min_val: int,
    rhs_quantization_max_val: int,
    window_strides: collections.abc.Sequence[int] = ...,
    explicit_padding: collections.abc.Sequence[int] = ...,
    lhs_dilation: collections.abc.Sequence[int] = ...,
    rhs_dilation: collections.abc.Sequence[int] = ...,
    batch_group_count: int = 1,
    feature_group_count: int = 1,
    dimension_numbers: str | bytes = '',
    rhs_quantization_axis: int = -1,
    name: str | None = None,
) -> _Tensor:
    """The convolution of images of floats, each of which is quantised first, with quantised filters."""

def UniformQuantizedDot(
    *,
    lhs: _Input,
    rhs: _Input,
    lhs_scales: _Input,
    lhs_zero_points: _Input,
    rhs_scales: _Input,
    rhs_zero_points: _Input,
    output_scales: _Input,
    output_zero_points: _Input,
    Tout: _Type,
    lhs_quantization_min_val: int,
    lhs_quantization_max_val: int,
    rhs_quantization_min_val: int,
    rhs_quantization_max_val: int,
    output_quantization_min_val: int,
    output_quantization_max_val: int,
    lhs_quantization_axis: int = -1,
    rhs_quantization_axis: int = -1,
    output_quantization_axis: int = -1,
    name: str | None = None,
) -> _Tensor:
    """The product of two quantised matrices, as integers of the output's scale."""

def UniformQuantizedDotHybrid(
    *,
    lhs: _Input,
    rhs: _Input,
    rhs_scales: _Input,
    rhs_zero_points: _Input,
    Tout: _Type,
    rhs_quantization_min_val: int,
    rhs_quantization_max_val: int,
    rhs_quantization_axis: int = -1,
    name: str | None = None,
) -> _Tensor:
    """The product of a matrix of floats, each row of which is quantised first, and a quantised one."""

def UniformRequantize(
    *,
    input: _Input,
    input_scales: _Input,
    input_zero_points: _Input,
    output_scales: _Input,
    output_zero_points: _Input,
    Tout: _Type,
    input_quantization_min_val: int,
    input_quantization_max_val: int,
    output_quantization_min_val: int,
    output_quantization_max_val: int,
    input_quantization_axis: int = -1,
    output_quantization_axis: int = -1,
    name: str | None = None,
) -> _Tensor:
    """Integers of one scale and zero point as those of another."""

class _UniqueOutputs(typing.NamedTuple):
    y: _Tensor
    idx: _Tensor

def Unique(
    *,
    x: _Input,
    out_idx: _Type = ...,
    name: str | None = None,
) -> _UniqueOutputs:
    """The elements of `x` that differ, in order, and for each element which it is."""

def UniqueDataset(
    *,
    input_dataset: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Each element once."""

class _UniqueV2Outputs(typing.NamedTuple):
    y: _Tensor
    idx: _Tensor

def UniqueV2(
    *,
    x: _Input,
    axis: _Input,
    out_idx: _Type = ...,
    name: str | None = None,
) -> _UniqueV2Outputs:
    """The slices of `x` along `axis` that differ, in order, and which each slice is."""

class _UniqueWithCountsOutputs(typing.NamedTuple):
    y: _Tensor
    idx: _Tensor
    count: _Tensor

def UniqueWithCounts(
    *,
    x: _Input,
    out_idx: _Type = ...,
    name: str | None = None,
) -> _UniqueWithCountsOutputs:
    """As Unique; also how often each of the elements appears."""

class _UniqueWithCountsV2Outputs(typing.NamedTuple):
    y: _Tensor
    idx: _Tensor
    count: _Tensor

def UniqueWithCountsV2(
    *,
    x: _Input,
    axis: _Input,
    out_idx: _Type = ...,
    name: str | None = None,
) -> _UniqueWithCountsV2Outputs:
    """As UniqueV2; also how often each of the slices appears."""

def Unpack(
    *,
    value: _Input,
    num: int,
    axis: int = 0,
    name: str | None = None,
) -> list[_Tensor]:
    """`value` in slices along dimension `axis`, without that dimension."""

def UnravelIndex(
    *,
    indices: _Input,
    dims: _Input,
    name: str | None = None,
) -> _Tensor:
    """For each of the `indices` into the elements of a tensor of shape `dims` its coordinates."""

def UnsortedSegmentJoin(
    *,
    inputs: _Input,
    segment_ids: _Input,
    num_segments: _Input,
    separator: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The strings of each segment joined, in their order."""

def UnsortedSegmentMax(
    *,
    data: _Input,
    segment_ids: _Input,
    num_segments: _Input,
    name: str | None = None,
) -> _Tensor:
    """Reduce the parts of `data` of each of `num_segments` segments to one."""

def UnsortedSegmentMin(
    *,
    data: _Input,
    segment_ids: _Input,
    num_segments: _Input,
    name: str | None = None,
) -> _Tensor:
    """Reduce the parts of `data` of each of `num_segments` segments to one."""

def UnsortedSegmentProd(
    *,
    data: _Input,
    segment_ids: _Input,
    num_segments: _Input,
    name: str | None = None,
) -> _Tensor:
    """Reduce the parts of `data` of each of `num_segments` segments to one."""

def UnsortedSegmentSum(
    *,
    data: _Input,
    segment_ids: _Input,
    num_segments: _Input,
    name: str | None = None,
) -> _Tensor:
    """Reduce the parts of `data` of each of `num_segments` segments to one."""

def Unstage(
    *,
    dtypes: collections.abc.Sequence[_Type],
    capacity: int = 0,
    memory_limit: int = 0,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> list[_Tensor]:
    """Takes the tensors that were put in first; waits until there are some."""

def UnwrapDatasetVariant(
    *,
    input_handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """The dataset in a wrapper."""

def UpdateTaskIdAndGlobalCoreArray(
    *,
    tpu_task_id_to_shard_id: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def UpperBound(
    *,
    sorted_inputs: _Input,
    values: _Input,
    out_type: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """For each value the first place in its row of `sorted_inputs` with something larger."""

def VarHandleOp(
    *,
    dtype: _Type,
    shape: _Shape,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    debug_name: str | bytes = '',
    allowed_devices: collections.abc.Sequence[str | bytes] = ...,
    name: str | None = None,
) -> _Tensor:
    """A handle to the variable of that name and container, which need not exist yet."""

def VarIsInitializedOp(
    *,
    resource: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether the variable exists and was assigned a value."""

def Variable(
    *,
    shape: _Shape,
    dtype: _Type,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A reference to a tensor that outlives steps."""

def VariableShape(
    *,
    input: _Input,
    out_type: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The shape of the variable's tensor."""

def VariableV2(
    *,
    shape: _Shape,
    dtype: _Type,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A reference to a tensor that outlives steps."""

def WeightedFlatMapDataset(
    *,
    input_datasets: collections.abc.Sequence[_Input],
    weights: collections.abc.Sequence[_Input],
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Elements of each of several datasets, as many as its weight says, one dataset after the other."""

def Where(
    *,
    condition: _Input,
    name: str | None = None,
) -> _Tensor:
    """The indices of the elements that are true or not 0, in row-major order, one a row."""

def While(
    *,
    input: collections.abc.Sequence[_Input],
    cond: _Func,
    body: _Func,
    output_shapes: collections.abc.Sequence[_Shape] = ...,
    parallel_iterations: int = 10,
    name: str | None = None,
) -> list[_Tensor]:
    """output = input; while cond(output): output = body(output)."""

def WholeFileReader(
    *,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A reader whose records are the contents of files; keys are the names."""

def WholeFileReaderV2(
    *,
    container: str | bytes = '',
    shared_name: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """A reader whose records are the contents of files; keys are the names."""

def WindowDataset(
    *,
    input_dataset: _Input,
    size: _Input,
    shift: _Input,
    stride: _Input,
    drop_remainder: _Input,
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Datasets of `size` elements that are `stride` apart; each begins `shift` elements after the last."""

def WindowOp(
    *,
    inputs: collections.abc.Sequence[_Input],
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> _Tensor:
    """A dataset whose only element is `inputs`."""

def WorkerHeartbeat(
    *,
    request: _Input,
    name: str | None = None,
) -> _Tensor: ...

def WrapDatasetVariant(
    *,
    input_handle: _Input,
    name: str | None = None,
) -> _Tensor:
    """A dataset in a wrapper."""

def WriteAudioSummary(
    *,
    writer: _Input,
    step: _Input,
    tag: _Input,
    tensor: _Input,
    sample_rate: _Input,
    max_outputs: int = 3,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Writes a WAV file of each sound [batch, frames, channels]."""

def WriteFile(
    *,
    filename: _Input,
    contents: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Writes a file, and makes the directories that it needs. A file of that name is replaced."""

def WriteGraphSummary(
    *,
    writer: _Input,
    step: _Input,
    tensor: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Writes a serialized graph."""

def WriteHistogramSummary(
    *,
    writer: _Input,
    step: _Input,
    tag: _Input,
    values: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Writes a histogram of values."""

def WriteImageSummary(
    *,
    writer: _Input,
    step: _Input,
    tag: _Input,
    tensor: _Input,
    bad_color: _Input,
    max_images: int = 3,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Writes a PNG file of each image [batch, height, width, channels]."""

def WriteRawProtoSummary(
    *,
    writer: _Input,
    step: _Input,
    tensor: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Writes serialized summaries, as one event."""

def WriteScalarSummary(
    *,
    writer: _Input,
    step: _Input,
    tag: _Input,
    value: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Writes a number."""

def WriteSummary(
    *,
    writer: _Input,
    step: _Input,
    tensor: _Input,
    tag: _Input,
    summary_metadata: _Input,
    name: str | None = None,
) -> opkernel.graph.Operation | None:
    """Writes a tensor."""

def Xdivy(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The quotient `x / y`; 0 where `x` is 0."""

def XlaAllReduce(
    *,
    input: _Input,
    group_assignment: _Input,
    reduce_op: typing.Literal['Min', 'Max', 'Mul', 'Add', 'Mean'],
    mode: typing.Literal['CrossReplica', 'CrossReplicaAndPartition'],
    name: str | None = None,
) -> _Tensor: ...

class _XlaBroadcastHelperOutputs(typing.NamedTuple):
    lhs_output: _Tensor
    rhs_output: _Tensor

def XlaBroadcastHelper(
    *,
    lhs: _Input,
    rhs: _Input,
    broadcast_dims: _Input,
    name: str | None = None,
) -> _XlaBroadcastHelperOutputs: ...

def XlaCallModule(
    *,
    args: collections.abc.Sequence[_Input],
    version: int,
    module: str | bytes,
    Sout: collections.abc.Sequence[_Shape],
    Tout: collections.abc.Sequence[_Type],
    dim_args_spec: collections.abc.Sequence[str | bytes] = ...,
    platforms: collections.abc.Sequence[str | bytes] = ...,
    function_list: collections.abc.Sequence[_Func] = ...,
    has_token_input_output: bool = False,
    disabled_checks: collections.abc.Sequence[str | bytes] = ...,
    use_shardy_partitioner: bool = False,
    name: str | None = None,
) -> list[_Tensor]: ...

def XlaClusterOutput(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor: ...

def XlaConcatND(
    *,
    inputs: collections.abc.Sequence[_Input],
    num_concats: collections.abc.Sequence[int],
    paddings: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor: ...

def XlaConv(
    *,
    lhs: _Input,
    rhs: _Input,
    window_strides: _Input,
    padding: _Input,
    lhs_dilation: _Input,
    rhs_dilation: _Input,
    feature_group_count: _Input,
    dimension_numbers: str | bytes,
    precision_config: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def XlaConvV2(
    *,
    lhs: _Input,
    rhs: _Input,
    window_strides: _Input,
    padding: _Input,
    lhs_dilation: _Input,
    rhs_dilation: _Input,
    feature_group_count: _Input,
    dimension_numbers: str | bytes,
    precision_config: str | bytes,
    preferred_element_type: _Type,
    batch_group_count: int = 1,
    name: str | None = None,
) -> _Tensor: ...

def XlaCustomCall(
    *,
    args: collections.abc.Sequence[_Input],
    target_name: str | bytes,
    backend_config: str | bytes,
    dtype: _Type,
    shape: _Shape,
    name: str | None = None,
) -> _Tensor: ...

def XlaCustomCallV2(
    *,
    operands: collections.abc.Sequence[_Input],
    call_target_name: str | bytes,
    backend_config: str | bytes,
    has_side_effect: bool,
    result_dtypes: collections.abc.Sequence[_Type],
    result_shapes: collections.abc.Sequence[_Shape],
    name: str | None = None,
) -> list[_Tensor]: ...

def XlaDequantize(
    *,
    input: _Input,
    min_range: float,
    max_range: float,
    mode: str | bytes,
    transpose_output: bool,
    name: str | None = None,
) -> _Tensor: ...

def XlaDot(
    *,
    lhs: _Input,
    rhs: _Input,
    dimension_numbers: str | bytes,
    precision_config: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def XlaDotV2(
    *,
    lhs: _Input,
    rhs: _Input,
    dimension_numbers: str | bytes,
    precision_config: str | bytes,
    preferred_element_type: _Type,
    name: str | None = None,
) -> _Tensor: ...

def XlaDynamicSlice(
    *,
    input: _Input,
    start_indices: _Input,
    size_indices: _Input,
    name: str | None = None,
) -> _Tensor: ...

def XlaDynamicUpdateSlice(
    *,
    input: _Input,
    update: _Input,
    indices: _Input,
    name: str | None = None,
) -> _Tensor: ...

def XlaEinsum(
    *,
    a: _Input,
    b: _Input,
    equation: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def XlaGather(
    *,
    operand: _Input,
    start_indices: _Input,
    slice_sizes: _Input,
    dimension_numbers: str | bytes,
    indices_are_sorted: bool,
    name: str | None = None,
) -> _Tensor: ...

def XlaHostCompute(
    *,
    inputs: collections.abc.Sequence[_Input],
    Toutputs: collections.abc.Sequence[_Type],
    ancestors: collections.abc.Sequence[str | bytes],
    shapes: collections.abc.Sequence[_Shape],
    shape_inference_graph: _Func,
    key: str | bytes,
    send_key: str | bytes = '',
    recv_key: str | bytes = '',
    cost_estimate_ns: int = 1000000,
    tpu_core: int = 0,
    name: str | None = None,
) -> list[_Tensor]: ...

def XlaIf(
    *,
    cond: _Input,
    inputs: collections.abc.Sequence[_Input],
    then_branch: _Func,
    else_branch: _Func,
    Tout: collections.abc.Sequence[_Type],
    name: str | None = None,
) -> list[_Tensor]: ...

class _XlaKeyValueSortOutputs(typing.NamedTuple):
    sorted_keys: _Tensor
    sorted_values: _Tensor

def XlaKeyValueSort(
    *,
    keys: _Input,
    values: _Input,
    name: str | None = None,
) -> _XlaKeyValueSortOutputs: ...

def XlaLaunch(
    *,
    constants: collections.abc.Sequence[_Input],
    args: collections.abc.Sequence[_Input],
    resources: collections.abc.Sequence[_Input],
    Tresults: collections.abc.Sequence[_Type],
    function: _Func,
    name: str | None = None,
) -> list[_Tensor]: ...

def XlaLaunchV2(
    *,
    args: collections.abc.Sequence[_Input],
    Tresults: collections.abc.Sequence[_Type],
    constants: collections.abc.Sequence[int],
    resources: collections.abc.Sequence[int],
    function: _Func,
    name: str | None = None,
) -> list[_Tensor]: ...

def XlaOptimizationBarrier(
    *,
    input: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> list[_Tensor]: ...

def XlaPad(
    *,
    input: _Input,
    padding_value: _Input,
    padding_low: _Input,
    padding_high: _Input,
    padding_interior: _Input,
    name: str | None = None,
) -> _Tensor: ...

def XlaRecv(
    *,
    dtype: _Type,
    tensor_name: str | bytes,
    shape: _Shape,
    name: str | None = None,
) -> _Tensor: ...

def XlaRecvFromHost(
    *,
    Toutput: _Type,
    shape: _Shape,
    key: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def XlaRecvTPUEmbeddingActivations(
    *,
    deduplication_data: _Input,
    num_tables: int,
    config: str | bytes,
    name: str | None = None,
) -> list[_Tensor]: ...

def XlaRecvTPUEmbeddingActivationsV2(
    *,
    deduplication_data: _Input,
    num_tables: int,
    config: str | bytes,
    embedding_partitions: str | bytes,
    hbm_buffers_config: str | bytes,
    tpu_topology: str | bytes,
    name: str | None = None,
) -> list[_Tensor]: ...

def XlaRecvTPUEmbeddingDeduplicationData(
    *,
    config: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def XlaRecvTPUEmbeddingDeduplicationDataV2(
    *,
    config: str | bytes,
    embedding_partitions: str | bytes,
    hbm_buffers_config: str | bytes,
    tpu_topology: str | bytes,
    name: str | None = None,
) -> _Tensor: ...

def XlaReduce(
    *,
    input: _Input,
    init_value: _Input,
    dimensions_to_reduce: collections.abc.Sequence[int],
    reducer: _Func,
    name: str | None = None,
) -> _Tensor: ...

def XlaReducePrecision(
    *,
    operand: _Input,
    exponent_bits: int,
    mantissa_bits: int,
    name: str | None = None,
) -> _Tensor: ...

def XlaReduceScatter(
    *,
    input: _Input,
    group_assignment: _Input,
    scatter_dimension: _Input,
    reduce_op: typing.Literal['Min', 'Max', 'Mul', 'Add', 'Mean'],
    name: str | None = None,
) -> _Tensor: ...

def XlaReduceWindow(
    *,
    input: _Input,
    init_value: _Input,
    window_dimensions: _Input,
    window_strides: _Input,
    base_dilations: _Input,
    window_dilations: _Input,
    padding: _Input,
    computation: _Func,
    name: str | None = None,
) -> _Tensor: ...

def XlaRemoveDynamicDimensionSize(
    *,
    input: _Input,
    dim_index: _Input,
    name: str | None = None,
) -> _Tensor: ...

def XlaReplicaId(
    *,
    name: str | None = None,
) -> _Tensor: ...

class _XlaRngBitGeneratorOutputs(typing.NamedTuple):
    output_key: _Tensor
    output: _Tensor

def XlaRngBitGenerator(
    *,
    algorithm: _Input,
    initial_state: _Input,
    shape: _Input,
    dtype: _Type = ...,
    name: str | None = None,
) -> _XlaRngBitGeneratorOutputs: ...

def XlaScatter(
    *,
    operand: _Input,
    scatter_indices: _Input,
    updates: _Input,
    update_computation: _Func,
    dimension_numbers: str | bytes,
    indices_are_sorted: bool,
    name: str | None = None,
) -> _Tensor: ...

def XlaSelectAndScatter(
    *,
    operand: _Input,
    window_dimensions: _Input,
    window_strides: _Input,
    padding: _Input,
    source: _Input,
    init_value: _Input,
    select: _Func,
    scatter: _Func,
    name: str | None = None,
) -> _Tensor: ...

class _XlaSelfAdjointEigOutputs(typing.NamedTuple):
    w: _Tensor
    v: _Tensor

def XlaSelfAdjointEig(
    *,
    a: _Input,
    lower: bool,
    max_iter: int,
    epsilon: float,
    name: str | None = None,
) -> _XlaSelfAdjointEigOutputs: ...

def XlaSend(
    *,
    tensor: _Input,
    tensor_name: str | bytes,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def XlaSendTPUEmbeddingGradients(
    *,
    gradients: collections.abc.Sequence[_Input],
    learning_rates: collections.abc.Sequence[_Input],
    deduplication_data: _Input,
    config: str | bytes,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def XlaSendTPUEmbeddingGradientsV2(
    *,
    gradients: collections.abc.Sequence[_Input],
    learning_rates: collections.abc.Sequence[_Input],
    deduplication_data: _Input,
    config: str | bytes,
    embedding_partitions: str | bytes,
    hbm_buffers_config: str | bytes,
    tpu_topology: str | bytes,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def XlaSendToHost(
    *,
    input: _Input,
    key: str | bytes,
    name: str | None = None,
) -> opkernel.graph.Operation | None: ...

def XlaSetBound(
    *,
    input: _Input,
    bound: _Input,
    name: str | None = None,
) -> _Tensor: ...

def XlaSetDynamicDimensionSize(
    *,
    input: _Input,
    dim_index: _Input,
    size: _Input,
    name: str | None = None,
) -> _Tensor: ...

def XlaSharding(
    *,
    input: _Input,
    sharding: str | bytes = '',
    unspecified_dims: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor: ...

def XlaSort(
    *,
    input: _Input,
    name: str | None = None,
) -> _Tensor: ...

def XlaSparseActivationsUnstack(
    *,
    stacked_activations: _Input,
    num_tables: int,
    sample_counts: collections.abc.Sequence[int],
    features: collections.abc.Sequence[int],
    interleaved: bool,
    dtype: _Type,
    name: str | None = None,
) -> list[_Tensor]: ...

class _XlaSparseCoreAdagradOutputs(typing.NamedTuple):
    updated_embedding_table: _Tensor
    updated_accumulator: _Tensor

def XlaSparseCoreAdagrad(
    *,
    indices: _Input,
    gradient: _Input,
    learning_rate: _Input,
    accumulator: _Input,
    embedding_table: _Input,
    feature_width: int,
    name: str | None = None,
) -> _XlaSparseCoreAdagradOutputs: ...

class _XlaSparseCoreAdagradMomentumOutputs(typing.NamedTuple):
    updated_embedding_table: _Tensor
    updated_accumulator: _Tensor
    updated_momentum: _Tensor

def XlaSparseCoreAdagradMomentum(
    *,
    indices: _Input,
    gradient: _Input,
    learning_rate: _Input,
    beta_1: _Input,
    epsilon: _Input,
    accumulator: _Input,
    momentum: _Input,
    embedding_table: _Input,
    feature_width: int,
    use_nesterov: bool,
    beta_2: float,
    exponent: float,
    name: str | None = None,
) -> _XlaSparseCoreAdagradMomentumOutputs: ...

class _XlaSparseCoreAdamOutputs(typing.NamedTuple):
    updated_embedding_table: _Tensor
    updated_velocity: _Tensor
    updated_momentum: _Tensor

def XlaSparseCoreAdam(
    *,
    embedding_table: _Input,
    indices: _Input,
    gradient: _Input,
    learning_rate: _Input,
    momentum: _Input,
    velocity: _Input,
    beta_1: _Input,
    beta_2: _Input,
    epsilon: _Input,
    feature_width: int,
    use_sum_inside_sqrt: bool,
    name: str | None = None,
) -> _XlaSparseCoreAdamOutputs: ...

class _XlaSparseCoreFtrlOutputs(typing.NamedTuple):
    updated_embedding_table: _Tensor
    updated_accumulator: _Tensor
    updated_linear: _Tensor

def XlaSparseCoreFtrl(
    *,
    embedding_table: _Input,
    accumulator: _Input,
    linear: _Input,
    learning_rate: _Input,
    indices: _Input,
    gradient: _Input,
    beta: _Input,
    learning_rate_power: _Input,
    l2_regularization_strength: _Input,
    feature_width: int,
    multiply_linear_by_learning_rate: bool,
    l1_regularization_strength: float,
    name: str | None = None,
) -> _XlaSparseCoreFtrlOutputs: ...

def XlaSparseCoreSgd(
    *,
    indices: _Input,
    gradient: _Input,
    learning_rate: _Input,
    embedding_table: _Input,
    feature_width: int,
    name: str | None = None,
) -> _Tensor: ...

class _XlaSparseDenseMatmulOutputs(typing.NamedTuple):
    activations: _Tensor
    row_pointers: _Tensor
    sorted_embedding_ids: _Tensor
    sorted_sample_ids: _Tensor
    sorted_gains: _Tensor

def XlaSparseDenseMatmul(
    *,
    row_ids: _Input,
    col_ids: _Input,
    values: _Input,
    offsets: _Input,
    embedding_table: _Input,
    max_ids_per_partition: int,
    max_unique_ids_per_partition: int,
    input_size: int,
    name: str | None = None,
) -> _XlaSparseDenseMatmulOutputs: ...

class _XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdagradAndCsrInputOutputs(typing.NamedTuple):
    updated_embedding_table: _Tensor
    updated_accumulator: _Tensor
    updated_weights: _Tensor

def XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdagradAndCsrInput(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_pos_ids: _Input,
    sorted_gains: _Input,
    weights: _Input,
    preserved_valencies: _Input,
    preserved_vectors: _Input,
    preserved_weights: _Input,
    activation_gradients: _Input,
    learning_rate: _Input,
    combiner_weights_learning_rate: _Input,
    embedding_table: _Input,
    accumulator: _Input,
    max_valency: int,
    num_weights: int,
    combiner_table_vjp_computation: _Func,
    combiner_weights_vjp_computation: _Func,
    table_name: str | bytes,
    clip_weight_min: float = ...,
    clip_weight_max: float = ...,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdagradAndCsrInputOutputs: ...

class _XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdagradMomentumAndCsrInputOutputs(typing.NamedTuple):
    updated_embedding_table: _Tensor
    updated_accumulator: _Tensor
    updated_momenta: _Tensor
    updated_weights: _Tensor

def XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdagradMomentumAndCsrInput(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_pos_ids: _Input,
    sorted_gains: _Input,
    weights: _Input,
    preserved_valencies: _Input,
    preserved_vectors: _Input,
    preserved_weights: _Input,
    activation_gradients: _Input,
    learning_rate: _Input,
    combiner_weights_learning_rate: _Input,
    embedding_table: _Input,
    accumulator: _Input,
    momenta: _Input,
    use_nesterov: bool,
    exponent: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    max_valency: int,
    num_weights: int,
    combiner_table_vjp_computation: _Func,
    combiner_weights_vjp_computation: _Func,
    table_name: str | bytes,
    clip_weight_min: float = ...,
    clip_weight_max: float = ...,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdagradMomentumAndCsrInputOutputs: ...

class _XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdamAndCsrInputOutputs(typing.NamedTuple):
    updated_embedding_table: _Tensor
    updated_momenta: _Tensor
    updated_velocity: _Tensor
    updated_weights: _Tensor

def XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdamAndCsrInput(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_pos_ids: _Input,
    sorted_gains: _Input,
    weights: _Input,
    preserved_valencies: _Input,
    preserved_vectors: _Input,
    preserved_weights: _Input,
    activation_gradients: _Input,
    learning_rate: _Input,
    combiner_weights_learning_rate: _Input,
    embedding_table: _Input,
    momenta: _Input,
    velocity: _Input,
    use_sum_inside_sqrt: bool,
    beta1: float,
    beta2: float,
    epsilon: float,
    max_valency: int,
    num_weights: int,
    combiner_table_vjp_computation: _Func,
    combiner_weights_vjp_computation: _Func,
    table_name: str | bytes,
    clip_weight_min: float = ...,
    clip_weight_max: float = ...,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdamAndCsrInputOutputs: ...

class _XlaSparseDenseMatmulCustomCombinerOnTcGradWithCsrInputOutputs(typing.NamedTuple):
    updated_tables: list[_Tensor]
    updated_weights: _Tensor

def XlaSparseDenseMatmulCustomCombinerOnTcGradWithCsrInput(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_pos_ids: _Input,
    sorted_gains: _Input,
    weights: _Input,
    preserved_valencies: _Input,
    preserved_vectors: _Input,
    preserved_weights: _Input,
    activation_gradients: _Input,
    tables: collections.abc.Sequence[_Input],
    hyperparameters: collections.abc.Sequence[_Input],
    combiner_weights_learning_rate: _Input,
    max_valency: int,
    num_weights: int,
    combiner_table_vjp_computation: _Func,
    combiner_weights_vjp_computation: _Func,
    optimizer_custom_computation: _Func,
    table_name: str | bytes,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _XlaSparseDenseMatmulCustomCombinerOnTcGradWithCsrInputOutputs: ...

class _XlaSparseDenseMatmulCustomCombinerOnTcGradWithFtrlAndCsrInputOutputs(typing.NamedTuple):
    updated_embedding_table: _Tensor
    updated_accumulator: _Tensor
    updated_linear: _Tensor
    updated_weights: _Tensor

def XlaSparseDenseMatmulCustomCombinerOnTcGradWithFtrlAndCsrInput(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_pos_ids: _Input,
    sorted_gains: _Input,
    weights: _Input,
    preserved_valencies: _Input,
    preserved_vectors: _Input,
    preserved_weights: _Input,
    activation_gradients: _Input,
    learning_rate: _Input,
    combiner_weights_learning_rate: _Input,
    embedding_table: _Input,
    accumulator: _Input,
    linear: _Input,
    multiply_linear_by_learning_rate: bool,
    beta: float,
    learning_rate_power: float,
    l1_regularization_strength: float,
    l2_regularization_strength: float,
    max_valency: int,
    num_weights: int,
    combiner_table_vjp_computation: _Func,
    combiner_weights_vjp_computation: _Func,
    table_name: str | bytes,
    clip_weight_min: float = ...,
    clip_weight_max: float = ...,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _XlaSparseDenseMatmulCustomCombinerOnTcGradWithFtrlAndCsrInputOutputs: ...

class _XlaSparseDenseMatmulCustomCombinerOnTcGradWithSgdAndCsrInputOutputs(typing.NamedTuple):
    updated_embedding_table: _Tensor
    updated_weights: _Tensor

def XlaSparseDenseMatmulCustomCombinerOnTcGradWithSgdAndCsrInput(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_pos_ids: _Input,
    sorted_gains: _Input,
    weights: _Input,
    preserved_valencies: _Input,
    preserved_vectors: _Input,
    preserved_weights: _Input,
    activation_gradients: _Input,
    learning_rate: _Input,
    combiner_weights_learning_rate: _Input,
    embedding_table: _Input,
    max_valency: int,
    num_weights: int,
    combiner_table_vjp_computation: _Func,
    combiner_weights_vjp_computation: _Func,
    table_name: str | bytes,
    clip_weight_min: float = ...,
    clip_weight_max: float = ...,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _XlaSparseDenseMatmulCustomCombinerOnTcGradWithSgdAndCsrInputOutputs: ...

class _XlaSparseDenseMatmulCustomCombinerOnTcWithCsrInputOutputs(typing.NamedTuple):
    activations: _Tensor
    preserved_valencies: _Tensor
    preserved_vectors: _Tensor

def XlaSparseDenseMatmulCustomCombinerOnTcWithCsrInput(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_pos_ids: _Input,
    sorted_gains: _Input,
    embedding_table: _Input,
    weights: _Input,
    input_size: int,
    max_valency: int,
    num_weights: int,
    combiner_computation: _Func,
    quantization_config_low: float,
    quantization_config_high: float,
    quantization_config_num_buckets: int,
    table_name: str | bytes,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _XlaSparseDenseMatmulCustomCombinerOnTcWithCsrInputOutputs: ...

class _XlaSparseDenseMatmulGradWithAdagradAndCsrInputOutputs(typing.NamedTuple):
    updated_embedding_table: _Tensor
    updated_accumulator: _Tensor

def XlaSparseDenseMatmulGradWithAdagradAndCsrInput(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_gains: _Input,
    activation_gradients: _Input,
    learning_rate: _Input,
    embedding_table: _Input,
    accumulator: _Input,
    num_minibatches_per_physical_sparse_core: _Input,
    table_name: str | bytes,
    clip_weight_min: float = ...,
    clip_weight_max: float = ...,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _XlaSparseDenseMatmulGradWithAdagradAndCsrInputOutputs: ...

class _XlaSparseDenseMatmulGradWithAdagradAndStaticBufferSizeOutputs(typing.NamedTuple):
    updated_embedding_table: _Tensor
    updated_accumulator: _Tensor

def XlaSparseDenseMatmulGradWithAdagradAndStaticBufferSize(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_gains: _Input,
    activation_gradients: _Input,
    learning_rate: _Input,
    embedding_table: _Input,
    accumulator: _Input,
    num_minibatches_per_physical_sparse_core: _Input,
    max_ids_per_sparse_core: int,
    max_unique_ids_per_sparse_core: int,
    table_name: str | bytes,
    clip_weight_min: float = ...,
    clip_weight_max: float = ...,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _XlaSparseDenseMatmulGradWithAdagradAndStaticBufferSizeOutputs: ...

class _XlaSparseDenseMatmulGradWithAdagradMomentumAndCsrInputOutputs(typing.NamedTuple):
    updated_embedding_table: _Tensor
    updated_accumulator: _Tensor
    updated_momenta: _Tensor

def XlaSparseDenseMatmulGradWithAdagradMomentumAndCsrInput(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_gains: _Input,
    activation_gradients: _Input,
    learning_rate: _Input,
    embedding_table: _Input,
    accumulator: _Input,
    momenta: _Input,
    num_minibatches_per_physical_sparse_core: _Input,
    use_nesterov: bool,
    exponent: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    table_name: str | bytes,
    clip_weight_min: float = ...,
    clip_weight_max: float = ...,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _XlaSparseDenseMatmulGradWithAdagradMomentumAndCsrInputOutputs: ...

class _XlaSparseDenseMatmulGradWithAdagradMomentumAndStaticBufferSizeOutputs(typing.NamedTuple):
    updated_embedding_table: _Tensor
    updated_accumulator: _Tensor
    updated_momenta: _Tensor

def XlaSparseDenseMatmulGradWithAdagradMomentumAndStaticBufferSize(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_gains: _Input,
    activation_gradients: _Input,
    learning_rate: _Input,
    embedding_table: _Input,
    accumulator: _Input,
    momenta: _Input,
    num_minibatches_per_physical_sparse_core: _Input,
    use_nesterov: bool,
    exponent: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    max_ids_per_sparse_core: int,
    max_unique_ids_per_sparse_core: int,
    table_name: str | bytes,
    clip_weight_min: float = ...,
    clip_weight_max: float = ...,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _XlaSparseDenseMatmulGradWithAdagradMomentumAndStaticBufferSizeOutputs: ...

class _XlaSparseDenseMatmulGradWithAdamAndCsrInputOutputs(typing.NamedTuple):
    updated_embedding_table: _Tensor
    updated_momenta: _Tensor
    updated_velocity: _Tensor

def XlaSparseDenseMatmulGradWithAdamAndCsrInput(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_gains: _Input,
    activation_gradients: _Input,
    learning_rate: _Input,
    embedding_table: _Input,
    momenta: _Input,
    velocity: _Input,
    num_minibatches_per_physical_sparse_core: _Input,
    use_sum_inside_sqrt: bool,
    beta1: float,
    beta2: float,
    epsilon: float,
    table_name: str | bytes,
    clip_weight_min: float = ...,
    clip_weight_max: float = ...,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _XlaSparseDenseMatmulGradWithAdamAndCsrInputOutputs: ...

class _XlaSparseDenseMatmulGradWithAdamAndStaticBufferSizeOutputs(typing.NamedTuple):
    updated_embedding_table: _Tensor
    updated_momenta: _Tensor
    updated_velocity: _Tensor

def XlaSparseDenseMatmulGradWithAdamAndStaticBufferSize(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_gains: _Input,
    activation_gradients: _Input,
    learning_rate: _Input,
    embedding_table: _Input,
    momenta: _Input,
    velocity: _Input,
    num_minibatches_per_physical_sparse_core: _Input,
    use_sum_inside_sqrt: bool,
    beta1: float,
    beta2: float,
    epsilon: float,
    max_ids_per_sparse_core: int,
    max_unique_ids_per_sparse_core: int,
    table_name: str | bytes,
    clip_weight_min: float = ...,
    clip_weight_max: float = ...,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _XlaSparseDenseMatmulGradWithAdamAndStaticBufferSizeOutputs: ...

def XlaSparseDenseMatmulGradWithCsrInput(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_gains: _Input,
    activation_gradients: _Input,
    tables: collections.abc.Sequence[_Input],
    hyperparameters: collections.abc.Sequence[_Input],
    num_minibatches_per_physical_sparse_core: _Input,
    custom_computation: _Func,
    table_name: str | bytes,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> list[_Tensor]: ...

class _XlaSparseDenseMatmulGradWithFtrlAndCsrInputOutputs(typing.NamedTuple):
    updated_embedding_table: _Tensor
    updated_accumulator: _Tensor
    updated_linear: _Tensor

def XlaSparseDenseMatmulGradWithFtrlAndCsrInput(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_gains: _Input,
    activation_gradients: _Input,
    learning_rate: _Input,
    embedding_table: _Input,
    accumulator: _Input,
    linear: _Input,
    num_minibatches_per_physical_sparse_core: _Input,
    multiply_linear_by_learning_rate: bool,
    beta: float,
    learning_rate_power: float,
    l1_regularization_strength: float,
    l2_regularization_strength: float,
    table_name: str | bytes,
    clip_weight_min: float = ...,
    clip_weight_max: float = ...,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _XlaSparseDenseMatmulGradWithFtrlAndCsrInputOutputs: ...

class _XlaSparseDenseMatmulGradWithFtrlAndStaticBufferSizeOutputs(typing.NamedTuple):
    updated_embedding_table: _Tensor
    updated_accumulator: _Tensor
    updated_linear: _Tensor

def XlaSparseDenseMatmulGradWithFtrlAndStaticBufferSize(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_gains: _Input,
    activation_gradients: _Input,
    learning_rate: _Input,
    embedding_table: _Input,
    accumulator: _Input,
    linear: _Input,
    num_minibatches_per_physical_sparse_core: _Input,
    multiply_linear_by_learning_rate: bool,
    beta: float,
    learning_rate_power: float,
    l1_regularization_strength: float,
    l2_regularization_strength: float,
    max_ids_per_sparse_core: int,
    max_unique_ids_per_sparse_core: int,
    table_name: str | bytes,
    clip_weight_min: float = ...,
    clip_weight_max: float = ...,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _XlaSparseDenseMatmulGradWithFtrlAndStaticBufferSizeOutputs: ...

def XlaSparseDenseMatmulGradWithSgdAndCsrInput(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_gains: _Input,
    activation_gradients: _Input,
    learning_rate: _Input,
    embedding_table: _Input,
    num_minibatches_per_physical_sparse_core: _Input,
    table_name: str | bytes,
    clip_weight_min: float = ...,
    clip_weight_max: float = ...,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _Tensor: ...

def XlaSparseDenseMatmulGradWithSgdAndStaticBufferSize(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_gains: _Input,
    activation_gradients: _Input,
    learning_rate: _Input,
    embedding_table: _Input,
    num_minibatches_per_physical_sparse_core: _Input,
    max_ids_per_sparse_core: int,
    max_unique_ids_per_sparse_core: int,
    table_name: str | bytes,
    clip_weight_min: float = ...,
    clip_weight_max: float = ...,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _Tensor: ...

def XlaSparseDenseMatmulWithCsrInput(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_gains: _Input,
    embedding_table: _Input,
    num_minibatches_per_physical_sparse_core: _Input,
    input_size: int,
    quantization_config_low: float,
    quantization_config_high: float,
    quantization_config_num_buckets: int,
    table_name: str | bytes,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _Tensor: ...

def XlaSparseDenseMatmulWithStaticBufferSize(
    *,
    row_pointers: _Input,
    sorted_sample_ids: _Input,
    sorted_token_ids: _Input,
    sorted_gains: _Input,
    embedding_table: _Input,
    num_minibatches_per_physical_sparse_core: _Input,
    input_size: int,
    quantization_config_low: float,
    quantization_config_high: float,
    quantization_config_num_buckets: int,
    max_ids_per_sparse_core: int,
    max_unique_ids_per_sparse_core: int,
    table_name: str | bytes,
    num_sparsecores_per_device: int = -1,
    name: str | None = None,
) -> _Tensor: ...

def XlaSparseGradientsStack(
    *,
    unstacked_gradients: collections.abc.Sequence[_Input],
    interleaved: bool,
    dtype: _Type,
    name: str | None = None,
) -> _Tensor: ...

def XlaSplitND(
    *,
    input: _Input,
    N: int,
    num_splits: collections.abc.Sequence[int],
    paddings: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> list[_Tensor]: ...

def XlaSpmdFullToShardShape(
    *,
    input: _Input,
    manual_sharding: str | bytes,
    dim: int = -1,
    unspecified_dims: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor: ...

def XlaSpmdShardToFullShape(
    *,
    input: _Input,
    manual_sharding: str | bytes,
    full_shape: _Shape,
    dim: int = -1,
    unspecified_dims: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor: ...

class _XlaSvdOutputs(typing.NamedTuple):
    s: _Tensor
    u: _Tensor
    v: _Tensor

def XlaSvd(
    *,
    a: _Input,
    max_iter: int,
    epsilon: float,
    precision_config: str | bytes,
    name: str | None = None,
) -> _XlaSvdOutputs: ...

def XlaVariadicReduce(
    *,
    input: collections.abc.Sequence[_Input],
    init_value: collections.abc.Sequence[_Input],
    dimensions_to_reduce: collections.abc.Sequence[int],
    reducer: _Func,
    name: str | None = None,
) -> list[_Tensor]: ...

def XlaVariadicReduceV2(
    *,
    inputs: collections.abc.Sequence[_Input],
    init_values: collections.abc.Sequence[_Input],
    dimensions_to_reduce: collections.abc.Sequence[int],
    reducer: _Func,
    name: str | None = None,
) -> list[_Tensor]: ...

def XlaVariadicSort(
    *,
    inputs: collections.abc.Sequence[_Input],
    dimension: _Input,
    comparator: _Func,
    is_stable: bool,
    name: str | None = None,
) -> list[_Tensor]: ...

def XlaWhile(
    *,
    input: collections.abc.Sequence[_Input],
    cond: _Func,
    body: _Func,
    name: str | None = None,
) -> list[_Tensor]: ...

def Xlog1py(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """`x * log1p(y)`; 0 where `x` is 0."""

def Xlogy(
    *,
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """`x * log(y)`; 0 where `x` is 0."""

def ZerosLike(
    *,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """Zeros of the shape and type of `x`."""

def Zeta(
    *,
    x: _Input,
    q: _Input,
    name: str | None = None,
) -> _Tensor:
    """The Hurwitz zeta function: the sum of `(q + n) ** -x` over all n from 0."""

def ZipDataset(
    *,
    input_datasets: collections.abc.Sequence[_Input],
    output_types: collections.abc.Sequence[_Type],
    output_shapes: collections.abc.Sequence[_Shape],
    metadata: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The elements of all datasets side by side, as long as each has one."""
