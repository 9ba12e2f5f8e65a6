"""LoadedModel: a SavedModel of TF2, with its functions, signatures and variables.

Source: TensorFlow python/saved_model/load.py.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from opkernel.device.permissions import Permissions
from opkernel.errors import DataLossError, OpError
from opkernel.interop.loaded_function import LoadedConcreteFunction
from opkernel.interop.loaded_objects import LoadedList, LoadedObject
from opkernel.interop.object_signature import object_signature
from opkernel.interop.saved_objects import SavedObjects
from opkernel.interop.signature import Signature, SignatureMap
from opkernel.proto import MetaGraphDef
from opkernel.training import Variable

if TYPE_CHECKING:
    from opkernel.interop.saved_model.saved_model_files import SavedModelFiles


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
        self._objects = SavedObjects(files, meta_graph, permissions, jit)
        kind = meta_graph.object_graph_def.nodes[0].user_object.identifier or "model"
        super().__init__(self._objects, 0, kind)
        self._objects.root = self
        self.path = files.directory
        self.meta_graph = meta_graph
        self.tags = sorted(meta_graph.meta_info_def.tags)
        self.permissions = self._objects.permissions

    @property
    def saved_objects(self) -> SavedObjects:
        """What makes its objects."""
        return self._objects

    @cached_property
    def signatures(self) -> SignatureMap:
        """The computations with named inputs and outputs."""
        children = self._objects.children(0)
        if "signatures" not in children:
            return SignatureMap({})
        return SignatureMap(
            {
                name: self._signature(name, number)
                for name, number in self._objects.children(children["signatures"]).items()
            }
        )

    @property
    def variables(self) -> list[Variable]:
        """The variables: those that the model lists, if it lists nothing else, or all that were saved."""
        listed = self._listed("variables")
        return self._objects.variables if listed is None else listed

    @property
    def trainable_variables(self) -> list[Variable]:
        """The variables that training changes."""
        listed = self._listed("trainable_variables")
        if listed is not None:
            return listed
        return [variable for variable in self._objects.variables if variable.trainable]

    @property
    def assets(self) -> dict[str, str]:
        """The paths of the files that the graphs read, by the names of the tensors that give them."""
        return self._objects.files.assets(self.meta_graph)

    def _listed(self, name: str) -> list[Variable] | None:
        number = self._objects.children(0).get(name)
        listed = None if number is None else self._objects.get(number)
        if not isinstance(listed, LoadedList) or not all(isinstance(v, Variable) for v in listed):
            return None
        return [*listed]

    def _signature(self, name: str, number: int) -> Signature:
        function = self._objects.get(number)
        if not isinstance(function, LoadedConcreteFunction):
            raise DataLossError(f"{self.path} is damaged: signature {name!r} is no function")
        keywords = [*self._objects.nodes[number].bare_concrete_function.argument_keywords]
        definition = self.meta_graph.signature_def[name]
        try:
            return object_signature(name, function, keywords, definition)
        except OpError as error:
            error.add_context(f"In {self._objects.files.path}")
            raise

    def __repr__(self) -> str:
        names = ", ".join(self.signatures) or "none"
        return f"<opkernel.LoadedModel {self.path!r}, tags {self.tags}, signatures: {names}>"
