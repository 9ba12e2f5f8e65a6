"""LoadedModel: a SavedModel of TF2, with its functions, signatures and variables.

Source: TensorFlow python/saved_model/load.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opkernel.device.permissions import Permissions
from opkernel.errors import DataLossError, OpError
from opkernel.graph import TensorSpec
from opkernel.interop.loaded_function import LoadedConcreteFunction
from opkernel.interop.loaded_objects import LoadedList, LoadedObject
from opkernel.interop.saved_objects import SavedObjects
from opkernel.interop.signature import Signature, SignatureMap, model_html
from opkernel.interop.structured_value import CompositeSpec
from opkernel.proto import MetaGraphDef, SignatureDef
from opkernel.training import Variable
from opkernel.types import tensor_from_proto

if TYPE_CHECKING:
    from opkernel.interop.saved_model_files import SavedModelFiles


def object_signature(
    name: str,
    function: LoadedConcreteFunction,
    keywords: Sequence[str],
    definition: SignatureDef,
) -> Signature:
    """The signature that a function computes.

    Args:
        name: Its name.
        function: The function.
        keywords: The names of its inputs, in their order.
        definition: What the graph of the model says of it.

    Raises:
        DataLossError: the function takes or gives something without a name, or no tensors.
    """
    _, named = function.input_signature
    by_name = {_name(spec, key): (key, spec) for key, spec in named.items()}
    inputs = {key: by_name.get(key, (key, TensorSpec(None))) for key in keywords}
    given = {} if function.output_signature is None else function.output_signature
    if not isinstance(given, Mapping) or len(inputs) != len(keywords):
        raise DataLossError(f"signature {name!r} has inputs or outputs without names")

    def run(values: dict[str, Any]) -> dict[str, Any]:
        found = function.call([values[keyword] for keyword in keywords])
        return {**found} if given else {}

    return Signature(
        name,
        {key: _described(name, spec) for key, (_, spec) in inputs.items()},
        {key: _described(name, spec) for key, spec in given.items()},
        run,
        method_name=definition.method_name,
        defaults={key: tensor_from_proto(value) for key, value in definition.defaults.items()},
        keywords={python_name: key for key, (python_name, _) in inputs.items()},
    )


def _name(spec: Any, key: str) -> str:
    return (spec.name if isinstance(spec, TensorSpec) else None) or key


def _described(name: str, spec: Any) -> Any:
    """What a signature says of an input or output."""
    if isinstance(spec, CompositeSpec):
        return spec.components
    if isinstance(spec, TensorSpec):
        return spec
    raise DataLossError(f"signature {name!r} takes or gives {spec!r}, which is no tensor")


class LoadedModel(LoadedObject):
    """A model as it was saved: its attributes are those of the object that was saved.

        model = opkernel.load("model")
        y = model.signatures["serving_default"](x=x)["y"]
        z = model(x, training=False)

    Functions are made ready, and values of variables read, when they are first used. Each load has
    variables and tables of its own.

    Attributes:
        path: The directory.
        tags: The tags of the MetaGraph.
        meta_graph: The message.
        signatures: The computations with named inputs and outputs.
        saved_objects: What makes its objects.
        permissions: What its graphs may do: to read their own variables and assets, and what the
            caller allowed.
    """

    def __init__(
        self,
        files: SavedModelFiles,
        meta_graph: MetaGraphDef,
        permissions: Permissions,
        jit: str = "",
    ) -> None:
        self.saved_objects = SavedObjects(files, meta_graph, permissions, jit)
        kind = meta_graph.object_graph_def.nodes[0].user_object.identifier or "model"
        super().__init__(self.saved_objects, 0, kind)
        self.saved_objects.root = self
        self.path = files.directory
        self.meta_graph = meta_graph
        self.tags = sorted(meta_graph.meta_info_def.tags)
        self.permissions = self.saved_objects.permissions

    @cached_property
    def signatures(self) -> SignatureMap:
        """The computations with named inputs and outputs."""
        children = self.saved_objects.children(0)
        if "signatures" not in children:
            return SignatureMap({})
        return SignatureMap(
            {
                name: self._signature(name, number)
                for name, number in self.saved_objects.children(children["signatures"]).items()
            }
        )

    @property
    def variables(self) -> list[Variable]:
        """The variables: those that the model lists, if it lists nothing else, or all that were saved."""
        listed = self._listed("variables")
        return self.saved_objects.variables if listed is None else listed

    @property
    def trainable_variables(self) -> list[Variable]:
        """The variables that training changes."""
        listed = self._listed("trainable_variables")
        if listed is not None:
            return listed
        return [variable for variable in self.saved_objects.variables if variable.trainable]

    @property
    def assets(self) -> dict[str, str]:
        """The paths of the files that the graphs read, by the names of the tensors that give them."""
        return self.saved_objects.files.assets(self.meta_graph)

    def _listed(self, name: str) -> list[Variable] | None:
        number = self.saved_objects.children(0).get(name)
        listed = None if number is None else self.saved_objects.get(number)
        if not isinstance(listed, LoadedList) or not all(isinstance(v, Variable) for v in listed):
            return None
        return [*listed]

    def _signature(self, name: str, number: int) -> Signature:
        function = self.saved_objects.get(number)
        if not isinstance(function, LoadedConcreteFunction):
            raise DataLossError(f"{self.path} is damaged: signature {name!r} is no function")
        keywords = [*self.saved_objects.nodes[number].bare_concrete_function.argument_keywords]
        definition = self.meta_graph.signature_def[name]
        try:
            return object_signature(name, function, keywords, definition)
        except OpError as error:
            error.add_context(f"In {self.saved_objects.files.path}")
            raise

    def __repr__(self) -> str:
        names = ", ".join(self.signatures) or "none"
        return f"<opkernel.LoadedModel {self.path!r}, tags {self.tags}, signatures: {names}>"

    def _repr_html_(self) -> str:
        """The tables of its signatures, which notebooks show."""
        return model_html("LoadedModel", self.path, self.tags, self.signatures)
