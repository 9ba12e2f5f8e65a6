"""Finds an op when it is first looked up: its module is imported, or its declaration read."""

import functools
import importlib

from opkernel.opdef import OpRegistrationData, OpShapeInferenceFn, OpTraits
from opkernel.ops import catalogue


def load_op(name: str) -> OpRegistrationData | None:
    """Import the module that registers the op `name` and its kernels, if there is one.

    Returns:
        What is known of an op of TensorFlow that no module registers; None for all others.
    """
    module = module_of_op(name)
    if module is None:
        return _declared_op(name)
    importlib.import_module(module)
    return None


def module_of_op(name: str) -> str | None:
    """The module that registers the op `name`; None for ops without one."""
    module, _ = catalogue.entry(name)
    return f"opkernel.ops.{module}" if module and not _is_declared(module) else None


def traits_of_op(name: str) -> OpTraits:
    """The traits of the op `name`, as the catalogue says; imports nothing."""
    return OpTraits.from_words(catalogue.entry(name)[1])


def declared_ops_of_extra(extra: str) -> list[str]:
    """The ops that are only declared and whose kernels need an extra, in the order of their names."""
    names = sorted(catalogue.MODULE_OF_SHAPE_FN)
    return [name for name in names if traits_of_op(name).extra == extra]


def load_gradient(name: str) -> None:
    """Import the module that registers the gradient of the op `name`, or that it has none, if there is one."""
    module = catalogue.rules(name).get("gradient")
    if module is not None:
        importlib.import_module(f"opkernel.ops.{module}")


def load_all_ops() -> None:
    """Import every module of the catalogue, for tools that list what there is."""
    for module in sorted(set(catalogue.MODULE_OF_OP.values())):
        importlib.import_module(f"opkernel.ops.{module}")
    from opkernel.kernel.registry.kernel_registry import (
        KERNELS,  # looking up one op needs no kernels
        KERNELS_BY_EXTRA,
    )

    for slots in (KERNELS, KERNELS_BY_EXTRA):
        for name in slots.names():
            slots.get(name)


@functools.cache
def all_op_names() -> frozenset[str]:
    """The ops that `load_op` knows."""
    # few graphs have ops that are only declared
    from opkernel.ops.declared import tensorflow_op_defs

    return frozenset(tensorflow_op_defs()) | frozenset(catalogue.MODULE_OF_OP)


def _is_declared(module: str) -> bool:
    """Whether a module has the shape functions of ops without kernels."""
    return module.startswith("declared.")


@functools.cache
def _declared_op(name: str) -> OpRegistrationData | None:
    # few graphs have ops that are only declared
    from opkernel.ops.declared import tensorflow_op_defs

    op_def = tensorflow_op_defs().get(name)
    if op_def is None:
        return None
    return OpRegistrationData(op_def, _shape_fn(name), traits=traits_of_op(name))


def _shape_fn(name: str) -> OpShapeInferenceFn | None:
    module, _ = catalogue.entry(name)
    if not _is_declared(module):
        return None
    declared = importlib.import_module(f"opkernel.ops.{module}")
    shape_fn: OpShapeInferenceFn = declared.SHAPE_FNS[name]
    return shape_fn
