"""The ops of optimisers: Apply and SparseApply, for references and for resources.

Source: TensorFlow core/ops/training_ops.cc, core/kernels/training_ops.cc.
"""

from opkernel.opdef import register_op
from opkernel.ops.kernel_types import INDEX
from opkernel.ops.registration import register_kernel
from opkernel.ops.training.apply_op import ApplyOp, SparseApplyOp
from opkernel.ops.training.optimizers import OPTIMIZERS, Optimizer
from opkernel.ops.training.step_shapes import step_shape
from opkernel.types import DataType

_TYPES_OF_INPUTS = {"indices": "Tindices", "global_step": "int64"}


def _roles(name: str, optimizer: Optimizer) -> str:
    """The inputs as shape functions take them."""
    roles = {"grad": "g", "delta": "d" if name == "GradientDescent" else "g"}
    values = [roles.get(value, "s") for value in optimizer.values.split()]
    if name == "FtrlV2":
        values.pop()  # TensorFlow does not check `lr_power` here
    return "v" * len(optimizer.variables.split()) + "".join(values)


def _register(name: str, optimizer: Optimizer, *, resource: bool, sparse: bool) -> None:
    variables = optimizer.variables.split()
    variable_type = "resource" if resource else "Ref(T)"
    types: dict[str, tuple[DataType, ...]] = {"T": optimizer.types}
    if sparse:
        types = {"T": optimizer.sparse_types, "Tindices": INDEX}
    op = f"{'Resource' * resource}{'Sparse' * sparse}Apply{name}"
    register_op(
        op,
        inputs=[
            f"{arg}: {variable_type if arg in variables else _TYPES_OF_INPUTS.get(arg, 'T')}"
            for arg in optimizer.inputs(sparse=sparse)
        ],
        outputs=[] if resource else ["out: Ref(T)"],
        attrs=[
            "T: numbertype",
            *(["Tindices: {int32, int64}"] * sparse),
            "use_locking: bool = false",
            *optimizer.attrs,
        ],
        # TensorFlow declares this one op for resources as if it were for references.
        shape_fn=step_shape(
            _roles(name, optimizer),
            resource=resource and op != "ResourceApplyProximalAdagrad",
            sparse=sparse,
        ),
        is_stateful=resource,
        doc=f"A step of {name} {'on some rows of' * sparse or 'on'} `var` and its slots.",
    )
    register_kernel(op, device="CPU", types=types, host_memory=variables if resource else [])(
        SparseApplyOp if sparse else ApplyOp
    )


for _name, _optimizer in OPTIMIZERS.items():
    for _resource in (True, False) if _optimizer.references else (True,):
        _register(_name, _optimizer, resource=_resource, sparse=False)
        if _optimizer.sparse_types:
            _register(_name, _optimizer, resource=_resource, sparse=True)
