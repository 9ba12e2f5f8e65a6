"""Jit: which engines compile parts of a program, as a session or the environment says.

Source: GlobalJitLevel in TensorFlow core/protobuf/config.proto.
"""

from __future__ import annotations

import os
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
        tries_all: Whether all installed engines are tried while the program runs, which keeps the fastest.
        min_cluster_size: Of those that are tried; None for what each says.
    """

    options: JitOptions | None = None
    tries_all: bool = False
    min_cluster_size: int | None = None

    def candidates(self) -> list[JitOptions]:
        """How clusters are formed for each engine that is installed; this imports the engines."""
        from opkernel.graph.edit.jit_options import JitOptions
        from opkernel.runtime.engines.engine import engine_named, registered_engines

        found = []
        for name in registered_engines():
            engine = engine_named(name)
            try:
                engine.check_installed()
            except UnimplementedError:
                continue
            found.append(JitOptions(engine, True, self.min_cluster_size, mode="async"))
        return found


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
    if name == "auto":
        return Jit(tries_all=True, min_cluster_size=min_cluster_size)
    from opkernel.graph.edit.jit_options import JitOptions  # few sessions have engines
    from opkernel.runtime.engines.engine import engine_named, registered_engines

    names = registered_engines()
    if name not in names:
        known = ["off", "auto", *names]
        raise InvalidArgumentError(
            f"jit must be one of {', '.join(known)}, not {name!r}{perhaps(name, known)}"
        )
    engine = engine_named(name)
    engine.check_installed()
    return Jit(
        JitOptions(engine, level != "OFF", min_cluster_size, has_compile_nodes=has_compile_nodes)
    )


def forbids_swaps() -> bool:
    """Whether results must be the same at each step and in each process (OPKERNEL_DETERMINISTIC=1)."""
    return os.environ.get("OPKERNEL_DETERMINISTIC", "0") not in ("", "0")
