"""How clusters are formed, where nobody says otherwise."""

from types import SimpleNamespace
from typing import Any

from opkernel.graph.edit.jit_options import JitOptions

COMPILER: Any = SimpleNamespace(name="test", min_cluster_size=4)


def test_the_compiler_says_how_small_a_cluster_may_be() -> None:
    assert JitOptions(COMPILER).smallest == 4
    assert JitOptions(COMPILER, min_cluster_size=2).smallest == 2
    assert JitOptions(COMPILER, min_cluster_size=0).smallest == 0


def test_clusters_of_all_sizes_are_formed_of_operations_that_nobody_has_marked() -> None:
    options = JitOptions(COMPILER)
    assert options.is_global
    assert options.max_cluster_size >= 2**31 - 1
    assert (options.mode, options.has_compile_nodes, options.outside) == ("lazy", False, {})
