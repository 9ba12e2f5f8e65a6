import re

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import Name, validate_kernel_registrations
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.registry.kernel_registry import KernelRegistry
from opkernel.kernel.registry.registration import KernelRegistration
from opkernel.opdef import OpDefBuilder, OpRegistry, global_op_registry
from opkernel.ops.loader import load_all_ops


def on_cpu():
    return Name("A").device("CPU")


def validate(*builders):
    """Validate kernels whose classes are called K0, K1, ... in this order."""
    ops = OpRegistry()
    ops.register(
        OpDefBuilder("A")
        .attr("T: {float, half, int32, int64}")
        .attr("U: list(type)")
        .attr("n: int >= 2")
        .attr("mode: {'same', 'valid'}")
        .attr("f: float")
        .input("x: T")
        .output("y: U")
        .finalize()
    )
    registry = KernelRegistry()
    for number, builder in enumerate(builders):
        registry.register(KernelRegistration(builder.build(), f"K{number}", OpKernel))
    validate_kernel_registrations(ops, registry=registry)


def test_disjoint_kernels_are_fine():
    validate(
        on_cpu().type_constraint("T", "float"),
        on_cpu().type_constraint("T", ["int32", "int64"]).host_memory("x").host_memory("y"),
        on_cpu().priority(1),
        on_cpu().label("x"),
        Name("A").device("GPU").type_constraint("U", "string"),
        on_cpu().priority(2).attr_constraint("n", 3).attr_constraint("mode", "same"),
    )


@pytest.mark.parametrize(
    ("builder", "message"),
    [
        (on_cpu().host_memory("x").host_memory("zzz"), "HostMemory arg 'zzz' not found in OpDef: "),
        (on_cpu().type_constraint("V", "float"), "constraint on attr 'V' not in OpDef: "),
        (on_cpu().type_constraint("n", "float"), "'n' of type 'int' with the values "),
        (on_cpu().attr_constraint("T", "float"), "'T' of type 'type' with the values "),
        (on_cpu().attr_constraint("f", 1), "'f' of type 'float' with the values "),
        (on_cpu().type_constraint("T", []), r"'T' of type 'type' with the values \[\]"),
        (on_cpu().type_constraint("T", ["string", "bool"]), "none of which the op allows"),
        (on_cpu().attr_constraint("n", 1), "none of which the op allows"),
        (on_cpu().attr_constraint("mode", "full"), "none of which the op allows"),
    ],
)
def test_declarations_that_do_not_fit_the_op(builder, message):
    with pytest.raises(InvalidArgumentError, match=message):
        validate(builder)


def test_a_kernel_for_more_types_than_the_op_has_is_fine():
    validate(on_cpu().type_constraint("T", ["float", "string"]))


def test_kernels_that_a_node_could_not_choose_between():
    with pytest.raises(InvalidArgumentError, match=r"at the same priority.*, K1, .*, K0"):
        validate(
            on_cpu().type_constraint("T", ["float", "half"]),
            on_cpu().type_constraint("T", ["half", "int32"]).attr_constraint("mode", "same"),
        )


def test_priorities_do_not_count_among_default_kernels():
    default = Name("A").device("DEFAULT")
    with pytest.raises(InvalidArgumentError, match=r"of 'A' match the same nodes.*, K1, .*, K0"):
        validate(default, Name("A").device("DEFAULT").priority(1))
    validate(default, Name("A").device("DEFAULT").label("x").priority(1))


def test_everything_wrong_is_named():
    with pytest.raises(InvalidArgumentError) as error:
        validate(on_cpu().host_memory("zzz").type_constraint("V", "float"), on_cpu())
    assert len(str(error.value).splitlines()) == 3


def test_an_unknown_op_is_logged(caplog):
    registry = KernelRegistry()
    registry.register(KernelRegistration(on_cpu().build(), "K", OpKernel))
    validate_kernel_registrations(OpRegistry(), registry=registry)
    assert caplog.messages == [
        'OpKernel (\'op: "A" device_type: "CPU"\') for unknown op: A',
    ]


def test_the_catalogue():
    # Of these two TensorFlow itself registers kernels that no node of its old ops can have.
    load_all_ops()
    with pytest.raises(InvalidArgumentError) as error:
        validate_kernel_registrations(global_op_registry())
    found = re.findall(r"on attr '(\w+)' not in OpDef: Op<name=(\w+);", str(error.value))
    assert sorted(found) == [("Tmultiples", "TileGrad"), ("index_type", "TopK")]
    assert len(str(error.value).splitlines()) == 2
