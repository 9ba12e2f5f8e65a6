from pathlib import Path
from typing import cast

import pytest

from opkernel.errors import AlreadyExistsError, InvalidArgumentError
from opkernel.opdef import (
    OpDefBuilder,
    OpRegistry,
    global_op_registry,
    register_op,
    summarize_op_def,
    unknown_shape,
)
from opkernel.opdef.common_shapes import scalar_shape
from opkernel.proto import FullTypeDef


@pytest.fixture
def registry():
    return OpRegistry()


def no_types(input_types, infer_function_rets):
    return FullTypeDef()


def test_the_whole_declaration(registry):
    handle = register_op(
        "Everything",
        inputs=["a: N * T", "b: Ref(float)"],
        outputs=["c: T"],
        attrs=["N: int >= 1", "T: {float, int32} = DT_FLOAT"],
        shape_fn=unknown_shape,
        doc="Does it all.\n\na: The first.",
        is_stateful=True,
        is_commutative=True,
        is_aggregate=True,
        allows_uninitialized_input=True,
        is_distributed_communication=True,
        deprecated=(9, "Use less"),
        type_constructor=lambda op_def: None,
        forward_type_fn=no_types,
        registry=registry,
    )
    assert (handle.name, repr(handle)) == ("Everything", "<op Everything>")
    assert summarize_op_def(handle.op_def) == (
        "Op<name=Everything; signature=a:N*T, b:Ref(float) -> c:T; attr=N:int,min=1; "
        "attr=T:type,default=DT_FLOAT,allowed=[DT_FLOAT, DT_INT32]; is_commutative=true; "
        "is_aggregate=true; is_stateful=true; allows_uninitialized_input=true; "
        "is_distributed_communication=true>"
    )
    assert handle.op_def.summary == "Does it all."
    assert handle.op_def.input_arg[0].description == "The first."
    assert handle.op_def.deprecation.version == 9
    assert handle.registration.shape_inference_fn is unknown_shape
    assert handle.registration.forward_type_fn is no_types
    assert registry.look_up("Everything") is handle.registration


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("Bad", ["a: T"], "Reference to unknown attr 'T' from Input"),
        ("lower", [], "CamelCase"),
        ("Bad", ["a: int32", "a: int32"], "Duplicate name: a"),
    ],
)
def test_what_is_wrong_is_refused_at_once(registry, name, inputs, message):
    with pytest.raises(InvalidArgumentError, match=message):
        register_op(name, inputs=inputs, shape_fn=unknown_shape, registry=registry)
    assert name not in registry.names()


def test_a_wrong_declaration_leaves_the_one_before(registry):
    register_op("Cell", attrs=["a: int"], shape_fn=unknown_shape, registry=registry)
    with pytest.raises(InvalidArgumentError, match="Trouble parsing type string"):
        register_op("Cell", attrs=["b: in"], shape_fn=unknown_shape, registry=registry)
    assert registry.look_up_op_def("Cell").attr[0].name == "a"
    assert registry.owner("Cell") == __name__


@pytest.mark.parametrize(
    ("shape_fn", "fact"),
    [
        (None, "not None"),
        ("unknown", "not 'unknown'"),
        (lambda: None, "too many positional arguments"),
        (lambda c, scale: None, "missing a required argument: 'scale'"),
    ],
)
def test_a_shape_function_takes_the_context(registry, shape_fn, fact):
    with pytest.raises(TypeError, match=rf"Shapeless: shape_fn must be.*{fact}.*unknown_shape"):
        register_op("Shapeless", shape_fn=shape_fn, registry=registry)
    assert registry.names() == []


def test_any_callable_of_one_argument_is_a_shape_function(registry):
    for number, shape_fn in enumerate((lambda c, scale=2: None, lambda *c: None, registry.__eq__)):
        register_op(f"Shaped{number}", shape_fn=shape_fn, registry=registry)


def test_what_the_loader_brings_is_built_at_the_first_look_up():
    registry = OpRegistry()
    registry.set_loader(None, owner=lambda name: __name__)
    register_op("Late", inputs=["a: T"], shape_fn=unknown_shape, registry=registry)
    assert registry.names() == ["Late"]
    with pytest.raises(InvalidArgumentError, match="Reference to unknown attr 'T'"):
        registry.look_up("Late")


def test_a_module_may_declare_its_op_anew(registry):
    register_op("Cell", attrs=["a: int"], shape_fn=unknown_shape, registry=registry)
    registry.look_up("Cell")
    handle = register_op("Cell", attrs=["b: int"], shape_fn=unknown_shape, registry=registry)
    assert registry.look_up("Cell").op_def.attr[0].name == "b"
    assert registry.look_up("Cell") is handle.registration


def test_another_module_may_not(registry):
    register_op("Mine", shape_fn=unknown_shape, registry=registry)
    code = "register_op('Mine', shape_fn=unknown_shape, registry=registry)"
    theirs = {
        "__name__": "theirs",
        "register_op": register_op,
        "unknown_shape": unknown_shape,
        "registry": registry,
    }
    with pytest.raises(AlreadyExistsError) as caught:
        exec(code, theirs)
    assert str(caught.value) == (
        f"Op with name Mine: 'theirs' declares it, but '{__name__}' declares it already; "
        "choose another name"
    )
    assert registry.owner("Mine") == __name__


def test_an_op_that_came_as_data_has_no_owner_and_is_not_replaced(registry):
    registry.register(OpDefBuilder("Data"))
    registry.process_registrations()
    with pytest.raises(AlreadyExistsError, match="Op with name Data"):
        register_op("Data", shape_fn=unknown_shape, registry=registry)
    register_op("Code", shape_fn=unknown_shape, registry=registry)
    with pytest.raises(AlreadyExistsError, match="Op with name Code"):
        registry.register(OpDefBuilder("Code"))


def test_one_string_is_no_list_of_specs(registry):
    with pytest.raises(TypeError, match="inputs must be a list of specs"):
        register_op("A", inputs="a: int32", shape_fn=unknown_shape, registry=registry)


def test_the_global_registry_is_the_default():
    register_op("OnlyForThisTestOfRegisterOp", shape_fn=unknown_shape)
    assert global_op_registry().has("OnlyForThisTestOfRegisterOp")


@pytest.mark.parametrize(
    ("signature", "inputs", "outputs"),
    [
        (
            "Signed(x: T, axis: int32) -> y: T, at: int64",
            ["x: T", "axis: int32"],
            ["y: T", "at: int64"],
        ),
        ("Signed(values: N * T) -> out: Ref(T)", ["values: N * T"], ["out: Ref(T)"]),
        ("Signed(x: T)", ["x: T"], []),
        ("Signed() -> y: T", [], ["y: T"]),
        ("Signed()", [], []),
        ("Signed( x: T,y: T )->z: T", ["x: T", "y: T"], ["z: T"]),
    ],
)
def test_a_signature_stands_for_name_inputs_and_outputs(registry, signature, inputs, outputs):
    attrs = ["T: {float, int32}"] + ["N: int >= 1"] * ("N *" in signature)
    short = register_op(signature, attrs=attrs, shape_fn=unknown_shape, registry=registry)
    whole = register_op(
        "Signed",
        inputs=inputs,
        outputs=outputs,
        attrs=attrs,
        shape_fn=unknown_shape,
        registry=OpRegistry(),
    )
    assert short.name == "Signed"
    assert short.op_def == whole.op_def


@pytest.mark.parametrize(
    "signature",
    [
        "Signed(x: T",
        "Signed(x: T) - y: T",
        "Signed(x: T) ->",
        "Signed(x: T) y: T",
        "Signed(x: T,) -> y: T",
    ],
)
def test_a_broken_signature_is_refused(registry, signature):
    with pytest.raises(InvalidArgumentError):
        register_op(signature, attrs=["T: type"], shape_fn=unknown_shape, registry=registry)


def test_inputs_do_not_stand_beside_a_signature(registry):
    with pytest.raises(TypeError, match="the signature names the inputs and outputs"):
        register_op("Signed(x: T)", inputs=["y: T"], shape_fn=unknown_shape, registry=registry)


def test_a_handle_with_another_shape_function_is_not_registered(registry):
    handle = register_op("Shaped", outputs=["y: float"], shape_fn=unknown_shape, registry=registry)
    other = handle.with_shape_fn(scalar_shape)
    assert other.build().shape_inference_fn is scalar_shape
    assert registry.look_up("Shaped").shape_inference_fn is unknown_shape
    assert (other.name, other.owner) == (handle.name, handle.owner)


def test_specs_are_strings(registry):
    with pytest.raises(TypeError, match=r"Odd: inputs must be a list of strings .*; 3 is none"):
        register_op("Odd", inputs=[cast("str", 3)], shape_fn=unknown_shape, registry=registry)


def test_the_place_of_a_declaration_is_known(registry):
    register_op("Placed", shape_fn=unknown_shape, registry=registry)
    file, line = registry.site("Placed")
    assert Path(file) == Path(__file__)
    assert 'register_op("Placed"' in Path(__file__).read_text().splitlines()[line - 1]
    assert registry.site("NoSuchOpAtAll") is None


def test_an_op_may_open_files_unless_its_traits_are_known(registry):
    for traits, expected in (("reads_files", True), ("writes_files", True), ("", True)):
        register_op("Files", shape_fn=unknown_shape, traits=traits, registry=registry)
        assert registry.may_open_files("Files") is expected
    assert global_op_registry().may_open_files("ReadFile")
    assert not global_op_registry().may_open_files("MatMul")


def test_a_list_of_names_is_no_string(registry):
    with pytest.raises(TypeError, match="names is a list of ops, not the string 'MatMul'"):
        registry.select("MatMul")


def test_python_objects_are_attrs_on_demand():
    builder = OpDefBuilder("Any").attr("value: any")
    with pytest.raises(InvalidArgumentError, match="value: any"):
        builder.finalize()
    assert builder.allow_attr_type_any().finalize().op_def.attr[0].type == "any"
