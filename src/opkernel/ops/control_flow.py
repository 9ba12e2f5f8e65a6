"""Control flow: conditionals, loops and calls of functions, and TensorFlow 1's switches and frames.

The runtime executes these ops itself (`opkernel.runtime.plan.functional_ops`); here is what they are.
Plans do not call their kernels; these say which types and memory the ops take on each device, and serve
executors that run one kernel a node.
Source: TensorFlow core/ops/control_flow_ops.cc, core/ops/functional_ops.cc, core/kernels/
control_flow_ops.cc, core/kernels/functional_ops.cc.
"""

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import OpKernel, OpKernelContext, forward_input
from opkernel.opdef import InferenceContext, full_type, register_op
from opkernel.opdef.common_shapes import (
    unchanged_shape,
    unchanged_shape_with_rank,
    unknown_shape,
)
from opkernel.opdef.common_shapes.rules import each_output_as_its_input
from opkernel.opdef.full_type import FullTypeId
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import ALL, POD, QUANTIZED, register_kernel
from opkernel.types import DataType


def _pass_handle_data(c: InferenceContext, outputs: int) -> bool:
    """Give the outputs the known contents of the resources in input 0; returns whether any are known."""
    handles = c.input_handle_shapes_and_types(0)
    if handles is None:
        return False
    for index in range(outputs):
        c.set_output_handle_shapes_and_types(index, handles)
    return True


def switch_shape(c: InferenceContext) -> None:
    """All outputs are like `data`."""
    c.with_rank(c.input(1), 0)
    for index in range(c.num_outputs()):
        c.set_output(index, c.input(0))
    _pass_handle_data(c, c.num_outputs())


def merge_shape(c: InferenceContext) -> None:
    """The shape that covers all inputs."""
    output = c.input(0)
    if not c.rank_known(output):
        output = c.unknown_shape()
    else:
        for index in range(1, c.num_inputs()):
            other = c.input(index)
            if not c.rank_known(other) or c.rank(other) != c.rank(output):
                output = c.unknown_shape()
                break
            for i in range(c.rank(output)):
                if c.value(c.dim(other, i)) != c.value(c.dim(output, i)):
                    output = c.replace_dim(output, i, c.unknown_dim())
    c.set_output(0, output)
    c.set_output(1, c.scalar())


def enter_shape(c: InferenceContext) -> None:
    """Unknown, since a loop may change the shape; a constant of the loop keeps the input's shape."""
    c.set_output(0, c.unknown_shape())
    if not _pass_handle_data(c, 1) and c.get_attr("is_constant"):
        c.set_output(0, c.input(0))


def branch_shape(c: InferenceContext) -> None:
    """The shapes of the attr `output_shapes`."""
    if not _declared_shapes(c):
        unknown_shape(c)


def while_shape(c: InferenceContext) -> None:
    """The shapes of the attr `output_shapes`; if it is empty, those of the loop variables."""
    if not _declared_shapes(c):
        for index in range(c.num_outputs()):
            c.set_output(index, c.input(index))


def _declared_shapes(c: InferenceContext) -> bool:
    """Set the outputs from `output_shapes`; whether the attr says anything."""
    shapes = c.get_attr("output_shapes")
    if not shapes:
        return False
    if len(shapes) != c.num_outputs():
        raise InvalidArgumentError(
            f"`output_shapes` must be the same length as num outputs "
            f"({len(shapes)} vs. {c.num_outputs()})"
        )
    for index, shape in enumerate(shapes):
        c.set_output(index, c.make_shape_from_partial_shape(shape))
    return True


class Switch(OpKernel):
    """Sets the output that `pred` chooses; the other one stays unset, which makes it dead."""

    leaves_outputs = True

    def compute(self, ctx: OpKernelContext) -> None:
        pred = np.asarray(ctx.input(1))
        require_scalar(pred, "The second input must be a scalar, but it has shape {}")
        _pass_on(ctx, 0, int(bool(pred)))


class SwitchN(OpKernel):
    """Sets the output of number `output_index`, or the last one if no output has it; other outputs are dead."""

    leaves_outputs = True

    def compute(self, ctx: OpKernelContext) -> None:
        index = np.asarray(ctx.input(1))
        require_scalar(index, "The second input must be a scalar, but it has shape {}")
        _pass_on(ctx, 0, int(index) if 0 <= index < self.num_outputs else self.num_outputs - 1)


class Merge(OpKernel):
    """Passes on the first input that is alive, and its index; sets nothing where none is."""

    def compute(self, ctx: OpKernelContext) -> None:
        for index in range(self.num_inputs):
            if ctx.has_input(index):
                _pass_on(ctx, index, 0)
                ctx.set_output(1, np.int32(index))
                return


class PassOnRef(OpKernel):
    """Passes on a reference."""

    def compute(self, ctx: OpKernelContext) -> None:
        _pass_on(ctx, 0, 0)


class RunByExecutor(OpKernel):
    """The kernel of ops that call functions: it is the executor that runs them."""

    def compute(self, ctx: OpKernelContext) -> None:
        raise UnimplementedError(f"{self.type_string} is run by the executor, not by a kernel")


def _pass_on(ctx: OpKernelContext, source: int, output: int) -> None:
    """Set an output to an input: to the reference where it is one."""
    if ctx.kernel.output_type(output).is_ref:
        ctx.forward_ref_input_to_ref_output(source, output)
    else:
        ctx.set_output(output, ctx.input(source))


_merge_type = full_type.tuple_func([full_type.merge(), full_type.tensor(FullTypeId.TFT_INT32)])

for _prefix in ("", "Ref"):
    _t, _list = ("Ref(T)", "Ref(N * T)") if _prefix else ("T", "N * T")
    _traits = "" if _prefix else "value_rule=forward"
    _like_data = None if _prefix else full_type.replicate_input()
    register_op(
        f"{_prefix}Switch(data: {_t}, pred: bool) -> output_false: {_t}, output_true: {_t}",
        attrs=["T: type"],
        shape_fn=switch_shape,
        traits=_traits,
        forward_type_fn=None if _prefix else full_type.replicate_input(0, 2),
        allows_uninitialized_input=bool(_prefix),
        doc="Passes `data` on to `output_true` or `output_false`, as `pred` says.",
    )
    register_op(
        f"{_prefix}Merge(inputs: {_list}) -> output: {_t}, value_index: int32",
        attrs=["T: type", "N: int >= 1"],
        shape_fn=merge_shape,
        traits="" if _prefix else "value_rule=merge",
        forward_type_fn=None if _prefix else _merge_type,
        doc="Passes on whichever input is alive, and its index.",
    )
    _frame = ("frame_name: string", "is_constant: bool = false", "parallel_iterations: int = 10")
    for _name, _attrs, _doc in (
        ("Enter", _frame, "Passes `data` into the loop whose frame is `frame_name`."),
        ("Exit", (), "Passes `data` out of its loop."),
        ("NextIteration", (), "Passes `data` on to the next turn of its loop."),
    ):
        register_op(
            f"{_prefix}{_name}(data: {_t}) -> output: {_t}",
            attrs=["T: type", *_attrs],
            shape_fn=enter_shape if _name == "Enter" and not _prefix else unchanged_shape,
            traits=_traits,
            forward_type_fn=_like_data,
            doc=_doc,
        )

register_op(
    "_SwitchN(data: T, output_index: int32) -> outputs: num_outs * T",
    attrs=["num_outs: int >= 1", "T: type"],
    shape_fn=switch_shape,
    traits="value_rule=forward",
    doc="Passes `data` on to the output of number `output_index`; the last where there is none.",
)
register_op(
    "LoopCond(input: bool) -> output: bool",
    shape_fn=unchanged_shape_with_rank(0),
    doc="Passes on the condition that its loop goes by.",
)

_CALL = ("Tin: list(type) >= 0", "Tout: list(type) >= 0")
_SHAPES = "output_shapes: list(shape) = []"

for _prefix in ("", "Stateless"):
    register_op(
        f"{_prefix}If(cond: Tcond, input: Tin) -> output: Tout",
        attrs=["Tcond: type", *_CALL, "then_branch: func", "else_branch: func", _SHAPES],
        shape_fn=branch_shape,
        traits="calls=if",
        is_stateful=not _prefix,
        doc="then_branch(input) if cond holds, else else_branch(input).",
    )
    register_op(
        f"{_prefix}Case(branch_index: int32, input: Tin) -> output: Tout",
        attrs=[*_CALL, "branches: list(func) >= 1", _SHAPES],
        shape_fn=branch_shape,
        traits="calls=case",
        is_stateful=not _prefix,
        doc="The branch of number `branch_index`, called with `input`; the last where none is.",
    )
    _turns = ("cond: func", "body: func", _SHAPES, "parallel_iterations: int = 10")
    register_op(
        f"{_prefix}While(input: T) -> output: T",
        attrs=["T: list(type) >= 0", *_turns],
        shape_fn=while_shape,
        traits="calls=while",
        is_stateful=not _prefix,
        doc="output = input; while cond(output): output = body(output).",
    )

register_op(
    "_If(cond: Tcond, input: Tin) -> output: Tout",
    attrs=[
        "Tcond: type",
        "Tin: list(type) >= 1",
        "Tout: list(type) >= 1",
        "then_branch: func",
        "else_branch: func",
    ],
    shape_fn=unknown_shape,
    traits="calls=if",
    is_stateful=True,
    doc="As If, of graphs that older programs wrote.",
)
register_op(
    "_While(input: T) -> output: T",
    attrs=["T: list(type) >= 0", "cond: func", "body: func"],
    shape_fn=each_output_as_its_input,
    traits="calls=while",
    is_stateful=True,
    doc="As While, of graphs that older programs wrote.",
)

for _name in ("PartitionedCall", "StatefulPartitionedCall"):
    _settings = (f"{name}: string = ''" for name in ("config", "config_proto", "executor_type"))
    register_op(
        f"{_name}(args: Tin) -> output: Tout",
        attrs=[*_CALL, "f: func", *_settings],
        shape_fn=unknown_shape,
        traits="calls=function",
        is_stateful=_name.startswith("Stateful"),
        is_distributed_communication=_name.startswith("Stateful"),
        doc="f(args).",
    )

_ON_HOST = (DataType.DT_INT32, DataType.DT_STRING, DataType.DT_RESOURCE)
"""The types whose tensors pass through control flow in host memory."""
_PLAIN = (*(dtype for dtype in POD if dtype not in _ON_HOST), DataType.DT_VARIANT)
_VALUES = (*_PLAIN, *QUANTIZED)
_REFS = tuple(dtype for dtype in _VALUES if dtype != DataType.DT_VARIANT)

for _op, _kernel, _tensors, _always_on_host, _types, _types_on_host in (
    ("Switch", Switch, ("data", "output_false", "output_true"), ("pred",), _VALUES, _ON_HOST),
    ("RefSwitch", Switch, ("data", "output_false", "output_true"), ("pred",), _REFS, _ON_HOST[:2]),
    ("_SwitchN", SwitchN, ("data", "outputs"), ("output_index",), _VALUES, _ON_HOST),
    ("Merge", Merge, ("inputs", "output"), ("value_index",), _VALUES, _ON_HOST),
    ("RefMerge", Merge, ("inputs", "output"), ("value_index",), _REFS, _ON_HOST),
    ("Enter", forward_input, ("data", "output"), (), _VALUES, _ON_HOST),
    ("RefEnter", PassOnRef, ("data", "output"), (), _REFS, _ON_HOST[:2]),
    ("Exit", forward_input, ("data", "output"), (), _VALUES, _ON_HOST),
    ("RefExit", PassOnRef, ("data", "output"), (), _REFS, _ON_HOST),
    ("NextIteration", forward_input, ("data", "output"), (), _PLAIN, _ON_HOST),
    ("RefNextIteration", PassOnRef, ("data", "output"), (), _PLAIN, _ON_HOST),
):
    if "Switch" in _op:
        register_kernel(_op, types={"T": (*ALL, *QUANTIZED)}, host_memory=_always_on_host)(_kernel)
    elif _op != "NextIteration":
        register_kernel(_op)(_kernel)
    for _held, _host in (
        (_types, _always_on_host),
        (_types_on_host, (*_tensors, *_always_on_host)),
    ):
        register_kernel(_op, device="DEFAULT", types={"T": _held}, host_memory=_host)(_kernel)

register_kernel("LoopCond")(forward_input)
register_kernel("LoopCond", device="DEFAULT", host_memory=("input", "output"))(forward_input)

for _op, _on_host in {
    "If": ("cond",),
    "_If": ("cond",),
    "StatelessIf": ("cond",),
    "Case": ("branch_index",),
    "StatelessCase": ("branch_index",),
    "While": (),
    "_While": (),
    "StatelessWhile": (),
    "PartitionedCall": (),
    "StatefulPartitionedCall": (),
}.items():
    register_kernel(_op)(RunByExecutor)
    register_kernel(_op, device="DEFAULT", host_memory=_on_host)(RunByExecutor)
