import json

from tests.cli.conftest import Command


def test_the_kernels_of_an_op(command: Command):
    (kernel,) = json.loads(command("kernels", "Shape", "--json").output)
    assert kernel == {
        "op": "Shape",
        "device": "CPU",
        "types": {"out_type": ["int32", "int64"]},
        "host_memory": ["output"],
        "label": "",
        "priority": 0,
    }


def test_a_table_without_the_columns_that_would_be_empty(command: Command):
    lines = command("kernels", "Conv2D").output.splitlines()
    assert lines[0] == "1 kernel"
    assert lines[1].split() == ["op", "device", "types"]
    assert lines[2].split()[:3] == ["Conv2D", "CPU", "T:"]


def test_all_kernels(command: Command):
    rows = json.loads(command("kernels", "--json").output)
    assert {"Conv2D", "MatMul", "Shape"} <= {row["op"] for row in rows}
    assert [row["op"] for row in rows] == sorted(row["op"] for row in rows)


def test_no_such_op(command: Command):
    done = command("kernels", "shape")
    assert done.exit_code == 1
    assert done.output.startswith(
        "Error: NOT_FOUND: there is no op 'shape'; perhaps you mean Shape"
    )
    assert command("kernels", "Nope").exit_code == 1


def test_ops_that_are_run_without_kernels(command: Command):
    done = command("kernels", "StatelessIf")
    assert done.exit_code == 0
    assert done.output == "StatelessIf has no kernel: it is part of how graphs are run.\n"
    assert json.loads(command("kernels", "StatelessIf", "--json").output) == []
