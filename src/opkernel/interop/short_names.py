"""shorten_names: functions of loaded models under the names that they had before they were loaded.

Functions of different loads may have had the same name; all but one of them get a number then.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Container, Iterable, Mapping
from typing import Any

from opkernel.graph.core.node import GRADIENT_OP_TYPE_ATTR
from opkernel.interop.loaded_body import function_references
from opkernel.proto import MetaGraphDef, NodeDef

_LOADED = re.compile(r"(_load_\d+)+$")


def shorten_names(meta_graph: MetaGraphDef) -> None:
    """Rename functions, and what gradients are registered for, wherever a MetaGraph names them."""
    library, objects = meta_graph.graph_def.library, meta_graph.object_graph_def
    functions = _short([function.signature.name for function in library.function])
    op_types = _short([one.registered_op_type for one in library.registered_gradients])
    if not functions and not op_types:
        return
    nodes = [*meta_graph.graph_def.node]
    for function in library.function:
        function.signature.name = functions.get(function.signature.name, function.signature.name)
        nodes += function.node_def
    for node in nodes:
        _rename_in_node(node, functions, op_types)
    for one in library.registered_gradients:
        one.gradient_func = functions.get(one.gradient_func, one.gradient_func)
        one.registered_op_type = op_types.get(one.registered_op_type, one.registered_op_type)
    for old, new in functions.items():
        if old in objects.concrete_functions:
            objects.concrete_functions[new].CopyFrom(objects.concrete_functions[old])
            del objects.concrete_functions[old]
    for saved in objects.nodes:
        _rename_in_object(saved, functions)


def _short(names: Iterable[str]) -> dict[str, str]:
    """The names without what loading added, for those that it added to."""
    taken, found = {*names}, dict[str, str]()
    for name in sorted(taken):
        if _LOADED.search(name):
            found[name] = _free(_LOADED.sub("", name), taken)
            taken.add(found[name])
    return found


def _free(name: str, taken: Container[str]) -> str:
    candidates = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(1)))
    return next(one for one in candidates if one not in taken)


def _rename_in_node(
    node: NodeDef, functions: Mapping[str, str], op_types: Mapping[str, str]
) -> None:
    node.op = functions.get(node.op, node.op)
    for attr in node.attr.values():
        for reference in function_references(attr):
            reference.name = functions.get(reference.name, reference.name)
    asked = node.attr.get(GRADIENT_OP_TYPE_ATTR)
    if asked is not None:
        name = asked.s.decode(errors="surrogateescape")
        asked.s = op_types.get(name, name).encode(errors="surrogateescape")


def _rename_in_object(saved: Any, functions: Mapping[str, str]) -> None:
    kind = saved.WhichOneof("kind")
    if kind == "function":
        names = [functions.get(name, name) for name in saved.function.concrete_functions]
        saved.function.concrete_functions[:] = names
    elif kind == "bare_concrete_function":
        bare = saved.bare_concrete_function
        bare.concrete_function_name = functions.get(
            bare.concrete_function_name, bare.concrete_function_name
        )
    elif kind == "captured_tensor":
        tensor = saved.captured_tensor
        tensor.concrete_function = functions.get(tensor.concrete_function, tensor.concrete_function)
