"""Jit: which engines compile parts of a program, as a session or the environment says.

Source: GlobalJitLevel in TensorFlow core/protobuf/config.proto.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.messages import perhaps
from opkernel.records import dataclass

if TYPE_CHECKING:
    from opkernel.graph.edit.jit_options import JitOptions

__all__ = ["GlobalJitLevel", "Jit", "choose_jit", "forbids_swaps"]

GlobalJitLevel = Literal["DEFAULT", "OFF", "ON_1", "ON_2"]
"""How eagerly clusters are formed: with OFF of marked nodes alone."""


@dataclass(frozen=True)
class Jit:
    """Which engines compile parts of a program; none by default.

    Attributes:
        options: How its clusters are formed and compiled.
        candidates: Engines that are tried while the program runs; it keeps the fastest.
    """

    options: JitOptions | None = None
    candidates: Sequence[JitOptions] = ()

    def __bool__(self) -> bool:
        return self.options is not None or bool(self.candidates)


def choose_jit(
    name: str = "",
    *,
    level: GlobalJitLevel = "DEFAULT",
    min_cluster_size: int | None = None,
    has_compile_nodes: bool = False,
) -> Jit:
    """The engines that a session asked for.

    Args:
        name: `off`, `auto`, or the name of an engine. Where empty, what OPKERNEL_JIT says; XLA where the level asks
            for clusters; else off.
        level: With OFF, marked nodes alone are compiled.
        min_cluster_size: Smaller clusters stay as they are.
        has_compile_nodes: Whether a node compiles a cluster, and another runs it.

    Raises:
        InvalidArgumentError: there is no such engine.
        UnimplementedError: what the engine needs is not installed.
    """
    name = name or os.environ.get("OPKERNEL_JIT", "") or ("xla" if level[:2] == "ON" else "off")
    if name == "off" or (name == "auto" and forbids_swaps()):
        return Jit()
    from opkernel.graph.edit.jit_options import JitOptions
    from opkernel.runtime.engines import compile_and_run, launch  # noqa: F401  # they register kernels
    from opkernel.runtime.engines.engine import engine_named, registered_engines

    names = registered_engines()
    if name != "auto" and name not in names:
        known = ["off", "auto", *names]
        raise InvalidArgumentError(
            f"jit must be one of {', '.join(known)}, not {name!r}{perhaps(name, known)}"
        )
    if name != "auto":
        engine = engine_named(name)
        engine.check_installed()
        return Jit(
            JitOptions(
                engine, level != "OFF", min_cluster_size, has_compile_nodes=has_compile_nodes
            )
        )
    candidates = []
    for one in names:
        engine = engine_named(one)
        try:
            engine.check_installed()
        except UnimplementedError:
            continue
        candidates.append(JitOptions(engine, True, min_cluster_size, mode="async"))
    return Jit(candidates=tuple(candidates))


def forbids_swaps() -> bool:
    """Whether results must be the same at each step and in each process (OPKERNEL_DETERMINISTIC=1)."""
    return os.environ.get("OPKERNEL_DETERMINISTIC", "0") not in ("", "0")
