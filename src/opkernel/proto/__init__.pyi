"""Written by tools/generate_proto.py from protos/; do not edit."""

from typing import Any

from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.internal.containers import (
    MessageMap,
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
    ScalarMap,
)
from google.protobuf.message import DecodeError as DecodeError
from google.protobuf.message import Message as Message

__all__: list[str]
POOL: DescriptorPool

# The C core's descriptors and the Python ones share no type.
def message_class(descriptor: Any) -> type[Message]: ...

class BytesList(Message):
    @property
    def value(self) -> RepeatedScalarFieldContainer[bytes]: ...
    def __init__(self, *, value: Any = ...) -> None: ...

class FloatList(Message):
    @property
    def value(self) -> RepeatedScalarFieldContainer[float]: ...
    def __init__(self, *, value: Any = ...) -> None: ...

class Int64List(Message):
    @property
    def value(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(self, *, value: Any = ...) -> None: ...

class Feature(Message):
    @property
    def bytes_list(self) -> BytesList: ...
    @property
    def float_list(self) -> FloatList: ...
    @property
    def int64_list(self) -> Int64List: ...
    def WhichOneof(self, oneof_group: str) -> str | None: ...
    def __init__(self, *, bytes_list: Any = ..., float_list: Any = ..., int64_list: Any = ...) -> None: ...

class Features(Message):
    @property
    def feature(self) -> MessageMap[str, Feature]: ...
    def __init__(self, *, feature: Any = ...) -> None: ...

class FeatureList(Message):
    @property
    def feature(self) -> RepeatedCompositeFieldContainer[Feature]: ...
    def __init__(self, *, feature: Any = ...) -> None: ...

class FeatureLists(Message):
    @property
    def feature_list(self) -> MessageMap[str, FeatureList]: ...
    def __init__(self, *, feature_list: Any = ...) -> None: ...

class Example(Message):
    @property
    def features(self) -> Features: ...
    def __init__(self, *, features: Any = ...) -> None: ...

class SequenceExample(Message):
    @property
    def context(self) -> Features: ...
    @property
    def feature_lists(self) -> FeatureLists: ...
    def __init__(self, *, context: Any = ..., feature_lists: Any = ...) -> None: ...

class AllocationDescription(Message):
    requested_bytes: int
    allocated_bytes: int
    allocator_name: str
    allocation_id: int
    has_single_reference: bool
    ptr: int
    def __init__(self, *, requested_bytes: int = ..., allocated_bytes: int = ..., allocator_name: str = ..., allocation_id: int = ..., has_single_reference: bool = ..., ptr: int = ...) -> None: ...

class TensorShapeProto(Message):
    class Dim(Message):
        size: int
        name: str
        def __init__(self, *, size: int = ..., name: str = ...) -> None: ...

    @property
    def dim(self) -> RepeatedCompositeFieldContainer[TensorShapeProto.Dim]: ...
    unknown_rank: bool
    def __init__(self, *, dim: Any = ..., unknown_rank: bool = ...) -> None: ...

class SerializedDType(Message):
    datatype: int
    def __init__(self, *, datatype: int = ...) -> None: ...

class ResourceHandleProto(Message):
    class DtypeAndShape(Message):
        dtype: int
        @property
        def shape(self) -> TensorShapeProto: ...
        def __init__(self, *, dtype: int = ..., shape: Any = ...) -> None: ...

    device: str
    container: str
    name: str
    hash_code: int
    maybe_type_name: str
    @property
    def dtypes_and_shapes(self) -> RepeatedCompositeFieldContainer[ResourceHandleProto.DtypeAndShape]: ...
    def __init__(self, *, device: str = ..., container: str = ..., name: str = ..., hash_code: int = ..., maybe_type_name: str = ..., dtypes_and_shapes: Any = ...) -> None: ...

class TensorProto(Message):
    dtype: int
    @property
    def tensor_shape(self) -> TensorShapeProto: ...
    version_number: int
    tensor_content: bytes
    @property
    def half_val(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def float_val(self) -> RepeatedScalarFieldContainer[float]: ...
    @property
    def double_val(self) -> RepeatedScalarFieldContainer[float]: ...
    @property
    def int_val(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def string_val(self) -> RepeatedScalarFieldContainer[bytes]: ...
    @property
    def scomplex_val(self) -> RepeatedScalarFieldContainer[float]: ...
    @property
    def int64_val(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def bool_val(self) -> RepeatedScalarFieldContainer[bool]: ...
    @property
    def dcomplex_val(self) -> RepeatedScalarFieldContainer[float]: ...
    @property
    def resource_handle_val(self) -> RepeatedCompositeFieldContainer[ResourceHandleProto]: ...
    @property
    def variant_val(self) -> RepeatedCompositeFieldContainer[VariantTensorDataProto]: ...
    @property
    def uint32_val(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def uint64_val(self) -> RepeatedScalarFieldContainer[int]: ...
    float8_val: bytes
    def __init__(self, *, dtype: int = ..., tensor_shape: Any = ..., version_number: int = ..., tensor_content: bytes = ..., half_val: Any = ..., float_val: Any = ..., double_val: Any = ..., int_val: Any = ..., string_val: Any = ..., scomplex_val: Any = ..., int64_val: Any = ..., bool_val: Any = ..., dcomplex_val: Any = ..., resource_handle_val: Any = ..., variant_val: Any = ..., uint32_val: Any = ..., uint64_val: Any = ..., float8_val: bytes = ...) -> None: ...

class VariantTensorDataProto(Message):
    type_name: str
    metadata: bytes
    @property
    def tensors(self) -> RepeatedCompositeFieldContainer[TensorProto]: ...
    def __init__(self, *, type_name: str = ..., metadata: bytes = ..., tensors: Any = ...) -> None: ...

class AttrValue(Message):
    class ListValue(Message):
        @property
        def s(self) -> RepeatedScalarFieldContainer[bytes]: ...
        @property
        def i(self) -> RepeatedScalarFieldContainer[int]: ...
        @property
        def f(self) -> RepeatedScalarFieldContainer[float]: ...
        @property
        def b(self) -> RepeatedScalarFieldContainer[bool]: ...
        @property
        def type(self) -> RepeatedScalarFieldContainer[int]: ...
        @property
        def shape(self) -> RepeatedCompositeFieldContainer[TensorShapeProto]: ...
        @property
        def tensor(self) -> RepeatedCompositeFieldContainer[TensorProto]: ...
        @property
        def func(self) -> RepeatedCompositeFieldContainer[NameAttrList]: ...
        def __init__(self, *, s: Any = ..., i: Any = ..., f: Any = ..., b: Any = ..., type: Any = ..., shape: Any = ..., tensor: Any = ..., func: Any = ...) -> None: ...

    s: bytes
    i: int
    f: float
    b: bool
    type: int
    @property
    def shape(self) -> TensorShapeProto: ...
    @property
    def tensor(self) -> TensorProto: ...
    @property
    def list(self) -> AttrValue.ListValue: ...
    @property
    def func(self) -> NameAttrList: ...
    placeholder: str
    def WhichOneof(self, oneof_group: str) -> str | None: ...
    def __init__(self, *, s: bytes = ..., i: int = ..., f: float = ..., b: bool = ..., type: int = ..., shape: Any = ..., tensor: Any = ..., list: Any = ..., func: Any = ..., placeholder: str = ...) -> None: ...

class NameAttrList(Message):
    name: str
    @property
    def attr(self) -> MessageMap[str, AttrValue]: ...
    def __init__(self, *, name: str = ..., attr: Any = ...) -> None: ...

class ApiDef(Message):
    DEFAULT_VISIBILITY: int
    VISIBLE: int
    SKIP: int
    HIDDEN: int
    class Endpoint(Message):
        name: str
        deprecated: bool
        deprecation_version: int
        def __init__(self, *, name: str = ..., deprecated: bool = ..., deprecation_version: int = ...) -> None: ...

    class Arg(Message):
        name: str
        rename_to: str
        description: str
        def __init__(self, *, name: str = ..., rename_to: str = ..., description: str = ...) -> None: ...

    class Attr(Message):
        name: str
        rename_to: str
        @property
        def default_value(self) -> AttrValue: ...
        description: str
        def __init__(self, *, name: str = ..., rename_to: str = ..., default_value: Any = ..., description: str = ...) -> None: ...

    graph_op_name: str
    deprecation_message: str
    deprecation_version: int
    visibility: int
    @property
    def endpoint(self) -> RepeatedCompositeFieldContainer[ApiDef.Endpoint]: ...
    @property
    def in_arg(self) -> RepeatedCompositeFieldContainer[ApiDef.Arg]: ...
    @property
    def out_arg(self) -> RepeatedCompositeFieldContainer[ApiDef.Arg]: ...
    @property
    def arg_order(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def attr(self) -> RepeatedCompositeFieldContainer[ApiDef.Attr]: ...
    summary: str
    description: str
    description_prefix: str
    description_suffix: str
    def __init__(self, *, graph_op_name: str = ..., deprecation_message: str = ..., deprecation_version: int = ..., visibility: int = ..., endpoint: Any = ..., in_arg: Any = ..., out_arg: Any = ..., arg_order: Any = ..., attr: Any = ..., summary: str = ..., description: str = ..., description_prefix: str = ..., description_suffix: str = ...) -> None: ...

class ApiDefs(Message):
    @property
    def op(self) -> RepeatedCompositeFieldContainer[ApiDef]: ...
    def __init__(self, *, op: Any = ...) -> None: ...

class CostGraphDef(Message):
    class Node(Message):
        class InputInfo(Message):
            preceding_node: int
            preceding_port: int
            def __init__(self, *, preceding_node: int = ..., preceding_port: int = ...) -> None: ...

        class OutputInfo(Message):
            size: int
            alias_input_port: int
            @property
            def shape(self) -> TensorShapeProto: ...
            dtype: int
            def __init__(self, *, size: int = ..., alias_input_port: int = ..., shape: Any = ..., dtype: int = ...) -> None: ...

        name: str
        device: str
        id: int
        @property
        def input_info(self) -> RepeatedCompositeFieldContainer[CostGraphDef.Node.InputInfo]: ...
        @property
        def output_info(self) -> RepeatedCompositeFieldContainer[CostGraphDef.Node.OutputInfo]: ...
        temporary_memory_size: int
        is_final: bool
        @property
        def control_input(self) -> RepeatedScalarFieldContainer[int]: ...
        compute_cost: int
        host_temp_memory_size: int
        device_temp_memory_size: int
        persistent_memory_size: int
        compute_time: int
        memory_time: int
        device_persistent_memory_size: int
        inaccurate: bool
        def __init__(self, *, name: str = ..., device: str = ..., id: int = ..., input_info: Any = ..., output_info: Any = ..., temporary_memory_size: int = ..., is_final: bool = ..., control_input: Any = ..., compute_cost: int = ..., host_temp_memory_size: int = ..., device_temp_memory_size: int = ..., persistent_memory_size: int = ..., compute_time: int = ..., memory_time: int = ..., device_persistent_memory_size: int = ..., inaccurate: bool = ...) -> None: ...

    class AggregatedCost(Message):
        cost: float
        dimension: str
        def __init__(self, *, cost: float = ..., dimension: str = ...) -> None: ...

    @property
    def node(self) -> RepeatedCompositeFieldContainer[CostGraphDef.Node]: ...
    @property
    def cost(self) -> RepeatedCompositeFieldContainer[CostGraphDef.AggregatedCost]: ...
    def __init__(self, *, node: Any = ..., cost: Any = ...) -> None: ...

class CompressedComponentMetadata(Message):
    dtype: int
    @property
    def tensor_shape(self) -> TensorShapeProto: ...
    @property
    def uncompressed_bytes(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(self, *, dtype: int = ..., tensor_shape: Any = ..., uncompressed_bytes: Any = ...) -> None: ...

class CompressedElement(Message):
    data: bytes
    @property
    def component_metadata(self) -> RepeatedCompositeFieldContainer[CompressedComponentMetadata]: ...
    version: int
    def __init__(self, *, data: bytes = ..., component_metadata: Any = ..., version: int = ...) -> None: ...

class UncompressedElement(Message):
    @property
    def components(self) -> RepeatedCompositeFieldContainer[TensorProto]: ...
    def __init__(self, *, components: Any = ...) -> None: ...

class AutotuneOptions(Message):
    enabled: bool
    cpu_budget: int
    ram_budget: int
    autotune_algorithm: int
    initial_parallelism: int
    min_parallelism: int
    def WhichOneof(self, oneof_group: str) -> str | None: ...
    def __init__(self, *, enabled: bool = ..., cpu_budget: int = ..., ram_budget: int = ..., autotune_algorithm: int = ..., initial_parallelism: int = ..., min_parallelism: int = ...) -> None: ...

class CardinalityOptions(Message):
    CARDINALITY_COMPUTE_UNSPECIFIED: int
    CARDINALITY_COMPUTE_LOW: int
    CARDINALITY_COMPUTE_MODERATE: int
    compute_level: int
    def __init__(self, *, compute_level: int = ...) -> None: ...

class DistributeOptions(Message):
    auto_shard_policy: int
    num_devices: int
    def WhichOneof(self, oneof_group: str) -> str | None: ...
    def __init__(self, *, auto_shard_policy: int = ..., num_devices: int = ...) -> None: ...

class OptimizationOptions(Message):
    apply_default_optimizations: bool
    filter_fusion: bool
    map_and_batch_fusion: bool
    map_and_filter_fusion: bool
    map_fusion: bool
    map_parallelization: bool
    noop_elimination: bool
    parallel_batch: bool
    shuffle_and_repeat_fusion: bool
    filter_parallelization: bool
    inject_prefetch: bool
    seq_interleave_prefetch: bool
    def WhichOneof(self, oneof_group: str) -> str | None: ...
    def __init__(self, *, apply_default_optimizations: bool = ..., filter_fusion: bool = ..., map_and_batch_fusion: bool = ..., map_and_filter_fusion: bool = ..., map_fusion: bool = ..., map_parallelization: bool = ..., noop_elimination: bool = ..., parallel_batch: bool = ..., shuffle_and_repeat_fusion: bool = ..., filter_parallelization: bool = ..., inject_prefetch: bool = ..., seq_interleave_prefetch: bool = ...) -> None: ...

class ServiceOptions(Message):
    pinned: bool
    def WhichOneof(self, oneof_group: str) -> str | None: ...
    def __init__(self, *, pinned: bool = ...) -> None: ...

class ThreadingOptions(Message):
    max_intra_op_parallelism: int
    private_threadpool_size: int
    def WhichOneof(self, oneof_group: str) -> str | None: ...
    def __init__(self, *, max_intra_op_parallelism: int = ..., private_threadpool_size: int = ...) -> None: ...

class Options(Message):
    dataset_name: str
    @property
    def framework_type(self) -> RepeatedScalarFieldContainer[str]: ...
    deterministic: bool
    @property
    def autotune_options(self) -> AutotuneOptions: ...
    @property
    def distribute_options(self) -> DistributeOptions: ...
    @property
    def optimization_options(self) -> OptimizationOptions: ...
    @property
    def service_options(self) -> ServiceOptions: ...
    slack: bool
    @property
    def threading_options(self) -> ThreadingOptions: ...
    external_state_policy: int
    symbolic_checkpoint: bool
    warm_start: bool
    def WhichOneof(self, oneof_group: str) -> str | None: ...
    def __init__(self, *, dataset_name: str = ..., framework_type: Any = ..., deterministic: bool = ..., autotune_options: Any = ..., distribute_options: Any = ..., optimization_options: Any = ..., service_options: Any = ..., slack: bool = ..., threading_options: Any = ..., external_state_policy: int = ..., symbolic_checkpoint: bool = ..., warm_start: bool = ...) -> None: ...

class InterconnectLink(Message):
    device_id: int
    type: str
    strength: int
    def __init__(self, *, device_id: int = ..., type: str = ..., strength: int = ...) -> None: ...

class LocalLinks(Message):
    @property
    def link(self) -> RepeatedCompositeFieldContainer[InterconnectLink]: ...
    def __init__(self, *, link: Any = ...) -> None: ...

class DeviceLocality(Message):
    bus_id: int
    numa_node: int
    @property
    def links(self) -> LocalLinks: ...
    def __init__(self, *, bus_id: int = ..., numa_node: int = ..., links: Any = ...) -> None: ...

class DeviceAttributes(Message):
    name: str
    device_type: str
    memory_limit: int
    @property
    def locality(self) -> DeviceLocality: ...
    incarnation: int
    physical_device_desc: str
    xla_global_id: int
    def __init__(self, *, name: str = ..., device_type: str = ..., memory_limit: int = ..., locality: Any = ..., incarnation: int = ..., physical_device_desc: str = ..., xla_global_id: int = ...) -> None: ...

class FullTypeDef(Message):
    type_id: int
    @property
    def args(self) -> RepeatedCompositeFieldContainer[FullTypeDef]: ...
    s: str
    i: int
    def WhichOneof(self, oneof_group: str) -> str | None: ...
    def __init__(self, *, type_id: int = ..., args: Any = ..., s: str = ..., i: int = ...) -> None: ...

class NodeDef(Message):
    class ExperimentalDebugInfo(Message):
        @property
        def original_node_names(self) -> RepeatedScalarFieldContainer[str]: ...
        @property
        def original_func_names(self) -> RepeatedScalarFieldContainer[str]: ...
        def __init__(self, *, original_node_names: Any = ..., original_func_names: Any = ...) -> None: ...

    name: str
    op: str
    @property
    def input(self) -> RepeatedScalarFieldContainer[str]: ...
    device: str
    @property
    def attr(self) -> MessageMap[str, AttrValue]: ...
    @property
    def experimental_debug_info(self) -> NodeDef.ExperimentalDebugInfo: ...
    @property
    def experimental_type(self) -> FullTypeDef: ...
    def __init__(self, *, name: str = ..., op: str = ..., input: Any = ..., device: str = ..., attr: Any = ..., experimental_debug_info: Any = ..., experimental_type: Any = ...) -> None: ...

class OpDef(Message):
    class ArgDef(Message):
        name: str
        description: str
        type: int
        type_attr: str
        number_attr: str
        type_list_attr: str
        @property
        def handle_data(self) -> RepeatedCompositeFieldContainer[ResourceHandleProto.DtypeAndShape]: ...
        is_ref: bool
        @property
        def experimental_full_type(self) -> FullTypeDef: ...
        def __init__(self, *, name: str = ..., description: str = ..., type: int = ..., type_attr: str = ..., number_attr: str = ..., type_list_attr: str = ..., handle_data: Any = ..., is_ref: bool = ..., experimental_full_type: Any = ...) -> None: ...

    class AttrDef(Message):
        name: str
        type: str
        @property
        def default_value(self) -> AttrValue: ...
        description: str
        has_minimum: bool
        minimum: int
        @property
        def allowed_values(self) -> AttrValue: ...
        def __init__(self, *, name: str = ..., type: str = ..., default_value: Any = ..., description: str = ..., has_minimum: bool = ..., minimum: int = ..., allowed_values: Any = ...) -> None: ...

    name: str
    @property
    def input_arg(self) -> RepeatedCompositeFieldContainer[OpDef.ArgDef]: ...
    @property
    def output_arg(self) -> RepeatedCompositeFieldContainer[OpDef.ArgDef]: ...
    @property
    def control_output(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def attr(self) -> RepeatedCompositeFieldContainer[OpDef.AttrDef]: ...
    @property
    def deprecation(self) -> OpDeprecation: ...
    summary: str
    description: str
    is_commutative: bool
    is_aggregate: bool
    is_stateful: bool
    allows_uninitialized_input: bool
    is_distributed_communication: bool
    def __init__(self, *, name: str = ..., input_arg: Any = ..., output_arg: Any = ..., control_output: Any = ..., attr: Any = ..., deprecation: Any = ..., summary: str = ..., description: str = ..., is_commutative: bool = ..., is_aggregate: bool = ..., is_stateful: bool = ..., allows_uninitialized_input: bool = ..., is_distributed_communication: bool = ...) -> None: ...

class OpDeprecation(Message):
    version: int
    explanation: str
    def __init__(self, *, version: int = ..., explanation: str = ...) -> None: ...

class OpList(Message):
    @property
    def op(self) -> RepeatedCompositeFieldContainer[OpDef]: ...
    def __init__(self, *, op: Any = ...) -> None: ...

class FunctionDefLibrary(Message):
    @property
    def function(self) -> RepeatedCompositeFieldContainer[FunctionDef]: ...
    @property
    def gradient(self) -> RepeatedCompositeFieldContainer[GradientDef]: ...
    @property
    def registered_gradients(self) -> RepeatedCompositeFieldContainer[RegisteredGradient]: ...
    def __init__(self, *, function: Any = ..., gradient: Any = ..., registered_gradients: Any = ...) -> None: ...

class FunctionDef(Message):
    class ArgAttrs(Message):
        @property
        def attr(self) -> MessageMap[str, AttrValue]: ...
        def __init__(self, *, attr: Any = ...) -> None: ...

    @property
    def signature(self) -> OpDef: ...
    @property
    def attr(self) -> MessageMap[str, AttrValue]: ...
    @property
    def arg_attr(self) -> MessageMap[int, FunctionDef.ArgAttrs]: ...
    @property
    def resource_arg_unique_id(self) -> ScalarMap[int, int]: ...
    @property
    def node_def(self) -> RepeatedCompositeFieldContainer[NodeDef]: ...
    @property
    def ret(self) -> ScalarMap[str, str]: ...
    @property
    def control_ret(self) -> ScalarMap[str, str]: ...
    def __init__(self, *, signature: Any = ..., attr: Any = ..., arg_attr: Any = ..., resource_arg_unique_id: Any = ..., node_def: Any = ..., ret: Any = ..., control_ret: Any = ...) -> None: ...

class GradientDef(Message):
    function_name: str
    gradient_func: str
    def __init__(self, *, function_name: str = ..., gradient_func: str = ...) -> None: ...

class RegisteredGradient(Message):
    gradient_func: str
    registered_op_type: str
    def __init__(self, *, gradient_func: str = ..., registered_op_type: str = ...) -> None: ...

class GraphDebugInfo(Message):
    class FileLineCol(Message):
        file_index: int
        line: int
        col: int
        func: str
        code: str
        def __init__(self, *, file_index: int = ..., line: int = ..., col: int = ..., func: str = ..., code: str = ...) -> None: ...

    class StackTrace(Message):
        @property
        def file_line_cols(self) -> RepeatedCompositeFieldContainer[GraphDebugInfo.FileLineCol]: ...
        @property
        def frame_id(self) -> RepeatedScalarFieldContainer[int]: ...
        def __init__(self, *, file_line_cols: Any = ..., frame_id: Any = ...) -> None: ...

    @property
    def files(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def frames_by_id(self) -> MessageMap[int, GraphDebugInfo.FileLineCol]: ...
    @property
    def traces_by_id(self) -> MessageMap[int, GraphDebugInfo.StackTrace]: ...
    @property
    def traces(self) -> MessageMap[str, GraphDebugInfo.StackTrace]: ...
    @property
    def name_to_trace_id(self) -> ScalarMap[str, int]: ...
    def __init__(self, *, files: Any = ..., frames_by_id: Any = ..., traces_by_id: Any = ..., traces: Any = ..., name_to_trace_id: Any = ...) -> None: ...

class VersionDef(Message):
    producer: int
    min_consumer: int
    @property
    def bad_consumers(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(self, *, producer: int = ..., min_consumer: int = ..., bad_consumers: Any = ...) -> None: ...

class GraphDef(Message):
    @property
    def node(self) -> RepeatedCompositeFieldContainer[NodeDef]: ...
    @property
    def versions(self) -> VersionDef: ...
    version: int
    @property
    def library(self) -> FunctionDefLibrary: ...
    @property
    def debug_info(self) -> GraphDebugInfo: ...
    def __init__(self, *, node: Any = ..., versions: Any = ..., version: int = ..., library: Any = ..., debug_info: Any = ...) -> None: ...

class KernelDef(Message):
    class AttrConstraint(Message):
        name: str
        @property
        def allowed_values(self) -> AttrValue: ...
        def __init__(self, *, name: str = ..., allowed_values: Any = ...) -> None: ...

    op: str
    device_type: str
    @property
    def constraint(self) -> RepeatedCompositeFieldContainer[KernelDef.AttrConstraint]: ...
    @property
    def host_memory_arg(self) -> RepeatedScalarFieldContainer[str]: ...
    label: str
    priority: int
    def __init__(self, *, op: str = ..., device_type: str = ..., constraint: Any = ..., host_memory_arg: Any = ..., label: str = ..., priority: int = ...) -> None: ...

class KernelList(Message):
    @property
    def kernel(self) -> RepeatedCompositeFieldContainer[KernelDef]: ...
    def __init__(self, *, kernel: Any = ...) -> None: ...

class OpGenOverride(Message):
    class AttrDefault(Message):
        name: str
        @property
        def value(self) -> AttrValue: ...
        def __init__(self, *, name: str = ..., value: Any = ...) -> None: ...

    class Rename(Message):
        to: str
        def __init__(self, *, to: str = ...) -> None: ...

    name: str
    skip: bool
    hide: bool
    rename_to: str
    @property
    def alias(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def attr_default(self) -> RepeatedCompositeFieldContainer[OpGenOverride.AttrDefault]: ...
    @property
    def attr_rename(self) -> RepeatedCompositeFieldContainer[OpGenOverride.Rename]: ...
    @property
    def input_rename(self) -> RepeatedCompositeFieldContainer[OpGenOverride.Rename]: ...
    @property
    def output_rename(self) -> RepeatedCompositeFieldContainer[OpGenOverride.Rename]: ...
    def __init__(self, *, name: str = ..., skip: bool = ..., hide: bool = ..., rename_to: str = ..., alias: Any = ..., attr_default: Any = ..., attr_rename: Any = ..., input_rename: Any = ..., output_rename: Any = ...) -> None: ...

class OpGenOverrides(Message):
    @property
    def op(self) -> RepeatedCompositeFieldContainer[OpGenOverride]: ...
    def __init__(self, *, op: Any = ...) -> None: ...

class ReaderBaseState(Message):
    work_started: int
    work_finished: int
    num_records_produced: int
    current_work: bytes
    def __init__(self, *, work_started: int = ..., work_finished: int = ..., num_records_produced: int = ..., current_work: bytes = ...) -> None: ...

class TensorDescription(Message):
    dtype: int
    @property
    def shape(self) -> TensorShapeProto: ...
    @property
    def allocation_description(self) -> AllocationDescription: ...
    def __init__(self, *, dtype: int = ..., shape: Any = ..., allocation_description: Any = ...) -> None: ...

class AllocationRecord(Message):
    alloc_micros: int
    alloc_bytes: int
    def __init__(self, *, alloc_micros: int = ..., alloc_bytes: int = ...) -> None: ...

class AllocatorMemoryUsed(Message):
    allocator_name: str
    total_bytes: int
    peak_bytes: int
    live_bytes: int
    allocator_bytes_in_use: int
    @property
    def allocation_records(self) -> RepeatedCompositeFieldContainer[AllocationRecord]: ...
    def __init__(self, *, allocator_name: str = ..., total_bytes: int = ..., peak_bytes: int = ..., live_bytes: int = ..., allocator_bytes_in_use: int = ..., allocation_records: Any = ...) -> None: ...

class NodeOutput(Message):
    slot: int
    @property
    def tensor_description(self) -> TensorDescription: ...
    def __init__(self, *, slot: int = ..., tensor_description: Any = ...) -> None: ...

class MemoryStats(Message):
    temp_memory_size: int
    device_temp_memory_size: int
    persistent_memory_size: int
    device_persistent_memory_size: int
    @property
    def persistent_tensor_alloc_ids(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def device_persistent_tensor_alloc_ids(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(self, *, temp_memory_size: int = ..., device_temp_memory_size: int = ..., persistent_memory_size: int = ..., device_persistent_memory_size: int = ..., persistent_tensor_alloc_ids: Any = ..., device_persistent_tensor_alloc_ids: Any = ...) -> None: ...

class NodeExecStats(Message):
    node_name: str
    all_start_micros: int
    op_start_rel_micros: int
    op_end_rel_micros: int
    all_end_rel_micros: int
    @property
    def memory(self) -> RepeatedCompositeFieldContainer[AllocatorMemoryUsed]: ...
    @property
    def output(self) -> RepeatedCompositeFieldContainer[NodeOutput]: ...
    timeline_label: str
    scheduled_micros: int
    thread_id: int
    @property
    def referenced_tensor(self) -> RepeatedCompositeFieldContainer[AllocationDescription]: ...
    @property
    def memory_stats(self) -> MemoryStats: ...
    all_start_nanos: int
    op_start_rel_nanos: int
    op_end_rel_nanos: int
    all_end_rel_nanos: int
    scheduled_nanos: int
    def __init__(self, *, node_name: str = ..., all_start_micros: int = ..., op_start_rel_micros: int = ..., op_end_rel_micros: int = ..., all_end_rel_micros: int = ..., memory: Any = ..., output: Any = ..., timeline_label: str = ..., scheduled_micros: int = ..., thread_id: int = ..., referenced_tensor: Any = ..., memory_stats: Any = ..., all_start_nanos: int = ..., op_start_rel_nanos: int = ..., op_end_rel_nanos: int = ..., all_end_rel_nanos: int = ..., scheduled_nanos: int = ...) -> None: ...

class DeviceStepStats(Message):
    device: str
    @property
    def node_stats(self) -> RepeatedCompositeFieldContainer[NodeExecStats]: ...
    @property
    def thread_names(self) -> ScalarMap[int, str]: ...
    def __init__(self, *, device: str = ..., node_stats: Any = ..., thread_names: Any = ...) -> None: ...

class StepStats(Message):
    @property
    def dev_stats(self) -> RepeatedCompositeFieldContainer[DeviceStepStats]: ...
    def __init__(self, *, dev_stats: Any = ...) -> None: ...

class HistogramProto(Message):
    min: float
    max: float
    num: float
    sum: float
    sum_squares: float
    @property
    def bucket_limit(self) -> RepeatedScalarFieldContainer[float]: ...
    @property
    def bucket(self) -> RepeatedScalarFieldContainer[float]: ...
    def __init__(self, *, min: float = ..., max: float = ..., num: float = ..., sum: float = ..., sum_squares: float = ..., bucket_limit: Any = ..., bucket: Any = ...) -> None: ...

class SummaryDescription(Message):
    type_hint: str
    def __init__(self, *, type_hint: str = ...) -> None: ...

class SummaryMetadata(Message):
    class PluginData(Message):
        plugin_name: str
        content: bytes
        def __init__(self, *, plugin_name: str = ..., content: bytes = ...) -> None: ...

    @property
    def plugin_data(self) -> SummaryMetadata.PluginData: ...
    display_name: str
    summary_description: str
    data_class: int
    def __init__(self, *, plugin_data: Any = ..., display_name: str = ..., summary_description: str = ..., data_class: int = ...) -> None: ...

class Summary(Message):
    class Image(Message):
        height: int
        width: int
        colorspace: int
        encoded_image_string: bytes
        def __init__(self, *, height: int = ..., width: int = ..., colorspace: int = ..., encoded_image_string: bytes = ...) -> None: ...

    class Audio(Message):
        sample_rate: float
        num_channels: int
        length_frames: int
        encoded_audio_string: bytes
        content_type: str
        def __init__(self, *, sample_rate: float = ..., num_channels: int = ..., length_frames: int = ..., encoded_audio_string: bytes = ..., content_type: str = ...) -> None: ...

    class Value(Message):
        node_name: str
        tag: str
        @property
        def metadata(self) -> SummaryMetadata: ...
        simple_value: float
        obsolete_old_style_histogram: bytes
        @property
        def image(self) -> Summary.Image: ...
        @property
        def histo(self) -> HistogramProto: ...
        @property
        def audio(self) -> Summary.Audio: ...
        @property
        def tensor(self) -> TensorProto: ...
        def WhichOneof(self, oneof_group: str) -> str | None: ...
        def __init__(self, *, node_name: str = ..., tag: str = ..., metadata: Any = ..., simple_value: float = ..., obsolete_old_style_histogram: bytes = ..., image: Any = ..., histo: Any = ..., audio: Any = ..., tensor: Any = ...) -> None: ...

    @property
    def value(self) -> RepeatedCompositeFieldContainer[Summary.Value]: ...
    def __init__(self, *, value: Any = ...) -> None: ...

class TensorSliceProto(Message):
    class Extent(Message):
        start: int
        length: int
        def WhichOneof(self, oneof_group: str) -> str | None: ...
        def __init__(self, *, start: int = ..., length: int = ...) -> None: ...

    @property
    def extent(self) -> RepeatedCompositeFieldContainer[TensorSliceProto.Extent]: ...
    def __init__(self, *, extent: Any = ...) -> None: ...

class VariableDef(Message):
    variable_name: str
    initial_value_name: str
    initializer_name: str
    snapshot_name: str
    @property
    def save_slice_info_def(self) -> SaveSliceInfoDef: ...
    is_resource: bool
    trainable: bool
    synchronization: int
    aggregation: int
    def __init__(self, *, variable_name: str = ..., initial_value_name: str = ..., initializer_name: str = ..., snapshot_name: str = ..., save_slice_info_def: Any = ..., is_resource: bool = ..., trainable: bool = ..., synchronization: int = ..., aggregation: int = ...) -> None: ...

class SaveSliceInfoDef(Message):
    full_name: str
    @property
    def full_shape(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def var_offset(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def var_shape(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(self, *, full_name: str = ..., full_shape: Any = ..., var_offset: Any = ..., var_shape: Any = ...) -> None: ...

class JobDef(Message):
    name: str
    @property
    def tasks(self) -> ScalarMap[int, str]: ...
    def __init__(self, *, name: str = ..., tasks: Any = ...) -> None: ...

class ClusterDef(Message):
    @property
    def job(self) -> RepeatedCompositeFieldContainer[JobDef]: ...
    def __init__(self, *, job: Any = ...) -> None: ...

class DebugTensorWatch(Message):
    node_name: str
    output_slot: int
    @property
    def debug_ops(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def debug_urls(self) -> RepeatedScalarFieldContainer[str]: ...
    tolerate_debug_op_creation_failures: bool
    def __init__(self, *, node_name: str = ..., output_slot: int = ..., debug_ops: Any = ..., debug_urls: Any = ..., tolerate_debug_op_creation_failures: bool = ...) -> None: ...

class DebugOptions(Message):
    @property
    def debug_tensor_watch_opts(self) -> RepeatedCompositeFieldContainer[DebugTensorWatch]: ...
    global_step: int
    reset_disk_byte_usage: bool
    def __init__(self, *, debug_tensor_watch_opts: Any = ..., global_step: int = ..., reset_disk_byte_usage: bool = ...) -> None: ...

class DebuggedSourceFile(Message):
    host: str
    file_path: str
    last_modified: int
    bytes: int
    @property
    def lines(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(self, *, host: str = ..., file_path: str = ..., last_modified: int = ..., bytes: int = ..., lines: Any = ...) -> None: ...

class DebuggedSourceFiles(Message):
    @property
    def source_files(self) -> RepeatedCompositeFieldContainer[DebuggedSourceFile]: ...
    def __init__(self, *, source_files: Any = ...) -> None: ...

class VerifierConfig(Message):
    DEFAULT: int
    ON: int
    OFF: int
    verification_timeout_in_ms: int
    structure_verifier: int
    def __init__(self, *, verification_timeout_in_ms: int = ..., structure_verifier: int = ...) -> None: ...

class AutoParallelOptions(Message):
    enable: bool
    num_replicas: int
    def __init__(self, *, enable: bool = ..., num_replicas: int = ...) -> None: ...

class ScopedAllocatorOptions(Message):
    @property
    def enable_op(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(self, *, enable_op: Any = ...) -> None: ...

class RewriterConfig(Message):
    DEFAULT: int
    ON: int
    OFF: int
    AGGRESSIVE: int
    EXPERIMENTAL_MLIR: int
    EXPERIMENTAL_BOTH: int
    NO_CONVERSION_ON_CPU: int
    NCHW_TO_NHWC: int
    NHWC_TO_NCHW: int
    DEFAULT_NUM_ITERS: int
    ONE: int
    TWO: int
    DEFAULT_MEM_OPT: int
    NO_MEM_OPT: int
    MANUAL: int
    SWAPPING_HEURISTICS: int
    RECOMPUTATION_HEURISTICS: int
    SCHEDULING_HEURISTICS: int
    HEURISTICS: int
    class CustomGraphOptimizer(Message):
        name: str
        @property
        def parameter_map(self) -> MessageMap[str, AttrValue]: ...
        def __init__(self, *, name: str = ..., parameter_map: Any = ...) -> None: ...

    layout_optimizer: int
    disable_model_pruning: bool
    constant_folding: int
    memory_optimization: int
    @property
    def auto_parallel(self) -> AutoParallelOptions: ...
    memory_optimizer_target_node_name_scope: str
    arithmetic_optimization: int
    dependency_optimization: int
    loop_optimization: int
    function_optimization: int
    debug_stripper: int
    meta_optimizer_iterations: int
    shape_optimization: int
    remapping: int
    scoped_allocator_optimization: int
    @property
    def scoped_allocator_opts(self) -> ScopedAllocatorOptions: ...
    min_graph_nodes: int
    pin_to_host_optimization: int
    disable_meta_optimizer: bool
    meta_optimizer_timeout_ms: int
    fail_on_optimizer_errors: bool
    implementation_selector: int
    auto_mixed_precision: int
    common_subgraph_elimination: int
    auto_mixed_precision_mkl: int
    experimental_disable_compressed_tensor_optimization: bool
    experimental_disable_folding_quantization_emulation: bool
    use_plugin_optimizers: int
    auto_mixed_precision_cpu: int
    experimental_conditional_code_motion: int
    auto_mixed_precision_onednn_bfloat16: int
    disable_tfg_optimizer: bool
    cpu_layout_conversion: int
    @property
    def optimizers(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def custom_optimizers(self) -> RepeatedCompositeFieldContainer[RewriterConfig.CustomGraphOptimizer]: ...
    @property
    def inter_optimizer_verifier_config(self) -> VerifierConfig: ...
    @property
    def post_optimization_verifier_config(self) -> VerifierConfig: ...
    def __init__(self, *, layout_optimizer: int = ..., disable_model_pruning: bool = ..., constant_folding: int = ..., memory_optimization: int = ..., auto_parallel: Any = ..., memory_optimizer_target_node_name_scope: str = ..., arithmetic_optimization: int = ..., dependency_optimization: int = ..., loop_optimization: int = ..., function_optimization: int = ..., debug_stripper: int = ..., meta_optimizer_iterations: int = ..., shape_optimization: int = ..., remapping: int = ..., scoped_allocator_optimization: int = ..., scoped_allocator_opts: Any = ..., min_graph_nodes: int = ..., pin_to_host_optimization: int = ..., disable_meta_optimizer: bool = ..., meta_optimizer_timeout_ms: int = ..., fail_on_optimizer_errors: bool = ..., implementation_selector: int = ..., auto_mixed_precision: int = ..., common_subgraph_elimination: int = ..., auto_mixed_precision_mkl: int = ..., experimental_disable_compressed_tensor_optimization: bool = ..., experimental_disable_folding_quantization_emulation: bool = ..., use_plugin_optimizers: int = ..., auto_mixed_precision_cpu: int = ..., experimental_conditional_code_motion: int = ..., auto_mixed_precision_onednn_bfloat16: int = ..., disable_tfg_optimizer: bool = ..., cpu_layout_conversion: int = ..., optimizers: Any = ..., custom_optimizers: Any = ..., inter_optimizer_verifier_config: Any = ..., post_optimization_verifier_config: Any = ...) -> None: ...

class CoordinatedJob(Message):
    name: str
    num_tasks: int
    def __init__(self, *, name: str = ..., num_tasks: int = ...) -> None: ...

class CoordinationServiceConfig(Message):
    service_type: str
    service_leader: str
    enable_health_check: bool
    cluster_register_timeout_in_ms: int
    heartbeat_timeout_in_ms: int
    shutdown_barrier_timeout_in_ms: int
    agent_destruction_without_shutdown: bool
    @property
    def recoverable_jobs(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def coordinated_job_list(self) -> RepeatedCompositeFieldContainer[CoordinatedJob]: ...
    allow_new_incarnation_to_reconnect: bool
    force_disable: bool
    poll_for_error_from_service_at_startup: bool
    cluster_register_with_barrier: bool
    def __init__(self, *, service_type: str = ..., service_leader: str = ..., enable_health_check: bool = ..., cluster_register_timeout_in_ms: int = ..., heartbeat_timeout_in_ms: int = ..., shutdown_barrier_timeout_in_ms: int = ..., agent_destruction_without_shutdown: bool = ..., recoverable_jobs: Any = ..., coordinated_job_list: Any = ..., allow_new_incarnation_to_reconnect: bool = ..., force_disable: bool = ..., poll_for_error_from_service_at_startup: bool = ..., cluster_register_with_barrier: bool = ...) -> None: ...

class RPCOptions(Message):
    use_rpc_for_inprocess_master: bool
    compression_algorithm: str
    compression_level: int
    cache_rpc_response: bool
    disable_session_connection_sharing: bool
    num_channels_per_target: int
    def __init__(self, *, use_rpc_for_inprocess_master: bool = ..., compression_algorithm: str = ..., compression_level: int = ..., cache_rpc_response: bool = ..., disable_session_connection_sharing: bool = ..., num_channels_per_target: int = ...) -> None: ...

class GPUOptions(Message):
    class Experimental(Message):
        class VirtualDevices(Message):
            @property
            def memory_limit_mb(self) -> RepeatedScalarFieldContainer[float]: ...
            @property
            def priority(self) -> RepeatedScalarFieldContainer[int]: ...
            @property
            def device_ordinal(self) -> RepeatedScalarFieldContainer[int]: ...
            def __init__(self, *, memory_limit_mb: Any = ..., priority: Any = ..., device_ordinal: Any = ...) -> None: ...

        class StreamMergeOptions(Message):
            merge_host_to_device_stream: bool
            merge_device_to_host_stream: bool
            merge_device_to_device_stream: bool
            def __init__(self, *, merge_host_to_device_stream: bool = ..., merge_device_to_host_stream: bool = ..., merge_device_to_device_stream: bool = ...) -> None: ...

        @property
        def virtual_devices(self) -> RepeatedCompositeFieldContainer[GPUOptions.Experimental.VirtualDevices]: ...
        use_unified_memory: bool
        num_dev_to_dev_copy_streams: int
        collective_ring_order: str
        timestamped_allocator: bool
        kernel_tracker_max_interval: int
        kernel_tracker_max_bytes: int
        kernel_tracker_max_pending: int
        internal_fragmentation_fraction: float
        use_cuda_malloc_async: bool
        disallow_retry_on_allocation_failure: bool
        gpu_host_mem_limit_in_mb: float
        gpu_host_mem_disallow_growth: bool
        num_virtual_devices_per_gpu: int
        gpu_system_memory_size_in_mb: int
        populate_pjrt_gpu_client_creation_info: bool
        node_id: int
        @property
        def stream_merge_options(self) -> GPUOptions.Experimental.StreamMergeOptions: ...
        def __init__(self, *, virtual_devices: Any = ..., use_unified_memory: bool = ..., num_dev_to_dev_copy_streams: int = ..., collective_ring_order: str = ..., timestamped_allocator: bool = ..., kernel_tracker_max_interval: int = ..., kernel_tracker_max_bytes: int = ..., kernel_tracker_max_pending: int = ..., internal_fragmentation_fraction: float = ..., use_cuda_malloc_async: bool = ..., disallow_retry_on_allocation_failure: bool = ..., gpu_host_mem_limit_in_mb: float = ..., gpu_host_mem_disallow_growth: bool = ..., num_virtual_devices_per_gpu: int = ..., gpu_system_memory_size_in_mb: int = ..., populate_pjrt_gpu_client_creation_info: bool = ..., node_id: int = ..., stream_merge_options: Any = ...) -> None: ...

    per_process_gpu_memory_fraction: float
    allocator_type: str
    deferred_deletion_bytes: int
    allow_growth: bool
    visible_device_list: str
    polling_active_delay_usecs: int
    polling_inactive_delay_msecs: int
    force_gpu_compatible: bool
    @property
    def experimental(self) -> GPUOptions.Experimental: ...
    def __init__(self, *, per_process_gpu_memory_fraction: float = ..., allocator_type: str = ..., deferred_deletion_bytes: int = ..., allow_growth: bool = ..., visible_device_list: str = ..., polling_active_delay_usecs: int = ..., polling_inactive_delay_msecs: int = ..., force_gpu_compatible: bool = ..., experimental: Any = ...) -> None: ...

class OptimizerOptions(Message):
    L1: int
    L0: int
    DEFAULT: int
    OFF: int
    ON_1: int
    ON_2: int
    do_common_subexpression_elimination: bool
    do_constant_folding: bool
    opt_level: int
    do_function_inlining: bool
    global_jit_level: int
    max_folded_constant_in_bytes: int
    cpu_global_jit: bool
    def __init__(self, *, do_common_subexpression_elimination: bool = ..., do_constant_folding: bool = ..., opt_level: int = ..., do_function_inlining: bool = ..., global_jit_level: int = ..., max_folded_constant_in_bytes: int = ..., cpu_global_jit: bool = ...) -> None: ...

class GraphOptions(Message):
    enable_recv_scheduling: bool
    @property
    def optimizer_options(self) -> OptimizerOptions: ...
    build_cost_model: int
    infer_shapes: bool
    place_pruned_graph: bool
    enable_bfloat16_sendrecv: bool
    timeline_step: int
    build_cost_model_after: int
    @property
    def rewrite_options(self) -> RewriterConfig: ...
    def __init__(self, *, enable_recv_scheduling: bool = ..., optimizer_options: Any = ..., build_cost_model: int = ..., infer_shapes: bool = ..., place_pruned_graph: bool = ..., enable_bfloat16_sendrecv: bool = ..., timeline_step: int = ..., build_cost_model_after: int = ..., rewrite_options: Any = ...) -> None: ...

class ThreadPoolOptionProto(Message):
    num_threads: int
    global_name: str
    def __init__(self, *, num_threads: int = ..., global_name: str = ...) -> None: ...

class SessionMetadata(Message):
    name: str
    version: int
    def __init__(self, *, name: str = ..., version: int = ...) -> None: ...

class ConfigProto(Message):
    class Experimental(Message):
        MLIR_BRIDGE_ROLLOUT_UNSPECIFIED: int
        MLIR_BRIDGE_ROLLOUT_ENABLED: int
        MLIR_BRIDGE_ROLLOUT_DISABLED: int
        collective_group_leader: str
        executor_type: str
        recv_buf_max_chunk: int
        use_numa_affinity: bool
        collective_deterministic_sequential_execution: bool
        collective_nccl: bool
        share_session_state_in_clusterspec_propagation: bool
        disable_thread_spinning: bool
        share_cluster_devices_in_session: bool
        @property
        def session_metadata(self) -> SessionMetadata: ...
        optimize_for_static_graph: bool
        enable_mlir_bridge: bool
        disable_output_partition_graphs: bool
        xla_fusion_autotuner_thresh: int
        enable_mlir_graph_optimization: bool
        mlir_bridge_rollout: int
        use_tfrt: bool
        disable_functional_ops_lowering: bool
        xla_prefer_single_graph_cluster: bool
        @property
        def coordination_config(self) -> CoordinationServiceConfig: ...
        disable_optimize_for_static_graph: bool
        disable_eager_executor_streaming_enqueue: bool
        enable_multi_host: bool
        backend_server_port: int
        target_tpu: bool
        target_gpu: bool
        stream_merge_threshold: int
        tfrt_use_ifrt: bool
        finalize_function_library_runtime: bool
        finalize_resource_manager: bool
        tf2xla_dump_dir: str
        online_cost_analysis: bool
        def __init__(self, *, collective_group_leader: str = ..., executor_type: str = ..., recv_buf_max_chunk: int = ..., use_numa_affinity: bool = ..., collective_deterministic_sequential_execution: bool = ..., collective_nccl: bool = ..., share_session_state_in_clusterspec_propagation: bool = ..., disable_thread_spinning: bool = ..., share_cluster_devices_in_session: bool = ..., session_metadata: Any = ..., optimize_for_static_graph: bool = ..., enable_mlir_bridge: bool = ..., disable_output_partition_graphs: bool = ..., xla_fusion_autotuner_thresh: int = ..., enable_mlir_graph_optimization: bool = ..., mlir_bridge_rollout: int = ..., use_tfrt: bool = ..., disable_functional_ops_lowering: bool = ..., xla_prefer_single_graph_cluster: bool = ..., coordination_config: Any = ..., disable_optimize_for_static_graph: bool = ..., disable_eager_executor_streaming_enqueue: bool = ..., enable_multi_host: bool = ..., backend_server_port: int = ..., target_tpu: bool = ..., target_gpu: bool = ..., stream_merge_threshold: int = ..., tfrt_use_ifrt: bool = ..., finalize_function_library_runtime: bool = ..., finalize_resource_manager: bool = ..., tf2xla_dump_dir: str = ..., online_cost_analysis: bool = ...) -> None: ...

    @property
    def device_count(self) -> ScalarMap[str, int]: ...
    intra_op_parallelism_threads: int
    placement_period: int
    @property
    def device_filters(self) -> RepeatedScalarFieldContainer[str]: ...
    inter_op_parallelism_threads: int
    @property
    def gpu_options(self) -> GPUOptions: ...
    allow_soft_placement: bool
    log_device_placement: bool
    use_per_session_threads: bool
    @property
    def graph_options(self) -> GraphOptions: ...
    operation_timeout_in_ms: int
    @property
    def session_inter_op_thread_pool(self) -> RepeatedCompositeFieldContainer[ThreadPoolOptionProto]: ...
    @property
    def rpc_options(self) -> RPCOptions: ...
    @property
    def cluster_def(self) -> ClusterDef: ...
    isolate_session_state: bool
    @property
    def experimental(self) -> ConfigProto.Experimental: ...
    share_cluster_devices_in_session: bool
    @property
    def pluggable_device_options(self) -> GPUOptions: ...
    def __init__(self, *, device_count: Any = ..., intra_op_parallelism_threads: int = ..., placement_period: int = ..., device_filters: Any = ..., inter_op_parallelism_threads: int = ..., gpu_options: Any = ..., allow_soft_placement: bool = ..., log_device_placement: bool = ..., use_per_session_threads: bool = ..., graph_options: Any = ..., operation_timeout_in_ms: int = ..., session_inter_op_thread_pool: Any = ..., rpc_options: Any = ..., cluster_def: Any = ..., isolate_session_state: bool = ..., experimental: Any = ..., share_cluster_devices_in_session: bool = ..., pluggable_device_options: Any = ...) -> None: ...

class RunOptions(Message):
    NO_TRACE: int
    SOFTWARE_TRACE: int
    HARDWARE_TRACE: int
    FULL_TRACE: int
    class Experimental(Message):
        class RunHandlerPoolOptions(Message):
            priority: int
            def __init__(self, *, priority: int = ...) -> None: ...

        collective_graph_key: int
        use_run_handler_pool: bool
        @property
        def run_handler_pool_options(self) -> RunOptions.Experimental.RunHandlerPoolOptions: ...
        def __init__(self, *, collective_graph_key: int = ..., use_run_handler_pool: bool = ..., run_handler_pool_options: Any = ...) -> None: ...

    trace_level: int
    timeout_in_ms: int
    inter_op_thread_pool: int
    output_partition_graphs: bool
    @property
    def debug_options(self) -> DebugOptions: ...
    report_tensor_allocations_upon_oom: bool
    @property
    def experimental(self) -> RunOptions.Experimental: ...
    def __init__(self, *, trace_level: int = ..., timeout_in_ms: int = ..., inter_op_thread_pool: int = ..., output_partition_graphs: bool = ..., debug_options: Any = ..., report_tensor_allocations_upon_oom: bool = ..., experimental: Any = ...) -> None: ...

class RunMetadata(Message):
    class FunctionGraphs(Message):
        @property
        def partition_graphs(self) -> RepeatedCompositeFieldContainer[GraphDef]: ...
        @property
        def pre_optimization_graph(self) -> GraphDef: ...
        @property
        def post_optimization_graph(self) -> GraphDef: ...
        def __init__(self, *, partition_graphs: Any = ..., pre_optimization_graph: Any = ..., post_optimization_graph: Any = ...) -> None: ...

    @property
    def step_stats(self) -> StepStats: ...
    @property
    def cost_graph(self) -> CostGraphDef: ...
    @property
    def partition_graphs(self) -> RepeatedCompositeFieldContainer[GraphDef]: ...
    @property
    def function_graphs(self) -> RepeatedCompositeFieldContainer[RunMetadata.FunctionGraphs]: ...
    @property
    def session_metadata(self) -> SessionMetadata: ...
    def __init__(self, *, step_stats: Any = ..., cost_graph: Any = ..., partition_graphs: Any = ..., function_graphs: Any = ..., session_metadata: Any = ...) -> None: ...

class TensorConnection(Message):
    from_tensor: str
    to_tensor: str
    def __init__(self, *, from_tensor: str = ..., to_tensor: str = ...) -> None: ...

class CallableOptions(Message):
    @property
    def feed(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def fetch(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def target(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def run_options(self) -> RunOptions: ...
    @property
    def tensor_connection(self) -> RepeatedCompositeFieldContainer[TensorConnection]: ...
    @property
    def feed_devices(self) -> ScalarMap[str, str]: ...
    @property
    def fetch_devices(self) -> ScalarMap[str, str]: ...
    fetch_skip_sync: bool
    def __init__(self, *, feed: Any = ..., fetch: Any = ..., target: Any = ..., run_options: Any = ..., tensor_connection: Any = ..., feed_devices: Any = ..., fetch_devices: Any = ..., fetch_skip_sync: bool = ...) -> None: ...

class BatchingOptions(Message):
    num_batch_threads: int
    max_batch_size: int
    batch_timeout_micros: int
    @property
    def allowed_batch_sizes(self) -> RepeatedScalarFieldContainer[int]: ...
    max_enqueued_batches: int
    def __init__(self, *, num_batch_threads: int = ..., max_batch_size: int = ..., batch_timeout_micros: int = ..., allowed_batch_sizes: Any = ..., max_enqueued_batches: int = ...) -> None: ...

class FingerprintDef(Message):
    saved_model_checksum: int
    graph_def_program_hash: int
    signature_def_hash: int
    saved_object_graph_hash: int
    checkpoint_hash: int
    uuid: str
    @property
    def version(self) -> VersionDef: ...
    def __init__(self, *, saved_model_checksum: int = ..., graph_def_program_hash: int = ..., signature_def_hash: int = ..., saved_object_graph_hash: int = ..., checkpoint_hash: int = ..., uuid: str = ..., version: Any = ...) -> None: ...

class StructuredValue(Message):
    @property
    def none_value(self) -> NoneValue: ...
    float64_value: float
    int64_value: int
    string_value: str
    bool_value: bool
    @property
    def tensor_shape_value(self) -> TensorShapeProto: ...
    tensor_dtype_value: int
    @property
    def tensor_spec_value(self) -> TensorSpecProto: ...
    @property
    def type_spec_value(self) -> TypeSpecProto: ...
    @property
    def bounded_tensor_spec_value(self) -> BoundedTensorSpecProto: ...
    @property
    def list_value(self) -> ListValue: ...
    @property
    def tuple_value(self) -> TupleValue: ...
    @property
    def dict_value(self) -> DictValue: ...
    @property
    def named_tuple_value(self) -> NamedTupleValue: ...
    @property
    def tensor_value(self) -> TensorProto: ...
    @property
    def numpy_value(self) -> TensorProto: ...
    def WhichOneof(self, oneof_group: str) -> str | None: ...
    def __init__(self, *, none_value: Any = ..., float64_value: float = ..., int64_value: int = ..., string_value: str = ..., bool_value: bool = ..., tensor_shape_value: Any = ..., tensor_dtype_value: int = ..., tensor_spec_value: Any = ..., type_spec_value: Any = ..., bounded_tensor_spec_value: Any = ..., list_value: Any = ..., tuple_value: Any = ..., dict_value: Any = ..., named_tuple_value: Any = ..., tensor_value: Any = ..., numpy_value: Any = ...) -> None: ...

class NoneValue(Message):
    def __init__(self) -> None: ...

class ListValue(Message):
    @property
    def values(self) -> RepeatedCompositeFieldContainer[StructuredValue]: ...
    def __init__(self, *, values: Any = ...) -> None: ...

class TupleValue(Message):
    @property
    def values(self) -> RepeatedCompositeFieldContainer[StructuredValue]: ...
    def __init__(self, *, values: Any = ...) -> None: ...

class DictValue(Message):
    @property
    def fields(self) -> MessageMap[str, StructuredValue]: ...
    def __init__(self, *, fields: Any = ...) -> None: ...

class PairValue(Message):
    key: str
    @property
    def value(self) -> StructuredValue: ...
    def __init__(self, *, key: str = ..., value: Any = ...) -> None: ...

class NamedTupleValue(Message):
    name: str
    @property
    def values(self) -> RepeatedCompositeFieldContainer[PairValue]: ...
    def __init__(self, *, name: str = ..., values: Any = ...) -> None: ...

class TensorSpecProto(Message):
    name: str
    @property
    def shape(self) -> TensorShapeProto: ...
    dtype: int
    def __init__(self, *, name: str = ..., shape: Any = ..., dtype: int = ...) -> None: ...

class BoundedTensorSpecProto(Message):
    name: str
    @property
    def shape(self) -> TensorShapeProto: ...
    dtype: int
    @property
    def minimum(self) -> TensorProto: ...
    @property
    def maximum(self) -> TensorProto: ...
    def __init__(self, *, name: str = ..., shape: Any = ..., dtype: int = ..., minimum: Any = ..., maximum: Any = ...) -> None: ...

class TypeSpecProto(Message):
    UNKNOWN: int
    SPARSE_TENSOR_SPEC: int
    INDEXED_SLICES_SPEC: int
    RAGGED_TENSOR_SPEC: int
    TENSOR_ARRAY_SPEC: int
    DATA_DATASET_SPEC: int
    DATA_ITERATOR_SPEC: int
    OPTIONAL_SPEC: int
    PER_REPLICA_SPEC: int
    VARIABLE_SPEC: int
    ROW_PARTITION_SPEC: int
    REGISTERED_TYPE_SPEC: int
    EXTENSION_TYPE_SPEC: int
    type_spec_class: int
    @property
    def type_state(self) -> StructuredValue: ...
    type_spec_class_name: str
    num_flat_components: int
    def __init__(self, *, type_spec_class: int = ..., type_state: Any = ..., type_spec_class_name: str = ..., num_flat_components: int = ...) -> None: ...

class TrackableObjectGraph(Message):
    class TrackableObject(Message):
        class ObjectReference(Message):
            node_id: int
            local_name: str
            def __init__(self, *, node_id: int = ..., local_name: str = ...) -> None: ...

        class SerializedTensor(Message):
            name: str
            full_name: str
            checkpoint_key: str
            def __init__(self, *, name: str = ..., full_name: str = ..., checkpoint_key: str = ...) -> None: ...

        class SlotVariableReference(Message):
            original_variable_node_id: int
            slot_name: str
            slot_variable_node_id: int
            def __init__(self, *, original_variable_node_id: int = ..., slot_name: str = ..., slot_variable_node_id: int = ...) -> None: ...

        @property
        def children(self) -> RepeatedCompositeFieldContainer[TrackableObjectGraph.TrackableObject.ObjectReference]: ...
        @property
        def attributes(self) -> RepeatedCompositeFieldContainer[TrackableObjectGraph.TrackableObject.SerializedTensor]: ...
        @property
        def slot_variables(self) -> RepeatedCompositeFieldContainer[TrackableObjectGraph.TrackableObject.SlotVariableReference]: ...
        @property
        def registered_saver(self) -> RegisteredSaver: ...
        @property
        def has_checkpoint_values(self) -> Message: ...
        def __init__(self, *, children: Any = ..., attributes: Any = ..., slot_variables: Any = ..., registered_saver: Any = ..., has_checkpoint_values: Any = ...) -> None: ...

    @property
    def nodes(self) -> RepeatedCompositeFieldContainer[TrackableObjectGraph.TrackableObject]: ...
    def __init__(self, *, nodes: Any = ...) -> None: ...

class RegisteredSaver(Message):
    name: str
    object_name: str
    def __init__(self, *, name: str = ..., object_name: str = ...) -> None: ...

class SavedObjectGraph(Message):
    @property
    def nodes(self) -> RepeatedCompositeFieldContainer[SavedObject]: ...
    @property
    def concrete_functions(self) -> MessageMap[str, SavedConcreteFunction]: ...
    def __init__(self, *, nodes: Any = ..., concrete_functions: Any = ...) -> None: ...

class SavedObject(Message):
    @property
    def children(self) -> RepeatedCompositeFieldContainer[TrackableObjectGraph.TrackableObject.ObjectReference]: ...
    @property
    def dependencies(self) -> RepeatedCompositeFieldContainer[TrackableObjectGraph.TrackableObject.ObjectReference]: ...
    @property
    def slot_variables(self) -> RepeatedCompositeFieldContainer[TrackableObjectGraph.TrackableObject.SlotVariableReference]: ...
    @property
    def user_object(self) -> SavedUserObject: ...
    @property
    def asset(self) -> SavedAsset: ...
    @property
    def function(self) -> SavedFunction: ...
    @property
    def variable(self) -> SavedVariable: ...
    @property
    def bare_concrete_function(self) -> SavedBareConcreteFunction: ...
    @property
    def constant(self) -> SavedConstant: ...
    @property
    def resource(self) -> SavedResource: ...
    @property
    def captured_tensor(self) -> CapturedTensor: ...
    @property
    def saveable_objects(self) -> MessageMap[str, SaveableObject]: ...
    registered_name: str
    @property
    def serialized_user_proto(self) -> Message: ...
    registered_saver: str
    def WhichOneof(self, oneof_group: str) -> str | None: ...
    def __init__(self, *, children: Any = ..., dependencies: Any = ..., slot_variables: Any = ..., user_object: Any = ..., asset: Any = ..., function: Any = ..., variable: Any = ..., bare_concrete_function: Any = ..., constant: Any = ..., resource: Any = ..., captured_tensor: Any = ..., saveable_objects: Any = ..., registered_name: str = ..., serialized_user_proto: Any = ..., registered_saver: str = ...) -> None: ...

class SavedUserObject(Message):
    identifier: str
    @property
    def version(self) -> VersionDef: ...
    metadata: str
    def __init__(self, *, identifier: str = ..., version: Any = ..., metadata: str = ...) -> None: ...

class SavedAsset(Message):
    asset_file_def_index: int
    def __init__(self, *, asset_file_def_index: int = ...) -> None: ...

class SavedFunction(Message):
    @property
    def concrete_functions(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def function_spec(self) -> FunctionSpec: ...
    def __init__(self, *, concrete_functions: Any = ..., function_spec: Any = ...) -> None: ...

class CapturedTensor(Message):
    name: str
    concrete_function: str
    def __init__(self, *, name: str = ..., concrete_function: str = ...) -> None: ...

class SavedConcreteFunction(Message):
    @property
    def bound_inputs(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def canonicalized_input_signature(self) -> StructuredValue: ...
    @property
    def output_signature(self) -> StructuredValue: ...
    def __init__(self, *, bound_inputs: Any = ..., canonicalized_input_signature: Any = ..., output_signature: Any = ...) -> None: ...

class SavedBareConcreteFunction(Message):
    concrete_function_name: str
    @property
    def argument_keywords(self) -> RepeatedScalarFieldContainer[str]: ...
    allowed_positional_arguments: int
    @property
    def function_spec(self) -> FunctionSpec: ...
    def __init__(self, *, concrete_function_name: str = ..., argument_keywords: Any = ..., allowed_positional_arguments: int = ..., function_spec: Any = ...) -> None: ...

class SavedConstant(Message):
    operation: str
    def __init__(self, *, operation: str = ...) -> None: ...

class SavedVariable(Message):
    dtype: int
    @property
    def shape(self) -> TensorShapeProto: ...
    trainable: bool
    synchronization: int
    aggregation: int
    name: str
    device: str
    @property
    def experimental_distributed_variable_components(self) -> RepeatedCompositeFieldContainer[SavedVariable]: ...
    def __init__(self, *, dtype: int = ..., shape: Any = ..., trainable: bool = ..., synchronization: int = ..., aggregation: int = ..., name: str = ..., device: str = ..., experimental_distributed_variable_components: Any = ...) -> None: ...

class FunctionSpec(Message):
    DEFAULT: int
    ON: int
    OFF: int
    @property
    def fullargspec(self) -> StructuredValue: ...
    is_method: bool
    @property
    def input_signature(self) -> StructuredValue: ...
    jit_compile: int
    def __init__(self, *, fullargspec: Any = ..., is_method: bool = ..., input_signature: Any = ..., jit_compile: int = ...) -> None: ...

class SavedResource(Message):
    device: str
    def __init__(self, *, device: str = ...) -> None: ...

class SaveableObject(Message):
    save_function: int
    restore_function: int
    def __init__(self, *, save_function: int = ..., restore_function: int = ...) -> None: ...

class SaverDef(Message):
    LEGACY: int
    V1: int
    V2: int
    filename_tensor_name: str
    save_tensor_name: str
    restore_op_name: str
    max_to_keep: int
    sharded: bool
    keep_checkpoint_every_n_hours: float
    version: int
    def __init__(self, *, filename_tensor_name: str = ..., save_tensor_name: str = ..., restore_op_name: str = ..., max_to_keep: int = ..., sharded: bool = ..., keep_checkpoint_every_n_hours: float = ..., version: int = ...) -> None: ...

class MetaGraphDef(Message):
    class MetaInfoDef(Message):
        meta_graph_version: str
        @property
        def stripped_op_list(self) -> OpList: ...
        @property
        def any_info(self) -> Message: ...
        @property
        def tags(self) -> RepeatedScalarFieldContainer[str]: ...
        tensorflow_version: str
        tensorflow_git_version: str
        stripped_default_attrs: bool
        @property
        def function_aliases(self) -> ScalarMap[str, str]: ...
        def __init__(self, *, meta_graph_version: str = ..., stripped_op_list: Any = ..., any_info: Any = ..., tags: Any = ..., tensorflow_version: str = ..., tensorflow_git_version: str = ..., stripped_default_attrs: bool = ..., function_aliases: Any = ...) -> None: ...

    @property
    def meta_info_def(self) -> MetaGraphDef.MetaInfoDef: ...
    @property
    def graph_def(self) -> GraphDef: ...
    @property
    def saver_def(self) -> SaverDef: ...
    @property
    def collection_def(self) -> MessageMap[str, CollectionDef]: ...
    @property
    def signature_def(self) -> MessageMap[str, SignatureDef]: ...
    @property
    def asset_file_def(self) -> RepeatedCompositeFieldContainer[AssetFileDef]: ...
    @property
    def object_graph_def(self) -> SavedObjectGraph: ...
    def __init__(self, *, meta_info_def: Any = ..., graph_def: Any = ..., saver_def: Any = ..., collection_def: Any = ..., signature_def: Any = ..., asset_file_def: Any = ..., object_graph_def: Any = ...) -> None: ...

class CollectionDef(Message):
    class NodeList(Message):
        @property
        def value(self) -> RepeatedScalarFieldContainer[str]: ...
        def __init__(self, *, value: Any = ...) -> None: ...

    class BytesList(Message):
        @property
        def value(self) -> RepeatedScalarFieldContainer[bytes]: ...
        def __init__(self, *, value: Any = ...) -> None: ...

    class Int64List(Message):
        @property
        def value(self) -> RepeatedScalarFieldContainer[int]: ...
        def __init__(self, *, value: Any = ...) -> None: ...

    class FloatList(Message):
        @property
        def value(self) -> RepeatedScalarFieldContainer[float]: ...
        def __init__(self, *, value: Any = ...) -> None: ...

    class AnyList(Message):
        @property
        def value(self) -> RepeatedCompositeFieldContainer[Message]: ...
        def __init__(self, *, value: Any = ...) -> None: ...

    @property
    def node_list(self) -> CollectionDef.NodeList: ...
    @property
    def bytes_list(self) -> CollectionDef.BytesList: ...
    @property
    def int64_list(self) -> CollectionDef.Int64List: ...
    @property
    def float_list(self) -> CollectionDef.FloatList: ...
    @property
    def any_list(self) -> CollectionDef.AnyList: ...
    def WhichOneof(self, oneof_group: str) -> str | None: ...
    def __init__(self, *, node_list: Any = ..., bytes_list: Any = ..., int64_list: Any = ..., float_list: Any = ..., any_list: Any = ...) -> None: ...

class TensorInfo(Message):
    class CooSparse(Message):
        values_tensor_name: str
        indices_tensor_name: str
        dense_shape_tensor_name: str
        def __init__(self, *, values_tensor_name: str = ..., indices_tensor_name: str = ..., dense_shape_tensor_name: str = ...) -> None: ...

    class CompositeTensor(Message):
        @property
        def type_spec(self) -> TypeSpecProto: ...
        @property
        def components(self) -> RepeatedCompositeFieldContainer[TensorInfo]: ...
        def __init__(self, *, type_spec: Any = ..., components: Any = ...) -> None: ...

    name: str
    @property
    def coo_sparse(self) -> TensorInfo.CooSparse: ...
    @property
    def composite_tensor(self) -> TensorInfo.CompositeTensor: ...
    dtype: int
    @property
    def tensor_shape(self) -> TensorShapeProto: ...
    def WhichOneof(self, oneof_group: str) -> str | None: ...
    def __init__(self, *, name: str = ..., coo_sparse: Any = ..., composite_tensor: Any = ..., dtype: int = ..., tensor_shape: Any = ...) -> None: ...

class SignatureDef(Message):
    @property
    def inputs(self) -> MessageMap[str, TensorInfo]: ...
    @property
    def outputs(self) -> MessageMap[str, TensorInfo]: ...
    method_name: str
    @property
    def defaults(self) -> MessageMap[str, TensorProto]: ...
    def __init__(self, *, inputs: Any = ..., outputs: Any = ..., method_name: str = ..., defaults: Any = ...) -> None: ...

class AssetFileDef(Message):
    @property
    def tensor_info(self) -> TensorInfo: ...
    filename: str
    def __init__(self, *, tensor_info: Any = ..., filename: str = ...) -> None: ...

class SavedModel(Message):
    saved_model_schema_version: int
    @property
    def meta_graphs(self) -> RepeatedCompositeFieldContainer[MetaGraphDef]: ...
    def __init__(self, *, saved_model_schema_version: int = ..., meta_graphs: Any = ...) -> None: ...

class SnapshotRecord(Message):
    @property
    def tensor(self) -> RepeatedCompositeFieldContainer[TensorProto]: ...
    def __init__(self, *, tensor: Any = ...) -> None: ...

class SnapshotMetadataRecord(Message):
    graph_hash: str
    run_id: str
    creation_timestamp: int
    version: int
    @property
    def dtype(self) -> RepeatedScalarFieldContainer[int]: ...
    num_elements: int
    finalized: bool
    def __init__(self, *, graph_hash: str = ..., run_id: str = ..., creation_timestamp: int = ..., version: int = ..., dtype: Any = ..., num_elements: int = ..., finalized: bool = ...) -> None: ...

class TensorMetadata(Message):
    @property
    def tensor_shape(self) -> TensorShapeProto: ...
    tensor_size_bytes: int
    def __init__(self, *, tensor_shape: Any = ..., tensor_size_bytes: int = ...) -> None: ...

class SnapshotTensorMetadata(Message):
    @property
    def tensor_metadata(self) -> RepeatedCompositeFieldContainer[TensorMetadata]: ...
    def __init__(self, *, tensor_metadata: Any = ...) -> None: ...

class DistributedSnapshotMetadata(Message):
    element_spec: bytes
    compression: str
    def __init__(self, *, element_spec: bytes = ..., compression: str = ...) -> None: ...

class BundleHeaderProto(Message):
    LITTLE: int
    BIG: int
    num_shards: int
    endianness: int
    @property
    def version(self) -> VersionDef: ...
    def __init__(self, *, num_shards: int = ..., endianness: int = ..., version: Any = ...) -> None: ...

class BundleEntryProto(Message):
    dtype: int
    @property
    def shape(self) -> TensorShapeProto: ...
    shard_id: int
    offset: int
    size: int
    crc32c: int
    @property
    def slices(self) -> RepeatedCompositeFieldContainer[TensorSliceProto]: ...
    def __init__(self, *, dtype: int = ..., shape: Any = ..., shard_id: int = ..., offset: int = ..., size: int = ..., crc32c: int = ..., slices: Any = ...) -> None: ...

class Event(Message):
    wall_time: float
    step: int
    file_version: str
    graph_def: bytes
    @property
    def summary(self) -> Summary: ...
    @property
    def log_message(self) -> LogMessage: ...
    @property
    def session_log(self) -> SessionLog: ...
    @property
    def tagged_run_metadata(self) -> TaggedRunMetadata: ...
    meta_graph_def: bytes
    @property
    def source_metadata(self) -> SourceMetadata: ...
    def WhichOneof(self, oneof_group: str) -> str | None: ...
    def __init__(self, *, wall_time: float = ..., step: int = ..., file_version: str = ..., graph_def: bytes = ..., summary: Any = ..., log_message: Any = ..., session_log: Any = ..., tagged_run_metadata: Any = ..., meta_graph_def: bytes = ..., source_metadata: Any = ...) -> None: ...

class SourceMetadata(Message):
    writer: str
    def __init__(self, *, writer: str = ...) -> None: ...

class LogMessage(Message):
    UNKNOWN: int
    DEBUGGING: int
    INFO: int
    WARN: int
    ERROR: int
    FATAL: int
    level: int
    message: str
    def __init__(self, *, level: int = ..., message: str = ...) -> None: ...

class SessionLog(Message):
    STATUS_UNSPECIFIED: int
    START: int
    STOP: int
    CHECKPOINT: int
    status: int
    checkpoint_path: str
    msg: str
    def __init__(self, *, status: int = ..., checkpoint_path: str = ..., msg: str = ...) -> None: ...

class TaggedRunMetadata(Message):
    tag: str
    run_metadata: bytes
    def __init__(self, *, tag: str = ..., run_metadata: bytes = ...) -> None: ...

class WatchdogConfig(Message):
    timeout_ms: int
    def __init__(self, *, timeout_ms: int = ...) -> None: ...

class RequestedExitCode(Message):
    exit_code: int
    def __init__(self, *, exit_code: int = ...) -> None: ...

class WorkerHeartbeatRequest(Message):
    shutdown_mode: int
    @property
    def watchdog_config(self) -> WatchdogConfig: ...
    @property
    def exit_code(self) -> RequestedExitCode: ...
    def __init__(self, *, shutdown_mode: int = ..., watchdog_config: Any = ..., exit_code: Any = ...) -> None: ...

class WorkerHeartbeatResponse(Message):
    health_status: int
    @property
    def worker_log(self) -> RepeatedCompositeFieldContainer[Event]: ...
    hostname: str
    def __init__(self, *, health_status: int = ..., worker_log: Any = ..., hostname: str = ...) -> None: ...

class UniformQuantizedConvolutionDimensionNumbersAttr(Message):
    input_batch_dimension: int
    input_feature_dimension: int
    @property
    def input_spatial_dimensions(self) -> RepeatedScalarFieldContainer[int]: ...
    kernel_input_feature_dimension: int
    kernel_output_feature_dimension: int
    @property
    def kernel_spatial_dimensions(self) -> RepeatedScalarFieldContainer[int]: ...
    output_batch_dimension: int
    output_feature_dimension: int
    @property
    def output_spatial_dimensions(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(self, *, input_batch_dimension: int = ..., input_feature_dimension: int = ..., input_spatial_dimensions: Any = ..., kernel_input_feature_dimension: int = ..., kernel_output_feature_dimension: int = ..., kernel_spatial_dimensions: Any = ..., output_batch_dimension: int = ..., output_feature_dimension: int = ..., output_spatial_dimensions: Any = ...) -> None: ...

class SavedSliceMeta(Message):
    name: str
    @property
    def shape(self) -> TensorShapeProto: ...
    type: int
    @property
    def slice(self) -> RepeatedCompositeFieldContainer[TensorSliceProto]: ...
    def __init__(self, *, name: str = ..., shape: Any = ..., type: int = ..., slice: Any = ...) -> None: ...

class SavedTensorSliceMeta(Message):
    @property
    def tensor(self) -> RepeatedCompositeFieldContainer[SavedSliceMeta]: ...
    @property
    def versions(self) -> VersionDef: ...
    def __init__(self, *, tensor: Any = ..., versions: Any = ...) -> None: ...

class SavedSlice(Message):
    name: str
    @property
    def slice(self) -> TensorSliceProto: ...
    @property
    def data(self) -> TensorProto: ...
    def __init__(self, *, name: str = ..., slice: Any = ..., data: Any = ...) -> None: ...

class SavedTensorSlices(Message):
    @property
    def meta(self) -> SavedTensorSliceMeta: ...
    @property
    def data(self) -> SavedSlice: ...
    def __init__(self, *, meta: Any = ..., data: Any = ...) -> None: ...

class CheckpointState(Message):
    model_checkpoint_path: str
    @property
    def all_model_checkpoint_paths(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def all_model_checkpoint_timestamps(self) -> RepeatedScalarFieldContainer[float]: ...
    last_preserved_timestamp: float
    def __init__(self, *, model_checkpoint_path: str = ..., all_model_checkpoint_paths: Any = ..., all_model_checkpoint_timestamps: Any = ..., last_preserved_timestamp: float = ...) -> None: ...
