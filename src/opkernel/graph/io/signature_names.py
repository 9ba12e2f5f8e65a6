"""The names that TensorFlow gives to signatures, which one is meant where none is named, and what initialises a model.

Source: TensorFlow python/saved_model/signature_constants.py, constants.py, cc/saved_model/loader_util.cc.
"""

from __future__ import annotations

from collections.abc import Collection

from opkernel.proto import MetaGraphDef

DEFAULT_SIGNATURE = "serving_default"
INIT_OP_SIGNATURE = "__saved_model_init_op"
_NOT_CALLED = (INIT_OP_SIGNATURE, "__saved_model_train_op")
_INIT_OP_COLLECTIONS = ("saved_model_main_op", "legacy_init_op")


def signature_names(meta_graph: MetaGraphDef) -> list[str]:
    """The signatures of a MetaGraph, without those that initialise it or train it."""
    return sorted(name for name in meta_graph.signature_def if name not in _NOT_CALLED)


def default_signature(names: Collection[str]) -> str | None:
    """The signature that is meant where none is named: `serving_default`, or the only one; None if neither exists."""
    if DEFAULT_SIGNATURE in names:
        return DEFAULT_SIGNATURE
    return next(iter(names)) if len(names) == 1 else None


def init_op_names(meta_graph: MetaGraphDef) -> list[str]:
    """The names of the operations or tensors that initialise what no checkpoint holds."""
    if INIT_OP_SIGNATURE in meta_graph.signature_def:
        outputs = meta_graph.signature_def[INIT_OP_SIGNATURE].outputs
        return [info.name for info in outputs.values()]
    for collection in _INIT_OP_COLLECTIONS:
        if collection in meta_graph.collection_def:
            return [*meta_graph.collection_def[collection].node_list.value]
    return []
