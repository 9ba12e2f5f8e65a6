"""Loads the module of an op when the op is first looked up."""

import importlib

from opkernel.ops.catalogue import MODULE_OF_OP

__all__ = ["load_all_ops", "load_op"]


def load_op(name: str) -> None:
    """Import the module that registers the op `name`; do nothing for an op of no module."""
    module = MODULE_OF_OP.get(name)
    if module is not None:
        importlib.import_module(f"opkernel.ops.{module}")


def load_all_ops() -> None:
    """Import every module of the catalogue, for tools that list what there is."""
    for module in sorted(set(MODULE_OF_OP.values())):
        importlib.import_module(f"opkernel.ops.{module}")
