"""Damaged SavedModels are refused, with the file and what is wrong, and quickly."""

import random
import zipfile
from pathlib import Path

import numpy as np
import pytest

import opkernel
from opkernel.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
)
from opkernel.interop import LoadedModel
from opkernel.proto import SavedModel, StructuredValue

DATA = Path(__file__).parent / "data"
F32 = np.float32


def use_all(model):
    """Read every variable, call every signature and `f`, make every object and body."""
    for variable in model.variables:
        variable.numpy()
    for signature in model.signatures.values():
        repr(signature)
        signature(**{name: _value(spec) for name, spec in signature.inputs.items()})
    if isinstance(model, LoadedModel):
        objects = model.saved_objects
        for number in range(len(objects.nodes)):
            one = objects.get(number)
            repr(one)
            for function in getattr(one, "concrete_functions", ()):
                assert function.graph is not None
        if "f" in objects.children(0):
            model.f(np.ones(20, F32 if "v" in objects.children(0) else np.int64))


def _value(spec):
    if isinstance(spec, tuple):
        return tuple(map(_value, spec))
    shape = [2 if size is None else size for size in spec.shape.dims or ()]
    return np.zeros(shape, F32 if spec.dtype is None else spec.dtype.as_numpy_dtype)


def function_named(meta_graph, name):
    functions = meta_graph.object_graph_def.concrete_functions
    (found,) = [f for key, f in functions.items() if key.startswith(f"__inference_{name}_")]
    return found


def node_of_function(meta_graph, name):
    nodes = meta_graph.object_graph_def.nodes
    number = next(c.node_id for c in nodes[0].children if c.local_name == name)
    return nodes[number]


def child_out_of_range(meta_graph):
    meta_graph.object_graph_def.nodes[0].children[0].node_id = 10**6


def child_negative(meta_graph):
    meta_graph.object_graph_def.nodes[0].children[0].node_id = -1


def capture_out_of_range(meta_graph):
    function_named(meta_graph, "f").bound_inputs[0] = 99


def capture_is_no_tensor(meta_graph):
    function_named(meta_graph, "f").bound_inputs[0] = 0


def too_many_captures(meta_graph):
    function_named(meta_graph, "f").bound_inputs.extend([1] * 50)


def too_few_captures(meta_graph):
    del function_named(meta_graph, "f").bound_inputs[:]


def captures_in_another_order(meta_graph):
    bound = function_named(meta_graph, "f").bound_inputs
    bound[:] = bound[::-1]


def function_is_missing(meta_graph):
    node_of_function(meta_graph, "f").function.concrete_functions[:] = ["nothing"]


def body_is_missing(meta_graph):
    library = meta_graph.graph_def.library.function
    kept = [f for f in library if not f.signature.name.startswith("__inference_f_")]
    del library[:]
    library.extend(kept)


def structure_is_unknown(meta_graph):
    function_named(meta_graph, "f").canonicalized_input_signature.CopyFrom(StructuredValue())


def structure_of_unknown_class(meta_graph):
    spec = function_named(meta_graph, "f").canonicalized_input_signature.type_spec_value
    spec.type_spec_class = 77
    spec.type_spec_class_name = "Strange"
    spec.type_state.tuple_value.SetInParent()


def results_are_too_many(meta_graph):
    outputs = function_named(meta_graph, "f").output_signature
    one = StructuredValue()
    one.CopyFrom(outputs)
    outputs.list_value.values.extend([one, one, one])


def signature_is_no_function(meta_graph):
    nodes = meta_graph.object_graph_def.nodes
    number = next(c.node_id for c in nodes[0].children if c.local_name == "signatures")
    nodes[number].children.add(local_name="f", node_id=0)


def python_signature_is_odd(meta_graph):
    pairs = node_of_function(meta_graph, "f").function.function_spec.fullargspec
    del pairs.named_tuple_value.values[1:]


def python_signature_has_no_names(meta_graph):
    pairs = node_of_function(meta_graph, "f").function.function_spec.fullargspec
    pairs.named_tuple_value.values[0].value.list_value.values[0].string_value = ""
    node_of_function(meta_graph, "f").function.function_spec.is_method = False


def dtype_is_unknown(meta_graph):
    for node in meta_graph.object_graph_def.nodes:
        if node.HasField("variable"):
            node.variable.dtype = 1000


def constant_is_missing(meta_graph):
    for node in meta_graph.object_graph_def.nodes:
        if node.HasField("constant"):
            node.constant.operation = "nothing"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (child_out_of_range, "object 0 refers to 1000000"),
        (child_negative, "object 0 refers to -1"),
        (capture_out_of_range, "refers to object 99"),
        (capture_is_no_tensor, "takes object 0, which is no tensor"),
        (too_many_captures, "tensors from outside"),
        (too_few_captures, "takes 4 tensors, and its signature has 1, and 0 tensors"),
        (captures_in_another_order, "In function '__inference_f_"),
        (function_is_missing, "there is no function 'nothing'"),
        (body_is_missing, "there is no function '__inference_f_"),
        (structure_is_unknown, "structured value"),
        (structure_of_unknown_class, "Strange"),
        (results_are_too_many, "gives fewer tensors"),
        (signature_is_no_function, "signature 'f' is no function"),
        (python_signature_is_odd, "signature of a function is damaged"),
        (python_signature_has_no_names, "signature of a function is damaged"),
        (dtype_is_unknown, "variable"),
        (constant_is_missing, "constant 'nothing', which the graph lacks"),
    ],
)
def test_what_refers_to_nothing_is_refused(sample, damage, message):
    directory = sample("captured", damage)
    with pytest.raises(OpError, match=message) as error:
        use_all(opkernel.load(directory))
    assert str(directory) in str(error.value)


def test_a_table_that_nothing_makes_is_refused(sample):
    def change(meta_graph):
        for node in meta_graph.object_graph_def.nodes:
            for child in node.children:
                if child.local_name == "_create_resource":
                    child.node_id = 0

    model = opkernel.load(sample("tables", change))
    with pytest.raises(DataLossError, match=r"saved_model.pb is damaged: object 0 is no function"):
        model.f(np.zeros(1, np.int64))


def test_a_restore_function_that_is_not_there_is_refused(sample):
    def change(meta_graph):
        for node in meta_graph.object_graph_def.nodes:
            for saveable in node.saveable_objects.values():
                saveable.restore_function = 10**5

    model = opkernel.load(sample("tables", change))
    with pytest.raises(DataLossError, match=r"saved_model.pb is damaged: object \d+ refers to"):
        model.f(np.zeros(1, np.int64))


def test_functions_that_call_each_other_for_ever_are_refused(sample):
    def change(meta_graph):
        for function in meta_graph.graph_def.library.function:
            for node in function.node_def:
                if "f" in node.attr and node.attr["f"].func.name.startswith("__inference___call__"):
                    node.attr["f"].func.name = function.signature.name

    model = opkernel.load(sample("nested_modules", change))
    with pytest.raises(OpError):
        model(np.zeros((1, 3), F32))


def test_nested_text_and_messages_of_any_depth_are_refused(tmp_path):
    depth = 100_000
    opening = "{ tuple_value { values " * depth
    text = (
        'meta_graphs { meta_info_def { tags: "serve" } object_graph_def { concrete_functions '
        f'{{ key: "f" value {{ output_signature {opening} {{}} {"} }" * depth} }} }} }} }}'
    )
    (tmp_path / "saved_model.pbtxt").write_text(f"saved_model_schema_version: 1 {text}")
    with pytest.raises(OpError, match=r"saved_model.pbtxt"):
        opkernel.load(tmp_path)


def test_an_object_graph_of_any_depth_loads(tmp_path):
    message = SavedModel(saved_model_schema_version=1)
    graph = message.meta_graphs.add().object_graph_def
    count = 20_000
    for number in range(count):
        node = graph.nodes.add()
        node.user_object.identifier = "_generic_user_object"
        node.children.add(local_name="next", node_id=(number + 1) % count)
    (tmp_path / "saved_model.pb").write_bytes(message.SerializeToString())
    model = opkernel.load(tmp_path)
    found = model
    for _ in range(count):
        found = found.next
    assert found is model
    assert model.variables == []


@pytest.mark.parametrize("name", ["captured", "nested_modules", "tables", "partitioned"])
def test_flipped_bits_and_cuts_lead_to_errors_with_a_status_code(sample, name):
    directory = sample(name)
    file = directory / "saved_model.pb"
    whole = file.read_bytes()
    chance = random.Random(name)
    for round_ in range(40):
        data = bytearray(whole)
        if round_ % 4:
            for _ in range(chance.choice([1, 1, 1, 5])):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        else:
            del data[chance.randrange(len(data)) :]
        file.write_bytes(data)
        try:
            use_all(opkernel.load(directory))
        except OpError:
            pass
        except UserWarning:
            pass


@pytest.mark.parametrize("part", ["variables.index", "variables.data-00000-of-00001"])
def test_damaged_variables_are_refused_by_name(sample, part):
    directory = sample("linear")
    file = directory / "variables" / part
    whole = bytearray(file.read_bytes())
    (directory / "fingerprint.pb").unlink()
    for damage in ("flip", "cut", "gone"):
        if damage == "flip":
            whole[5] ^= 16
            file.write_bytes(whole)
        elif damage == "cut":
            file.write_bytes(whole[: len(whole) // 2])
        else:
            file.unlink()
        with pytest.raises(
            (DataLossError, NotFoundError, OutOfRangeError), match="variables/variables"
        ):
            use_all(opkernel.load(directory))


def test_archives_that_lead_outside_or_are_cut_are_refused(tmp_path):
    whole = (DATA / "linear.zip").read_bytes()
    cut = tmp_path / "cut.zip"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidArgumentError, match=r"cut.zip is no archive of a model"):
        opkernel.load(cut)
    outside = tmp_path / "outside.zip"
    with zipfile.ZipFile(outside, "w") as archive:
        archive.writestr("../saved_model.pb", b"")
    with pytest.raises(OpError, match="would lie outside"):
        opkernel.load(outside)
    empty = tmp_path / "empty.zip"
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("readme", b"")
    with pytest.raises(NotFoundError, match="holds no SavedModel"):
        opkernel.load(empty)


def test_a_table_that_is_needed_to_create_itself_is_refused(sample):
    def change(meta_graph):
        graph = meta_graph.object_graph_def
        for number, node in enumerate(graph.nodes):
            for child in node.children:
                if child.local_name == "_create_resource":
                    name = graph.nodes[child.node_id].function.concrete_functions[0]
                    graph.concrete_functions[name].bound_inputs.append(number)
                    for function in meta_graph.graph_def.library.function:
                        if function.signature.name == name:
                            function.signature.input_arg.add(name="itself", type=20)

    model = opkernel.load(sample("tables", change))
    with pytest.raises(DataLossError, match=r"saved_model.pb is needed to create itself"):
        model.f(np.zeros(1, np.int64))


def test_counts_that_no_memory_holds_are_refused(sample):
    def ragged(meta_graph):
        for function in meta_graph.object_graph_def.concrete_functions.values():
            (value, *_) = function.canonicalized_input_signature.tuple_value.values[
                0
            ].tuple_value.values or [StructuredValue()]
            spec = value.type_spec_value
            if spec.type_spec_class == spec.RAGGED_TENSOR_SPEC:
                spec.type_state.tuple_value.values[2].int64_value = 2**40

    with pytest.raises(DataLossError, match="1099511627776 ragged dimensions"):
        repr(opkernel.load(sample("composite", ragged)).double)

    def constant(meta_graph):
        for node in meta_graph.graph_def.node:
            if node.op == "Const":
                tensor = node.attr["value"].tensor
                tensor.Clear()
                tensor.dtype = 1
                for _ in range(2):
                    tensor.tensor_shape.dim.add(size=10**6)
                tensor.float_val.append(1)

    with pytest.raises(OpError, match="takes 4000000000000 bytes"):
        opkernel.load(sample("captured", constant)).f(np.ones(20, F32))


def test_places_in_lists_are_short_numbers(sample):
    def change(meta_graph):
        for node in meta_graph.object_graph_def.nodes:
            if node.user_object.identifier == "trackable_list_wrapper":
                node.children.add(node_id=0, local_name="9" * 5000)
                node.children.add(node_id=0, local_name="\u0663")

    assert len(opkernel.load(sample("nested_modules", change)).layers) == 3
