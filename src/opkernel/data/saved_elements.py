"""The methods of datasets that write elements to files, and read them from there.

Source: TensorFlow python/data/ops/save_op.py, load_op.py, snapshot_op.py.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Protocol, Self

from opkernel.checkpoint.atomic_files import write_whole
from opkernel.data.component_specs import DatasetSpec, Spec
from opkernel.data.structure import checked_function, flat_specs, int64_of, path_of
from opkernel.data.structured_function import StructuredFunction, call_op, graph_of
from opkernel.data.transformations import AUTOTUNE, Transformations
from opkernel.device.opened_files import read_whole
from opkernel.device.permissions import OWN_CODE
from opkernel.errors import NotFoundError, UnavailableError
from opkernel.messages import short_repr
from opkernel.ops.data.loaded_datasets import distributed_metadata
from opkernel.proto import DecodeError, StructuredValue
from opkernel.slots import Slot


class StructureCoder(Protocol):
    """What writes and reads element specs."""

    def element_spec(self, value: StructuredValue) -> Any:
        """The spec of a message."""

    def encoded(self, value: Any) -> StructuredValue:
        """The message of a spec."""


_CODER: Slot[StructureCoder] = Slot("messages of structures")
"""Encodes and decodes element specs."""
_SPEC = "dataset_spec.pb"
_RETRY_S = 1.0


class SavedElements(Transformations):
    """The methods."""

    def save(
        self,
        path: Any,
        compression: str | None = None,
        shard_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Any:
        """Write the elements to files in a folder, for `load` and for TensorFlow.

        Outside of graphs this is done at once; in a graph, by the operation that it returns. What the folder has is
        replaced at the end.

        Args:
            path: The folder.
            compression: "GZIP", "SNAPPY", or None.
            shard_func: Gives an int64 for an element: the shard that it is written to. There is one shard if None.
            name: Ignored.

        Raises:
            InvalidArgumentError: there is no such compression, or the function gives something else.
            TypeError: elements have parts that cannot be saved.
        """
        shards = checked_function((lambda *_: 0) if shard_func is None else shard_func)
        function = self._function(lambda *parts: int64_of(shards(*parts)))
        folder = path_of(path)
        graph = graph_of(self.variant_tensor)
        spec = _CODER.get().encoded(self.element_spec).SerializeToString()
        if graph is not None:
            _write_spec(folder, spec)
        made = call_op(
            "SaveDataset",
            {"shard_func": function},
            input_dataset=self.variant_tensor,
            path=folder,
            shard_func_other_args=function.captured(graph),
            compression=_compression(compression),
            use_shard_func=shard_func is not None,
        )
        if graph is None:
            _write_spec(folder, spec)
        return made

    def snapshot(
        self,
        path: Any,
        compression: str | None = "AUTO",
        reader_func: Callable[[Any], Any] | None = None,
        shard_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Self:
        """The same elements, which the first whole pass writes to a folder; later passes read them there.

        Args:
            path: The folder, which several pipelines may share.
            compression: "GZIP", "SNAPPY" or None; AUTO is Snappy.
            reader_func: As for `load`.
            shard_func: Gives an int64 for an element: the shard that it is written to. Elements go to as many shards as
                there are processors, in turn, if None.
            name: Ignored.

        Raises:
            TypeError: the function gives something else than an integer.
        """
        if shard_func is None:
            shards, count = self.enumerate(), os.cpu_count() or 1
            made = shards.snapshot(path, compression, reader_func, lambda index, _: index % count)
            return made.map(lambda _, element: element)
        function = checked_function(shard_func)
        choose = self._function(lambda *parts: int64_of(function(*parts)))
        graph = graph_of(self.variant_tensor)
        reader = _reader(reader_func, self.element_spec, type(self).make, graph)
        return self._with(
            "SnapshotDatasetV2",
            {"reader_func": reader, "shard_func": choose},
            captured="",
            path=path_of(path),
            reader_func_other_args=reader.captured(graph),
            shard_func_other_args=choose.captured(graph),
            compression=_compression(compression),
        )

    @classmethod
    def load(
        cls,
        path: Any,
        element_spec: Any = None,
        compression: str | None = None,
        reader_func: Callable[[Any], Any] | None = None,
        wait: bool = False,
        name: str | None = None,
    ) -> Self:
        """The elements that `save`, or TensorFlow's, has written to a folder.

        Args:
            path: The folder.
            element_spec: The spec of the elements; as it was saved if None.
            compression: How the files are compressed, as it was given to `save`.
            reader_func: Makes a dataset of the elements from the dataset of the shards, which are datasets. One element
                of each shard comes in turn if None.
            wait: Whether to wait until the folder is there and complete.
            name: Ignored.

        Raises:
            NotFoundError: there is no saved dataset.
            DataLossError: it is damaged, or was not saved to its end.
        """
        folder = os.fsdecode(path_of(path))
        while True:
            try:
                return cls._loaded(folder, element_spec, compression, reader_func)
            except (NotFoundError, UnavailableError):
                if not wait:
                    raise
                time.sleep(_RETRY_S)

    @classmethod
    def _loaded(
        cls,
        folder: str,
        element_spec: Any,
        compression: str | None,
        reader_func: Callable[[Any], Any] | None,
    ) -> Self:
        spec = _saved_spec(folder) if element_spec is None else element_spec
        for one in flat_specs(spec):
            if not isinstance(one, Spec):
                raise TypeError(f"`element_spec` has specs of components, not {short_repr(one)}")
        function = _reader(reader_func, spec, cls.make)
        variant = call_op(
            "LoadDataset",
            {"reader_func": function},
            path=folder,
            reader_func_other_args=function.captured(None),
            compression=_compression(compression),
            spec=spec,
        )
        made: Self = cls.make(variant, spec)
        return made


def _reader(
    function: Callable[[Any], Any] | None, spec: Any, make: Any, graph: Any = None
) -> StructuredFunction:
    """The function that makes a dataset of elements from a dataset of shards."""

    def in_turn(datasets: Any) -> Any:
        return datasets.interleave(lambda one: one, os.cpu_count() or 1, 1, AUTOTUNE)

    return StructuredFunction(
        in_turn if function is None else function, DatasetSpec(DatasetSpec(spec)), graph, make
    )


def _compression(given: Any) -> str:
    if given is not None and not isinstance(given, str):
        raise TypeError(f"The name of a compression is needed, not {short_repr(given)}")
    return given or ""


def _write_spec(folder: Any, content: bytes) -> None:
    place = os.fsdecode(folder)
    os.makedirs(place, exist_ok=True)
    write_whole(os.path.join(place, _SPEC), content)


def _saved_spec(folder: str) -> Any:
    """The spec of the elements of a folder.

    Raises:
        NotFoundError: it has none.
    """
    path = os.path.join(folder, _SPEC)
    distributed = distributed_metadata(OWN_CODE, folder)
    content = read_whole(OWN_CODE, path) if distributed is None else distributed.element_spec
    try:
        return _CODER.get().element_spec(StructuredValue.FromString(content))
    except DecodeError as error:
        raise NotFoundError(f"{path!r} is no element_spec of a saved dataset") from error
