"""JAX's inner modules: StableHLO modules are read, given static shapes, and called in a program that JAX traces.

JAX has no public functions for modules in MLIR. No other module of opkernel reaches what this one reaches; it works
with JAX 0.8 and newer ones. Modules go between functions as MLIR bytecode, since each belongs to a context of MLIR.

Source: JAX's jax/_src/export/_export.py, jax/_src/interpreters/mlir.py; TensorFlow's xla_call_module_loader.cc.
"""

from __future__ import annotations

import functools
import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.interrupts import contextmanager
from opkernel.xla.jax_numpy import jax
from opkernel.xla.module_types import (
    ArrayType,
    CalledFunction,
    Given,
    MlirOperation,
    Signature,
    StaticModule,
    array_of,
)

CALL_TF_FUNCTION = "tf.call_tf_function"
"""The custom call by which a module calls a function of TensorFlow's library."""
_MAGIC = b"ML\xefR"
"""The first bytes of MLIR's bytecode."""
_numbers = itertools.count()


@contextmanager
def _scope() -> Iterator[Any]:
    """A context of MLIR with the dialects of modules, for the block; gives the module `ir`."""
    ir: Any = jax("jaxlib.mlir.ir")
    dialects = ir.DialectRegistry()
    jax("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(dialects)
    context = ir.Context()
    context.append_dialect_registry(dialects)
    context.load_all_available_dialects()
    jax("jaxlib.mlir.dialects.mhlo").register_mhlo_dialect(context)
    for name in ("sdy", "chlo", "stablehlo"):
        jax(f"jaxlib.mlir.dialects.{name}").register_dialect(context)
    with context, ir.Location.unknown(context):
        yield ir


def _functions() -> Any:
    """The functions of jaxlib on whole modules."""
    return jax("jaxlib._jax").mlir


def _bytecode(module: Any) -> bytes:
    output = io.BytesIO()
    module.operation.write_bytecode(file=output)
    return output.getvalue()


def _parsed(ir: Any, module: Any) -> Any:
    return module if isinstance(module, ir.Module) else ir.Module.parse(module)


def read_artifact(artifact: bytes) -> bytes:
    """A portable artifact, or a module in MLIR's bytecode or text, as bytecode that the same jaxlib reads.

    A damaged artifact may end the process: MLIR's reader trusts its input. `stablehlo_reader` calls it elsewhere.

    Raises:
        Exception: it is no such module, or one that breaks the rules of its operations.
    """
    with _scope() as ir:
        is_text = not artifact.startswith(_MAGIC)
        read = ir.Module.parse if is_text else _functions().deserialize_portable_artifact
        module = _parsed(ir, read(artifact))
        module.operation.verify()
        return _bytecode(module)


def module_text(module: bytes) -> str:
    """A module as text, with large constants left out."""
    with _scope() as ir:
        operation = ir.Module.parse(module).operation
        return str(operation.get_asm(large_elements_limit=16))


def _described(ir: Any, type_: Any) -> ArrayType:
    """The description of a type of MLIR."""
    if not isinstance(type_, ir.RankedTensorType):
        return ArrayType(None, str(type_))
    sizes = [
        -1 if type_.is_dynamic_dim(i) else int(type_.get_dim_size(i)) for i in range(type_.rank)
    ]
    return ArrayType(tuple(sizes), str(type_.element_type))


_WITH_ATTRS = frozenset({"stablehlo.custom_call", "stablehlo.fft"})
"""The operations whose attributes are looked at."""


def _walk(ir: Any, operation: Any) -> Iterator[MlirOperation]:
    """The operations within an operation, and it."""
    pending = [operation]
    while pending:
        one = pending.pop().operation
        for region in one.regions:
            for block in region:
                pending += list(block)
        operands = [_described(ir, value.type) for value in one.operands]
        results = [_described(ir, value.type) for value in one.results]
        has_attrs = one.name in _WITH_ATTRS
        attrs = {name: str(one.attributes[name]) for name in _names(one)} if has_attrs else {}
        yield MlirOperation(one.name, operands, results, attrs, one)


def _names(operation: Any) -> list[str]:
    """The names of attributes; JAX 0.9 and newer iterate over names, earlier ones over pairs."""
    return [one if isinstance(one, str) else one.name for one in operation.attributes]


def _main(ir: Any, module: Any) -> Any:
    symbols = ir.SymbolTable(module.operation)
    if "main" not in symbols or symbols["main"].operation.name != "func.func":
        raise InvalidArgumentError("The module has no function 'main'")
    if not symbols["main"].regions[0].blocks:
        raise InvalidArgumentError("The function 'main' of the module has no body")
    return symbols["main"]


def signature_of(module: bytes) -> Signature:
    """What `main` of a module takes and gives.

    Raises:
        InvalidArgumentError: the module has no `main`.
    """
    with _scope() as ir:
        parsed = ir.Module.parse(module)
        main = _main(ir, parsed)
        counts = [
            int(ir.IntegerAttr(parsed.operation.attributes[name]).value)
            for name in _names(parsed.operation)
            if name in ("mhlo.num_partitions", "mhlo.num_replicas")
        ]
        inputs, results = main.type.inputs, main.type.results
        return Signature(
            [_described(ir, one) for one in inputs],
            [_described(ir, one) for one in results],
            max(counts, default=1),
        )


def refined(module: bytes, given: Sequence[Given], *, checks_shapes: bool) -> bytes:
    """A module whose `main` takes only the arguments of a call, in their shapes, with static shapes everywhere.

    Args:
        module: The module.
        given: What each input of its `main` is given. The types of elements and ranks are those of the input.
        checks_shapes: Whether the module's assertions about shapes are checked.

    Raises:
        Exception: the shapes do not fit, or shapes depend on values.
    """
    with _scope() as ir:
        parsed = ir.Module.parse(module)
        _add_entry(ir, parsed, given)
        parsed.operation.verify()
        found = _functions().refine_polymorphic_shapes(
            mlir_module=_bytecode(parsed),
            enable_shape_assertions=checks_shapes,
            validate_static_shapes=True,
            enable_shardy=True,
        )
        return found if isinstance(found, bytes) else _bytecode(found)


def _add_entry(ir: Any, module: Any, given: Sequence[Given]) -> None:
    """Put a function `main` before the one that is there."""
    func: Any = jax("jaxlib.mlir.dialects.func")
    main, symbols = _main(ir, module), ir.SymbolTable(module.operation)
    inner = next(n for n in map("opkernel_main_{}".format, itertools.count()) if n not in symbols)
    symbols.set_symbol_name(main, inner)
    symbols.replace_all_symbol_uses("main", inner, module.operation)
    main.attributes["sym_visibility"] = ir.StringAttr.get("private")
    types = [_static_type(ir, one) for one in given if one.shape is not None]
    kept = [not _described(ir, one).is_token for one in main.type.results]
    results = [one for one, is_kept in zip(main.type.results, kept, strict=True) if is_kept]
    with ir.InsertionPoint.at_block_begin(module.body):
        entry = func.FuncOp("main", (types, results))
    with ir.InsertionPoint(entry.add_entry_block()):
        arguments = iter(entry.arguments)
        operands = [
            _operand(ir, one, type_, arguments)
            for one, type_ in zip(given, main.type.inputs, strict=True)
        ]
        call = func.CallOp(main.type.results, ir.FlatSymbolRefAttr.get(inner), operands)
        func.ReturnOp([one for one, is_kept in zip(call.results, kept, strict=True) if is_kept])


def _static_type(ir: Any, given: Given) -> Any:
    to_type = jax("jax.interpreters.mlir").dtype_to_ir_type
    return ir.RankedTensorType.get(given.shape, to_type(np.dtype(given.dtype)))


def _operand(ir: Any, given: Given, type_: Any, arguments: Iterator[Any]) -> Any:
    """The operand of the call of `main` for one of its inputs."""
    hlo: Any = jax("jaxlib.mlir.dialects.stablehlo")
    if given.constant is not None:
        element = ir.RankedTensorType(type_).element_type
        value = ir.IntegerAttr.get(element, given.constant)
        return hlo.ConstantOp(ir.DenseElementsAttr.get_splat(type_, value)).result
    if given.shape is None:
        return hlo.CreateTokenOp().result
    argument = next(arguments)
    return argument if argument.type == type_ else hlo.ConvertOp(type_, argument).result


def checked(
    module: bytes, check: Callable[[MlirOperation], str | None]
) -> tuple[bytes, Sequence[CalledFunction]]:
    """A module without what concerns several devices, and the calls of TensorFlow's functions in it.

    Args:
        module: The module.
        check: Is called with each operation; `operand` says that its first operand takes the place of its result, and
            `zeros` that zeros do. It raises where the module is refused.
    """
    with _scope() as ir:
        parsed = ir.Module.parse(module)
        called = []
        for one in list(_walk(ir, parsed.operation)):
            for name in _names(one.raw):
                if name in _OF_DEVICES:
                    del one.raw.attributes[name]
            instead = check(one)
            if instead is not None:
                _replace(ir, one.raw, instead)
            elif one.attrs.get("call_target_name") == f'"{CALL_TF_FUNCTION}"':
                called.append(_called_function(ir, one))
        return _bytecode(parsed), called


_OF_DEVICES = frozenset(
    {
        "mhlo.frontend_attributes",
        "mhlo.sharding",
        "sdy.sharding",
        "sdy.sharding_per_value",
        "mhlo.memory_kind",
    }
)
"""Attributes about placement: a module runs on one device."""


def _replace(ir: Any, operation: Any, instead: str) -> None:
    if instead == "operand":
        value = operation.operands[0]
    else:
        type_ = ir.RankedTensorType(operation.results[0].type)
        zero = jax("jaxlib.mlir.dialects.stablehlo").ConstantOp
        with ir.InsertionPoint(operation):
            value = zero(_zeros(ir, type_)).result
    operation.results[0].replace_all_uses_with(value)
    operation.erase()


def _zeros(ir: Any, type_: Any) -> Any:
    return ir.Attribute.parse(f"dense<0> : {type_}")


def _called_function(ir: Any, one: MlirOperation) -> CalledFunction:
    """The facts of such a call, which gets a number of its own by which its lowering finds it."""
    if "tf.backend_config" not in one.attrs:
        raise InvalidArgumentError(f"{CALL_TF_FUNCTION} has no attribute tf.backend_config")
    config = ir.DictAttr(one.raw.attributes["tf.backend_config"])
    if "called_index" not in config:
        raise InvalidArgumentError(f"{CALL_TF_FUNCTION} does not say which function it calls")
    index = ir.IntegerAttr(config["called_index"]).value
    has_token = (
        "has_token_input_output" in config and ir.BoolAttr(config["has_token_input_output"]).value
    )
    return CalledFunction(int(index), bool(has_token))


def call(module: StaticModule, operands: Sequence[Any]) -> list[Any]:
    """The results of a module for arrays of the program that JAX traces."""
    results: list[Any] = _call_primitive().bind(*operands, module=module)
    return results


@functools.cache
def _call_primitive() -> Any:
    """The primitive of JAX that calls a module."""
    mlir: Any = jax("jax.interpreters.mlir")
    # Some kernels of LAPACK are found by their names once this ran.
    jax("jaxlib.cpu._lapack").initialize()
    primitive = jax("jax.extend.core").Primitive("xla_call_module")
    primitive.multiple_results = True

    def shapes(*_: Any, module: StaticModule) -> list[Any]:
        array = jax("jax.core").ShapedArray
        return [array(shape, dtype) for shape, dtype in module.results]

    primitive.def_abstract_eval(shapes)
    primitive.def_impl(
        lambda *operands, module: jax().jit(functools.partial(_bound, module))(*operands)
    )
    mlir.register_lowering(primitive, _lowered)
    return primitive


def _bound(module: StaticModule, *operands: Any) -> list[Any]:
    return call(module, operands)


def _lowered(ctx: Any, *operands: Any, module: StaticModule) -> Sequence[Any]:
    """Put the functions of a module into the program, and call its `main`."""
    ir: Any = jax("jaxlib.mlir.ir")
    func: Any = jax("jaxlib.mlir.dialects.func")
    mlir: Any = jax("jax.interpreters.mlir")
    program = ctx.module_context
    part = ir.Module.parse(module.bytecode, program.module.context)
    main = ir.SymbolTable(part.operation)["main"]
    types = main.type.results
    number = f"{CALL_TF_FUNCTION}/{next(_numbers)}"
    calls = [one for one in _walk(ir, part.operation) if _target(one) == CALL_TF_FUNCTION]
    for one in calls:
        one.raw.attributes["call_target_name"] = ir.StringAttr.get(number)
    name = mlir.merge_mlir_modules(
        program.module, "xla_call_module", part, dst_symtab=program.symbol_table
    )
    result = func.CallOp(types, ir.FlatSymbolRefAttr.get(name), operands)
    if calls:
        places = [one for one in _walk(ir, program.module.operation) if _target(one) == number]
        for one in places:
            _lower_function(ir, ctx, one, module)
    return list(result.results)


def _target(one: MlirOperation) -> str:
    """What a custom call calls; empty for other operations."""
    return one.attrs.get("call_target_name", "").strip('"')


def _lower_function(ir: Any, ctx: Any, one: MlirOperation, module: StaticModule) -> None:
    """Make a function of TensorFlow one of the program, and call it in the place of the custom call."""
    func: Any = jax("jaxlib.mlir.dialects.func")
    called = _called_function(ir, one)
    skipped = int(called.has_token)
    operands, results = list(one.raw.operands)[skipped:], list(one.raw.results)
    types = [value.type for value in operands], [value.type for value in results[skipped:]]
    made = func.FuncOp("tf_function", types, ip=ctx.module_context.ip)
    made.attributes["sym_visibility"] = ir.StringAttr.get("private")
    ctx.module_context.symbol_table.insert(made)
    _fill(ctx, made, functools.partial(module.function or _no_function, called.index))
    with ir.InsertionPoint(one.raw), one.raw.location:
        call_ = func.CallOp(types[1], ir.FlatSymbolRefAttr.get(made.name.value), operands)
    given = [*list(one.raw.operands)[:skipped], *call_.results]
    for old, new in zip(results, given, strict=True):
        old.replace_all_uses_with(new)
    one.raw.operation.erase()


def _no_function(index: int, *_: Any) -> Sequence[Any]:
    raise UnimplementedError(f"The module calls function {index} of TensorFlow")


def _fill(ctx: Any, made: Any, function: Callable[..., Sequence[Any]]) -> None:
    """Give a function without a body the operations that a function of JAX's arrays has."""
    ir: Any = jax("jaxlib.mlir.ir")
    mlir: Any = jax("jax.interpreters.mlir")
    array = jax("jax.core").ShapedArray
    taken = [array(*array_of(_described(ir, type_))) for type_ in made.type.inputs]
    entry = made.add_entry_block()
    with ir.InsertionPoint(entry):
        inner = ctx.replace(avals_in=taken, avals_out=None)
        found = mlir.lower_fun(function, multiple_results=True)(inner, *entry.arguments)
        nested = [one if isinstance(one, tuple | list) else (one,) for one in found]
        values = [*itertools.chain.from_iterable(nested)]
        given, wanted = [str(one.type) for one in values], [str(one) for one in made.type.results]
        if given != wanted:
            raise InvalidArgumentError(
                f"The function gives {', '.join(given)}, and the module says {', '.join(wanted)}"
            )
        jax("jaxlib.mlir.dialects.func").ReturnOp(values)
