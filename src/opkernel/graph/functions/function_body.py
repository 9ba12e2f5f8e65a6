"""instantiate_function: an instance of a function as a graph that the runtime can run.

Source: TensorFlow core/common_runtime/function_def_utils.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from opkernel.graph.core.graph import Graph
from opkernel.graph.functions.function_instance import FunctionBody, instantiate_into
from opkernel.proto import AttrValue, FunctionDef, NameAttrList

if TYPE_CHECKING:
    from opkernel.graph.functions.function_library import FunctionLibraryDefinition

__all__ = ["FunctionBody", "instantiate_function"]


def instantiate_function(
    library: FunctionLibraryDefinition,
    function: str | NameAttrList | FunctionDef,
    attrs: Mapping[str, AttrValue] | None = None,
) -> FunctionBody:
    """The body of a function.

    Args:
        library: where its name, and those of the functions that it calls, are looked up.
        function: its name, the value of an attr that names it, or the function itself.
        attrs: values for the attrs of its signature, over those of a NameAttrList.

    Raises:
        NotFoundError: there is no such function, an attr is missing, or an op is not registered.
        InvalidArgumentError: a node of the function breaks a rule.
    """
    return instantiate_into(Graph(function_library=library), function, attrs)
