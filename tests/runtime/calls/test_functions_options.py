"""Functions with options: of other libraries, executors, devices.

After TensorFlow's core/common_runtime/function_test.cc.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.graph.function_builders import (
    ADD_AND_MUL,
    X_TIMES_FOUR,
    X_TIMES_TWO,
    attr_value,
    define,
    graph_of,
    library_of,
)
from tests.runtime.function_kernels import (
    COUNTER,
    FLOAT,
    RUN,
    TIMES,
    X,
    run,
    runtime_of,
)

from opkernel.errors import (
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from opkernel.graph import FunctionLibraryDefinition
from opkernel.kernel import (
    InstantiateOptions,
)
from opkernel.proto import AttrValue
from opkernel.runtime import (
    LocalDevice,
    Session,
    canonicalize,
)
from opkernel.runtime.program.executors import register_executor


class TestLibraries:
    def test_functions_of_another_library(self):
        runtime = runtime_of()
        options = InstantiateOptions(lib_def=library_of(*TIMES))
        for _ in range(2):
            with pytest.raises(NotFoundError, match=r"Function XTimesTwo is not defined\."):
                runtime.instantiate("XTimesTwo", FLOAT)
            for name, factor in (("XTimesTwo", 2), ("XTimesFour", 4), ("XTimes16", 16)):
                (y,) = run(runtime, name, FLOAT, X, options=options)
                np.testing.assert_array_equal(y, X * factor)

    @pytest.mark.parametrize(
        "line",
        [
            "r = PartitionedCall[Tin={float}; Tout={float}; f=XTimesFour[T=float]](x)",
            "r = FunctionsTestMap[T=float; f=XTimesFour[T=float]](x)",
            "r = FunctionsTestMap[T=float; f=XTimesFour[T=float]; way='call'](x)",
        ],
    )
    def test_what_its_functions_call_later_is_looked_up_there_too(self, line):
        output = "output" if "Partitioned" in line else "y"
        mine = define("Mine(x: float) -> (z: float)", [line], z=f"r:{output}:0")
        runtime = runtime_of()
        options = InstantiateOptions(lib_def=library_of(mine, X_TIMES_TWO, X_TIMES_FOUR))
        assert run(runtime, "Mine", {}, np.float32(1), options=options) == [4]
        two = define("XTimesFour(x: T) -> (y: T)", X_TIMES_TWO_LINES, "T: type", y="y:z:0")
        options = InstantiateOptions(lib_def=library_of(mine, two))
        assert run(runtime, "Mine", {}, np.float32(1), options=options) == [2]


X_TIMES_TWO_LINES = ["y = Add[T=$T](x, x)"]


class TestExecutors:
    @pytest.mark.parametrize("name", ["", "DEFAULT", "DATAFLOW", "SINGLE_THREADED_EXECUTOR"])
    def test_are_chosen_by_option_or_attr(self, name):
        runtime = runtime_of(*TIMES)
        options = InstantiateOptions(executor_type=name)
        assert run(runtime, "XTimesTwo", FLOAT, np.float32(2), options=options) == [4]
        attrs = {**FLOAT, "_executor": AttrValue(s=name.encode())}
        assert run(runtime, "XTimesTwo", attrs, np.float32(2)) == [4]

    def test_one_may_be_registered(self):
        def dummy(args):
            raise InternalError("This is a dummy.")

        register_executor("FUNCTIONS_TEST_DUMMY", dummy)
        runtime, name = runtime_of(*TIMES), "FUNCTIONS_TEST_DUMMY"
        attrs = {**FLOAT, "_executor": AttrValue(s=b"UNKNOWN")}
        for given, options in (
            (FLOAT, InstantiateOptions(executor_type=name)),
            ({**FLOAT, "_executor": AttrValue(s=name.encode())}, InstantiateOptions()),
            (attrs, InstantiateOptions(executor_type=name)),
        ):
            with pytest.raises(InternalError, match=r"This is a dummy\."):
                run(runtime, "XTimesTwo", given, X, options=options)

    def test_unknown_ones_are_not_found(self):
        runtime = runtime_of(*TIMES)
        attrs = {**FLOAT, "_executor": AttrValue(s=b"UNKNOWN_EXECUTOR")}
        message = "No executor factory registered for the given executor type: UNKNOWN_EXECUTOR"
        with pytest.raises(NotFoundError, match=message):
            run(runtime, "XTimesTwo", attrs, X)
        options = InstantiateOptions(executor_type="UNKNOWN_EXECUTOR")
        with pytest.raises(NotFoundError, match=message):
            run(runtime, "XTimesTwo", FLOAT, X, options=options)

    @pytest.mark.parametrize("call", ["PartitionedCall", "StatefulPartitionedCall"])
    def test_of_calls_by_attr_are_an_attr_of_the_node(self, call):
        graph = graph_of(
            library_of(*TIMES),
            "x = Placeholder[dtype=float]()",
            f"y = {call}[Tin={{float}}; Tout={{float}}; f=XTimesTwo[T=float]; "
            "executor_type='Nope'](x)",
        )
        with pytest.raises(NotFoundError, match="executor type: Nope"):
            Session(graph).run("y:0", {"x:0": 1.0})

    @pytest.mark.parametrize(
        ("attrs", "message"),
        [
            ({"config": b"a", "config_proto": b"b"}, "Provided both 'config' and 'config_proto'"),
            ({"config_proto": b"\xff\xff"}, "Unable to parse config_proto string"),
        ],
    )
    def test_configurations_of_calls_are_checked(self, attrs, message):
        graph = graph_of(
            library_of(*TIMES),
            "x = Placeholder[dtype=float]()",
            "y = PartitionedCall[Tin={float}; Tout={float}; f=XTimesTwo[T=float]](x)",
        )
        for name, value in attrs.items():
            graph.get_operation_by_name("y").set_attr(name, AttrValue(s=value))
        with pytest.raises(InvalidArgumentError, match=message):
            Session(graph).run("y:0", {"x:0": 1.0})


class TestMultiDeviceFunctions:
    def test_run_like_all_others(self):
        options = InstantiateOptions(
            is_multi_device_function=True, input_devices=("/cpu:0",), output_devices=("",)
        )
        assert run(runtime_of(ADD_AND_MUL), "AddAndMul", {}, np.float32(3), options=options) == [9]

    def test_need_devices_for_arguments_and_may_have_no_lists(self):
        lists = define("L(x: N * float) -> ()", attrs="N: int")
        ints = define("I() -> ()")
        ints.attr["experimental_ints_on_device"].b = True
        runtime = runtime_of(ADD_AND_MUL, lists, ints)
        two = {"N": attr_value("2")}
        multi_device = InstantiateOptions(is_multi_device_function=True)
        too_many = replace(multi_device, input_devices=("",), output_devices=("", ""))
        for name, attrs, options, error, message in (
            ("AddAndMul", {}, multi_device, InvalidArgumentError,
             "input_devices length = 0 number of arguments = 1"),
            ("AddAndMul", {}, too_many, InvalidArgumentError,
             "output_devices length = 2 number of outputs = 1"),
            ("L", two, multi_device, InvalidArgumentError,
             'an input named "x" that is a list of tensors'),
            ("I", {}, multi_device, UnimplementedError, "experimental_ints_on_device"),
        ):  # fmt: skip
            with pytest.raises(error, match=message):
                runtime.instantiate(name, attrs, options)


class TestTargets:
    def test_a_function_runs_on_the_device_that_is_named(self):
        devices = [LocalDevice("CPU", np, index) for index in range(2)]
        runtime = runtime_of(COUNTER, device=devices[0], devices=devices)
        handles = [
            runtime.instantiate("Counter", {}, InstantiateOptions(target=target))
            for target in ("", "/cpu:0", devices[0].name, "/device:CPU:1")
        ]
        assert handles[0] is handles[1] is handles[2]
        assert handles[3].runtime.device is devices[1]
        assert [runtime.run(RUN, handle, []) for handle in handles] == [[0], [1], [2], [0]]

    def test_other_devices_are_refused(self):
        runtime = runtime_of(COUNTER)
        with pytest.raises(
            InternalError,
            match="Currently don't support instantiating functions on device: "
            "/job:localhost/replica:0/task:0/device:CPU:7",
        ):
            runtime.instantiate("Counter", {}, InstantiateOptions(target="/cpu:7"))
        with pytest.raises(InvalidArgumentError, match="Could not parse nonsense"):
            runtime.instantiate("Counter", {}, InstantiateOptions(target="nonsense"))

    def test_remote_call(self):
        graph = graph_of(
            library_of(*TIMES),
            "target = Placeholder[dtype=string]()",
            "x = Placeholder[dtype=float]()",
            "y = RemoteCall[Tin={float}; Tout={float}; f=XTimesTwo[T=float]](target, x)",
        )
        with Session(graph) as session:
            for target in ("", "/cpu:0", "CPU:0", "/job:localhost/replica:0/task:0/device:CPU:0"):
                assert session.run("y:0", {"x:0": 3.0, "target:0": target}) == 6
            for refused, error, message in (
                ("/device:GPU:0", InternalError, "functions on device: /job:localhost/replica:0/"),
                ("nonsense", InvalidArgumentError, "Could not parse nonsense into a device"),
                (["", ""], InvalidArgumentError, "must be a scalar"),
            ):
                with pytest.raises(error, match=message):
                    session.run("y:0", {"x:0": 3.0, "target:0": refused})


def test_canonical_names_tell_options_apart():
    attrs = {"T": attr_value("float"), "_executor": AttrValue(s=b"A")}
    assert canonicalize("F", attrs) == "F[T=float,_executor=A]"
    library = FunctionLibraryDefinition()
    options = InstantiateOptions(
        target="/cpu:0", input_devices=("", "a b"), state_handle="s", executor_type="B",
        lib_def=library,
    )  # fmt: skip
    assert canonicalize("F", attrs, options) == (
        f"F[T=float,_executor=B,_input_dev0=,_input_dev1=a b,_lib_def={id(library)},"
        "_state_handle=s,_target=/cpu:0]"
    )
