import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from opkernel.errors import (
    AlreadyExistsError,
    Code,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from opkernel.opdef import (
    SYSTEM_OPS,
    OpDefBuilder,
    OpListOpRegistry,
    OpRegistrationData,
    OpRegistry,
    global_op_registry,
    register_op,
    unknown_shape,
)
from opkernel.proto import OpDef, OpList


@pytest.fixture
def registry():
    return OpRegistry()


def declare(registry, name, **options):
    return register_op(name, shape_fn=unknown_shape, registry=registry, **options)


def names(op_list):
    return [op.name for op in op_list.op]


def test_look_up(registry):
    registry.register(OpDefBuilder("Foo").attr("N: int = 3").set_shape_fn(unknown_shape))
    registry.register(OpRegistrationData(OpDef(name="Bar")))
    registry.register(lambda: OpRegistrationData(OpDef(name="Baz")))
    found = registry.look_up("Foo")
    assert found.op_def.attr[0].default_value.i == 3
    assert found.shape_inference_fn is unknown_shape
    assert registry.look_up("Foo") is found
    assert registry.look_up_op_def("Bar").name == "Bar"
    assert registry.has("Baz")
    assert not registry.has("Qux")


def test_an_unknown_op(registry):
    with pytest.raises(NotFoundError, match="Op type not registered 'Nope' in binary running on"):
        registry.look_up("Nope")


def test_export_is_sorted_and_hides_internal_ops_on_demand(registry):
    for name in ("B", "_Hidden"):
        registry.register(OpDefBuilder(name))
    declare(registry, "A")
    assert names(registry.export()) == ["A", "B"]
    assert names(registry.export(include_internal=True)) == ["A", "B", "_Hidden"]
    assert [op.name for op in registry.get_registered_ops()] == ["A", "B", "_Hidden"]
    assert [data.op_def.name for data in registry.get_op_registration_data()] == [
        "A",
        "B",
        "_Hidden",
    ]
    assert registry.debug_string() == "Op<name=A; signature= -> >\nOp<name=B; signature= -> >\n"


# -- deferring ------------------------------------------------------------------------------------


def test_factories_run_at_the_first_look_up(registry):
    ran = []

    def factory():
        ran.append(1)
        return OpRegistrationData(OpDef(name="Foo"))

    registry.register(factory)
    assert not ran
    registry.look_up("Foo")
    registry.look_up("Foo")
    assert len(ran) == 1
    registry.register(OpDefBuilder("Later"))  # at once, from now on
    with pytest.raises(AlreadyExistsError):
        registry.register(OpDefBuilder("Later"))


def test_deferring_again(registry):
    registry.process_registrations()
    registry.defer_registrations()
    registry.register(OpDefBuilder("Foo"))
    registry.clear_deferred_registrations()
    registry.register(OpDefBuilder("Bar"))
    assert names(registry.export()) == ["Bar"]


def test_a_failing_registration_drops_those_after_it(registry):
    registry.register(OpDefBuilder("First"))
    registry.register(OpDefBuilder("Bad").attr("a:"))
    registry.register(OpDefBuilder("Last"))
    with pytest.raises(InvalidArgumentError, match="Trouble parsing type string"):
        registry.process_registrations()
    assert names(registry.export()) == ["First"]


@pytest.mark.parametrize(
    ("builder", "error", "message"),
    [
        (OpDefBuilder("foo"), InvalidArgumentError, "Invalid name: foo"),
        (OpDefBuilder("Foo").attr("a: int").attr("a: int"), InvalidArgumentError, "Duplicate name"),
        (OpDefBuilder("Taken"), AlreadyExistsError, "Op with name Taken"),
    ],
)
def test_what_is_refused(registry, builder, error, message):
    registry.register(OpDefBuilder("Taken"))
    registry.process_registrations()
    with pytest.raises(error, match=message):
        registry.register(builder)


# -- watcher and validator ------------------------------------------------------------------------


def test_the_watcher_sees_every_op_and_decides(registry):
    seen = []

    def swallow(error, op_def):
        seen.append((op_def.name, error and type(error)))

    registry.set_watcher(swallow)
    registry.register(OpDefBuilder("A"))
    registry.register(OpDefBuilder("A"))
    registry.process_registrations()
    declare(registry, "B")
    registry.look_up("B")
    assert seen == [("A", None), ("A", AlreadyExistsError), ("B", None)]


def test_the_watcher_knows_the_name_of_an_op_whose_specs_are_wrong(registry):
    seen = []

    def note(error, op_def):
        seen.append((op_def.name, error and error.code))
        return error if op_def.name == "Refused" else None

    registry.set_watcher(note)
    registry.process_registrations()
    registry.register(OpDefBuilder("Built").input("x: floaty"))
    declare(registry, "Declared", inputs=["x float"])
    with pytest.raises(InvalidArgumentError, match="unknown attr 'floaty'"):
        declare(registry, "Refused", inputs=["x: floaty"])
    assert seen == [(name, Code.INVALID_ARGUMENT) for name in ("Built", "Declared", "Refused")]
    assert not any(registry.knows(name) for name, _ in seen)


def test_the_watcher_may_refuse_by_an_error_of_its_own(registry):
    registry.set_watcher(lambda error, op_def: FailedPreconditionError(f"no {op_def.name}"))
    registry.register(OpDefBuilder("A"))
    with pytest.raises(FailedPreconditionError, match="no A"):
        registry.process_registrations()


def test_an_op_that_the_watcher_refuses_is_not_there_afterwards(registry):
    def refuse(error, op_def):
        is_deprecated = op_def.HasField("deprecation")
        return FailedPreconditionError(f"no {op_def.name}") if is_deprecated else error

    registry.set_watcher(refuse)
    with pytest.raises(FailedPreconditionError, match="no Old"):
        declare(registry, "Old", deprecated=(1, "use New"))
    assert not registry.has("Old")
    with pytest.raises(FailedPreconditionError, match="no Older"):
        registry.register(OpDefBuilder("Older").deprecated(1, "use New"))
    assert not registry.has("Older")
    registry.register(OpDefBuilder("New"))
    assert registry.look_up("New").op_def.name == "New"


def test_a_second_watcher_needs_the_first_to_go(registry):
    registry.set_watcher(lambda error, op_def: error)
    with pytest.raises(AlreadyExistsError, match="over-write a valid watcher"):
        registry.set_watcher(lambda error, op_def: error)
    registry.set_watcher(None)
    registry.set_watcher(lambda error, op_def: error)


def test_the_validator_runs_once_at_the_first_look_up(registry):
    seen: list[OpRegistry] = []
    registry.register_validator(seen.append)
    registry.register(OpDefBuilder("A"))
    registry.look_up("A")
    registry.look_up("A")
    assert seen == [registry]


def test_the_validator_may_refuse(registry):
    def refuse(_):
        raise FailedPreconditionError("inconsistent")

    registry.register_validator(refuse)
    registry.register(OpDefBuilder("A"))
    with pytest.raises(FailedPreconditionError, match="inconsistent"):
        registry.look_up("A")


def test_a_selection_holds_what_was_asked_for_and_system_ops():
    selected = global_op_registry().select(["MatMul", "Relu"])
    names = {op.name for op in selected.get_registered_ops()}
    assert names >= {"MatMul", "Relu", "NoOp", "_Arg", "_Retval", "_Send", "_Recv"}
    assert "Add" not in names
    with pytest.raises(NotFoundError, match="'Add'"):
        selected.look_up("Add")
    with pytest.raises(NotFoundError, match="'Nope'"):
        global_op_registry().select(["Nope"])


def test_a_selection_holds_ops_registered_as_the_systems_own(registry):
    for name, system in (("Needed", False), ("Dropped", False), ("OfTheSystem", True)):
        declare(registry, name, system=system)
    for name in SYSTEM_OPS:
        declare(registry, name)
    selected = registry.select(["Needed"])
    assert set(selected.names()) == {"Needed", "OfTheSystem", *SYSTEM_OPS}
    assert set(selected.select([]).names()) == {"OfTheSystem", *SYSTEM_OPS}


def test_the_systems_ops_of_the_catalogue_are_registered_as_such():
    look_up = global_op_registry().look_up
    neighbours = {"Send", "Recv", "_HostSend", "_HostRecv", "ControlTrigger", "RemoteCall"}
    assert {n for n in SYSTEM_OPS | neighbours if look_up(n).is_system} == SYSTEM_OPS


def test_unregistered_ops_are_gone_and_may_come_from_elsewhere(registry):
    declare(registry, "Gone")
    registry.look_up("Gone")
    assert set(registry.owners()) == {"Gone"}
    registry.unregister("Gone")
    assert registry.names() == []
    with pytest.raises(NotFoundError):
        registry.look_up("Gone")
    with pytest.raises(NotFoundError):
        registry.unregister("Gone")
    registry.register(OpRegistrationData(OpDef(name="Gone")))
    assert registry.owners() == {}


# -- the loader -----------------------------------------------------------------------------------


def test_the_loader_is_asked_for_what_is_missing_only(registry):
    asked = []

    def load(name):
        asked.append(name)
        if name == "Lazy":
            declare(registry, "Lazy")
            declare(registry, "Neighbour")

    registry.set_loader(load)
    declare(registry, "Known")
    registry.look_up("Known")
    assert registry.look_up("Lazy").op_def.name == "Lazy"
    registry.look_up("Neighbour")
    with pytest.raises(NotFoundError):
        registry.look_up("Nope")
    assert asked == ["Lazy", "Nope"]


def test_the_loader_may_look_ops_up(registry):
    def load(name):
        declare(registry, "Inner")
        registry.look_up("Inner")
        declare(registry, name)

    registry.set_loader(load)
    assert registry.look_up("Outer").op_def.name == "Outer"


def test_what_the_loader_knows_gives_way_to_a_registration(registry):
    known = OpRegistrationData(OpDef(name="Known"))
    registry.set_loader({"Known": known}.get, names=lambda: ["Known"])
    assert registry.look_up("Known") is known
    assert registry.get_op_registration_data() == [known]
    declare(registry, "Known", inputs=["x: float"])
    assert [arg.name for arg in registry.look_up("Known").op_def.input_arg] == ["x"]
    assert [op.name for op in registry.get_registered_ops()] == ["Known"]


def test_what_the_loader_would_register_is_not_for_others(registry):
    registry.set_loader(lambda name: None, owner={"Taken": "some.module"}.get)
    with pytest.raises(AlreadyExistsError, match=r"Taken.*some\.module"):
        declare(registry, "Taken")
    declare(registry, "Free")


def test_other_threads_may_register_while_the_loader_runs(registry):
    """As when the module that is being imported waits for one that another thread imports."""
    is_loading, is_registered = threading.Event(), threading.Event()

    def load(name):
        is_loading.set()
        assert is_registered.wait(300)
        declare(registry, name)

    def register():
        assert is_loading.wait(300)
        declare(registry, "Other")
        registry.look_up("Other")
        is_registered.set()

    registry.set_loader(load)
    other = threading.Thread(target=register)
    other.start()
    assert registry.look_up("Lazy").op_def.name == "Lazy"
    other.join()


def test_many_threads(registry):
    count, num_threads = 200, 8
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def work(thread):
        for i in range(count):
            if i % num_threads == thread:
                declare(registry, f"Op{i}", attrs=["N: int >= 1 = 1"], inputs=["a: N * float"])
        found = []
        for i in range(count):
            try:
                found.append(registry.look_up(f"Op{i}"))
            except NotFoundError:  # another thread is about to declare it
                found.append(None)
        return found

    try:
        with ThreadPoolExecutor(num_threads) as pool:
            results = list(pool.map(work, range(num_threads)))
    finally:
        sys.setswitchinterval(interval)
    assert len(registry.get_registered_ops()) == count
    for i in range(count):
        wanted = registry.look_up(f"Op{i}")
        assert all(result[i] in (None, wanted) for result in results)


# -- other registries -----------------------------------------------------------------------------


def test_the_global_registry():
    assert OpRegistry.global_() is global_op_registry()


def test_an_op_list_as_registry():
    ops = OpListOpRegistry(OpList(op=[OpDef(name="A", summary="first"), OpDef(name="B")]))
    assert ops.look_up("A").op_def.summary == "first"
    assert ops.look_up("A").shape_inference_fn is None
    assert ops.look_up_op_def("B").name == "B"
    with pytest.raises(NotFoundError, match="'C'"):
        ops.look_up("C")
