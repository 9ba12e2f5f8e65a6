"""CompiledModel: what OpenVINO compiled of a model, in this process or an earlier one.

State: `_programs` has the compiled models of this process and, on disk, those of others. Models that count time are not among them.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from opkernel.device.intra_op import intra_op_threads
from opkernel.engines.openvino.library import core, openvino
from opkernel.engines.openvino.model_builder import translated
from opkernel.records import dataclass
from opkernel.runtime.engines.program_cache import Compilation, ProgramCache, content_key
from opkernel.types import Array

_HINTS = {"float32": "f32", "bfloat16": "bf16"}


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """A compiled model.

    Attributes:
        handle: OpenVINO's compiled model.
        held: What has the memory of its constants.
    """

    handle: Any
    held: object

    @classmethod
    def of(
        cls, model: Any, arrays: Sequence[Array], precision: str, counts_time: bool = False
    ) -> CompiledModel:
        """A model, compiled for this machine: results in float32, soon, on the threads that kernels may use.

        Args:
            model: OpenVINO's model.
            arrays: What constants of the model show the memory of.
            precision: The precision to compute in, where the processor can.
            counts_time: Whether its requests tell what operations took.

        Raises:
            InternalError: OpenVINO cannot compile it.
        """
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": _HINTS[precision],
            "EXECUTION_MODE_HINT": "ACCURACY",
            "INFERENCE_NUM_THREADS": intra_op_threads(),
            "PERF_COUNT": counts_time,
            "ENABLE_CPU_PINNING": False,  # a thread that may not move waits for whoever has its processor
        }
        compile = partial(cls._compiled, model, arrays, settings)
        try:
            key = None if counts_time else _key(model, settings)
            if key is None:
                return compile()
            how = Compilation(compile, partial(cls._loaded, settings), cls._content)
            return _programs.program(key, how)
        except RuntimeError as error:
            raise translated(error) from error

    @classmethod
    def _compiled(cls, model: Any, arrays: Sequence[Array], settings: Mapping[str, Any]) -> Self:
        return cls(core().compile_model(model, "CPU", settings), arrays)

    @classmethod
    def _loaded(cls, settings: Mapping[str, Any], content: memoryview) -> Self:
        ov = openvino()
        tensor = ov.Tensor(np.frombuffer(content, np.uint8), [len(content)], ov.Type.u8)
        return cls(core().import_model(tensor, "CPU", settings), tensor)

    def _content(self) -> bytes:
        content: io.BytesIO = self.handle.export_model()
        return content.getvalue()


_programs = ProgramCache[CompiledModel]("openvino", 2 << 30)


def _key(model: Any, settings: Mapping[str, Any]) -> str | None:
    """The name of a compiled model; None where there is no place to describe the model."""
    ov = openvino()
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.xml")
            ov.serialize(model, path, os.devnull)
            described = path.read_text(encoding="utf-8")
    except (OSError, RuntimeError):
        return None
    told = [f"{name} {value}" for name, value in settings.items()]
    return content_key([ov.__version__, *told, described], _constants(model))


def _constants(model: Any) -> Iterator[Array]:
    """The elements of a model's constants, in the order of its description."""
    for node in model.get_ordered_ops():
        if node.get_type_name() == "Constant":
            yield np.ascontiguousarray(node.data)
