"""Names, devices, control dependencies and colocation of new operations, as TensorFlow has them."""

import threading
from contextlib import suppress

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph, Operation, Tensor


def noop(graph: Graph, name: str | None = None) -> Operation:
    return graph.create_op("NoOp", name=name)


def const(graph: Graph, name: str) -> Tensor:
    value = np.float32(1)
    return graph.create_op("Const", name=name, attrs={"value": value, "dtype": "float"}).outputs[0]


def identity(graph: Graph, x: Tensor, name: str) -> Tensor:
    return graph.create_op("Identity", [x], name=name).outputs[0]


def devices(graph: Graph) -> dict[str, str]:
    return {op.name: op.device for op in graph.get_operations()}


def inputs(graph: Graph) -> dict[str, list[str]]:
    return {node.name: list(node.input) for node in graph.as_graph_def().node}


class TestNames:
    def test_taken_names_get_a_number_whatever_their_case(self, graph: Graph) -> None:
        asked = [None, "a", "a", "A", "a_1", "a", "b/c", "b"]
        made = [noop(graph, name).name for name in asked]
        assert made == ["NoOp", "a", "a_1", "A_2", "a_1_1", "a_3", "b/c", "b"]

    def test_a_slash_at_the_end_takes_the_name_as_it_stands(self, graph: Graph) -> None:
        assert noop(graph, "x/y/").name == "x/y"
        with pytest.raises(InvalidArgumentError, match="Duplicate node name in graph: 'x/y'"):
            noop(graph, "x/y/")

    def test_scopes_nest_and_are_unique(self, graph: Graph) -> None:
        with graph.name_scope("s") as outer:
            noop(graph, "s")
            with graph.name_scope("t") as inner:
                noop(graph, "_under")
                with graph.name_scope(None) as none:
                    noop(graph, "top")
        with graph.name_scope("s") as second, graph.name_scope("s/") as again:
            noop(graph, "s")
        assert (outer, inner, none, second, again) == ("s/", "s/t/", "", "s_1/", "s/")
        assert list(devices(graph)) == ["s/s", "s/t/_under", "top", "s/s_1"]

    def test_a_name_that_is_only_looked_at_stays_free(self, graph: Graph) -> None:
        assert graph.unique_name("a", mark_as_used=False) == "a"
        assert graph.unique_name("a") == "a"
        assert graph.unique_name("a") == "a_1"

    @pytest.mark.parametrize("name", ["_x", "a:b", "/a", "", "é", "a b"])
    def test_invalid_names_are_refused(self, graph: Graph, name: str) -> None:
        with pytest.raises(InvalidArgumentError, match="not a valid"):
            noop(graph, name or "/")
        with pytest.raises(InvalidArgumentError, match="not a valid"):
            graph.name_scope(name or "/")

    def test_each_thread_has_scopes_of_its_own(self, graph: Graph) -> None:
        made = []
        with graph.name_scope("here"):
            thread = threading.Thread(target=lambda: made.append(noop(graph, "there").name))
            thread.start()
            thread.join()
        assert made == ["there"]

    def test_threads_never_share_a_name(self, graph: Graph) -> None:
        threads = [
            threading.Thread(target=lambda: [noop(graph, "n") for _ in range(50)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({op.name for op in graph.get_operations()}) == 200


class TestDevices:
    def test_inner_scopes_override_parts_of_outer_ones(self, graph: Graph) -> None:
        with graph.device("/job:w"):
            noop(graph, "a")
            with graph.device("/gpu:1"):
                noop(graph, "b")
                with graph.device("/device:CPU:*"):
                    noop(graph, "c")
                with graph.device(None), graph.device("/task:3"):
                    noop(graph, "d")
                with graph.device("/job:v/task:1/gpu:0"):
                    noop(graph, "e")
        assert devices(graph) == {
            "a": "/job:w",
            "b": "/job:w/device:GPU:1",
            "c": "/job:w/device:CPU:1",
            "d": "/task:3",
            "e": "/job:v/task:1/device:GPU:0",
        }

    def test_a_function_may_choose(self, graph: Graph) -> None:
        with graph.device("/job:w"), graph.device(lambda op: "/cpu:7" if "x" in op.name else None):
            noop(graph, "x")
            noop(graph, "y")
        assert devices(graph) == {"x": "/job:w/device:CPU:7", "y": "/job:w"}

    def test_a_function_sees_what_the_scopes_within_it_say(self, graph: Graph) -> None:
        seen = []
        with (
            graph.device(lambda op: seen.append(op.device)),
            graph.device("/job:w"),
            graph.device(lambda op: f"{op.device}/cpu:7"),
        ):
            noop(graph, "x")
        assert seen == ["/job:w/device:CPU:7"]

    def test_a_malformed_name_is_refused_at_once(self, graph: Graph) -> None:
        with pytest.raises(InvalidArgumentError, match="'/gpuu:0'"), graph.device("/gpuu:0"):
            pass


class TestControlDependencies:
    def test_what_follows_from_data_of_the_block_is_left_out(self, graph: Graph) -> None:
        c, d = const(graph, "c"), const(graph, "d")
        with graph.control_dependencies([c]):
            e = identity(graph, c, "e")
            f = identity(graph, d, "f")
            h = identity(graph, f, "h")
            with graph.control_dependencies([d.op, e]):
                i = noop(graph, "i")
                identity(graph, h, "j")
                identity(graph, d, "k")
                with graph.control_dependencies(None):
                    noop(graph, "l")
                with graph.control_dependencies([i, c]):
                    noop(graph, "m")
        assert inputs(graph) == {
            "c": [], "d": [], "e": ["c"], "f": ["d", "^c"], "h": ["f"], "i": ["^c", "^d", "^e"],
            "j": ["h", "^d", "^e"], "k": ["d", "^c", "^e"], "l": [], "m": ["^c", "^d", "^e", "^i"],
        }  # fmt: skip
        assert [op.name for op in c.op.control_outputs] == ["f", "i", "k", "m"]

    def test_operations_of_other_graphs_are_refused(self, graph: Graph, make_graph) -> None:
        other = noop(make_graph())
        with pytest.raises(InvalidArgumentError, match="not an element of this graph"):
            graph.control_dependencies([other])
        with pytest.raises(InvalidArgumentError, match="not a str"):
            graph.control_dependencies(["a"])


class TestColocation:
    def test_groups_and_devices_of_the_peers(self, graph: Graph) -> None:
        with graph.device("/gpu:0"):
            a = const(graph, "a")
        b = const(graph, "b")
        with graph.device("/cpu:3"), graph.colocate_with(a.op):
            x = identity(graph, b, "c2")
            with graph.device("/cpu:1"):
                identity(graph, b, "c3")
            with graph.colocate_with(b):
                identity(graph, b, "c4")
            with graph.colocate_with(b, ignore_existing=True):
                identity(graph, b, "c5")
            with graph.colocate_with(None, ignore_existing=True):
                identity(graph, b, "c6")
        with graph.colocate_with(x):
            identity(graph, b, "c7")
        found = {op.name: (op.device, op.colocation_groups()) for op in graph.get_operations()}
        gpu = "/device:GPU:0"
        assert found == {
            "a": (gpu, [b"loc:@a"]), "b": ("", [b"loc:@b"]), "c2": (gpu, [b"loc:@a"]),
            "c3": (gpu, [b"loc:@a"]), "c4": (gpu, [b"loc:@a", b"loc:@b"]), "c5": ("", [b"loc:@b"]),
            "c6": ("", [b"loc:@c6"]), "c7": (gpu, [b"loc:@a"]),
        }  # fmt: skip


class TestGradients:
    def test_nodes_name_the_op_whose_gradient_counts(self, graph: Graph) -> None:
        x = const(graph, "x")
        with graph.gradient_override_map({"Identity": "Mine"}):
            identity(graph, x, "mine")
            const(graph, "other")
            with graph.gradient_override_map({"Identity": "Inner", "NoOp": "Nothing"}):
                identity(graph, x, "inner")
                noop(graph, "n")
            identity(graph, x, "again")
        identity(graph, x, "after")
        named = {
            node.name: node.attr["_gradient_op_type"].s
            for node in graph.as_graph_def().node
            if "_gradient_op_type" in node.attr
        }
        assert named == {"mine": b"Mine", "inner": b"Inner", "n": b"Nothing", "again": b"Mine"}

    def test_an_error_in_a_block_ends_it(self, graph: Graph) -> None:
        with suppress(KeyError), graph.gradient_override_map({"NoOp": "Mine"}):
            raise KeyError
        assert "_gradient_op_type" not in noop(graph).node_def.attr
