"""Resources by container, type and name."""

import contextlib
import gc
import threading
import time
from collections.abc import Callable

import pytest

from opkernel.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InternalError,
    NotFoundError,
    UnknownError,
)
from opkernel.kernel import ResourceBase, ResourceMgr, ScopedStepContainer
from opkernel.opdef import DeviceName

WAIT_S = 300.0


class Resource(ResourceBase):
    def __init__(self, label: str, ended: list[str] | None = None) -> None:
        self.label = label
        self.ended = ended

    def debug_string(self) -> str:
        return f"R/{self.label}"

    def on_destroy(self) -> None:
        if self.ended is not None:
            self.ended.append(self.label)


class Other(ResourceBase):
    pass


class Derived(Resource):
    pass


@pytest.fixture
def manager() -> ResourceMgr:
    return ResourceMgr()


def label_of(manager: ResourceMgr, container: str, name: str) -> str:
    with manager.lookup(container, name, Resource) as found:
        return found.label


def together(work: Callable[[], object], times: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)


def test_create_lookup_delete(manager: ResourceMgr) -> None:
    resource = Resource("cat")
    manager.create("foo", "bar", resource)
    assert resource.ref_count_is_one
    with manager.lookup("foo", "bar", Resource) as found:
        assert found is resource
        assert resource.ref_count == 2
    assert resource.ref_count_is_one
    with pytest.raises(AlreadyExistsError, match="Resource foo/bar/Resource"):
        manager.create("foo", "bar", Resource("kitty"))
    assert label_of(manager, "foo", "bar") == "cat"
    manager.delete("foo", "bar", Resource)
    with pytest.raises(NotFoundError, match=r"^Resource foo/bar/Resource does not exist\.$"):
        manager.lookup("foo", "bar", Resource)
    with pytest.raises(NotFoundError, match=r"^Resource foo/bar/Resource does not exist\.$"):
        manager.delete("foo", "bar", Resource)


def test_an_unknown_container(manager: ResourceMgr) -> None:
    with pytest.raises(NotFoundError) as caught:
        manager.lookup("zoo", "bar", Resource)
    assert caught.value.message == (
        "Container zoo does not exist. (Could not find resource: zoo/bar)"
    )
    with pytest.raises(NotFoundError, match=r"^Container zoo does not exist\.$"):
        manager.delete("zoo", "bar", Resource)


def test_each_type_has_its_names(manager: ResourceMgr) -> None:
    manager.create("foo", "bar", Resource("cat"))
    manager.create("foo", "bar", Other())
    manager.delete("foo", "bar", Resource)
    manager.lookup("foo", "bar", Other).unref()
    with pytest.raises(NotFoundError, match="foo/bar/Resource"):
        manager.lookup("foo", "bar", Resource)


def test_a_resource_is_found_by_the_class_that_it_was_created_under(manager: ResourceMgr) -> None:
    manager.create("foo", "bar", Derived("cat"))
    with pytest.raises(NotFoundError, match="foo/bar/Resource"):
        manager.lookup("foo", "bar", Resource)
    manager.create("foo", "base", Derived("kitty"), resource_type=Resource)
    assert label_of(manager, "foo", "base") == "kitty"


def test_classes_of_one_name_are_different_types(manager: ResourceMgr) -> None:
    def define() -> type[ResourceBase]:
        class Cell(ResourceBase):
            pass

        return Cell

    first, second = define(), define()
    manager.create("foo", "bar", first())
    with pytest.raises(NotFoundError, match="Cell"):
        manager.lookup("foo", "bar", second)
    manager.create("foo", "bar", second())


def test_cleanup_ends_what_the_container_owns(manager: ResourceMgr) -> None:
    ended: list[str] = []
    manager.create("foo", "a", Resource("a", ended))
    manager.create("foo", "b", Resource("b", ended))
    manager.create("bar", "c", Resource("c", ended))
    held = manager.lookup("foo", "b", Resource)
    manager.cleanup("foo")
    assert ended == ["a"]
    held.unref()
    assert ended == ["a", "b"]
    with pytest.raises(NotFoundError, match="Container foo does not exist"):
        manager.lookup("foo", "a", Resource)
    manager.cleanup("foo")
    manager.cleanup("zoo")
    assert label_of(manager, "bar", "c") == "c"
    manager.clear()
    assert ended == ["a", "b", "c"]


def test_a_resource_that_could_not_be_created_ends(manager: ResourceMgr) -> None:
    ended: list[str] = []
    manager.create("foo", "bar", Resource("cat"))
    with pytest.raises(AlreadyExistsError):
        manager.create("foo", "bar", Resource("kitty", ended))
    assert ended == ["kitty"]


def test_a_resource_may_use_the_manager_when_it_ends(manager: ResourceMgr) -> None:
    class Nest(ResourceBase):
        def on_destroy(self) -> None:
            manager.delete("foo", "egg", Resource)

    manager.create("foo", "egg", Resource("egg"))
    manager.create("foo", "nest", Nest())
    manager.delete("foo", "nest", Nest)
    with pytest.raises(NotFoundError):
        manager.lookup("foo", "egg", Resource)


class TestUnowned:
    def test_is_found_while_it_lives(self, manager: ResourceMgr) -> None:
        resource = Resource("cat")
        manager.create_unowned("foo", "bar", resource)
        assert resource.ref_count_is_one
        assert label_of(manager, "foo", "bar") == "cat"
        with pytest.raises(AlreadyExistsError):
            manager.create_unowned("foo", "bar", Resource("kitty"))
        resource.unref()
        with pytest.raises(NotFoundError, match="Resource foo/bar/Resource does not exist"):
            manager.lookup("foo", "bar", Resource)
        with pytest.raises(NotFoundError, match="Resource foo/bar/Resource does not exist"):
            manager.delete("foo", "bar", Resource)

    def test_that_was_collected_is_gone(self, manager: ResourceMgr) -> None:
        resource = Resource("cat")
        manager.create_unowned("foo", "bar", resource)
        del resource
        gc.collect()
        with pytest.raises(NotFoundError):
            manager.lookup("foo", "bar", Resource)
        assert manager.debug_string() == ""

    def test_that_was_collected_takes_no_room(self, manager: ResourceMgr) -> None:
        for number in range(100):
            manager.create_unowned("foo", f"bar{number}", Resource("cat"))
        gc.collect()
        manager.create("foo", "bar", Resource("kitty"))
        assert len(manager._containers["foo"]) == 1

    def test_leaves_its_name_free_when_it_is_gone(self, manager: ResourceMgr) -> None:
        resource = Resource("cat")
        manager.create_unowned("foo", "bar", resource)
        resource.unref()
        manager.create("foo", "bar", Resource("kitty"))
        assert label_of(manager, "foo", "bar") == "kitty"

    def test_cannot_be_deleted(self, manager: ResourceMgr) -> None:
        resource = Resource("cat")
        manager.create_unowned("foo", "bar", resource)
        with pytest.raises(
            InternalError, match="Cannot delete an unowned Resource foo/bar/Resource"
        ):
            manager.delete("foo", "bar", Resource)
        manager.create("foo", "bar", Resource("kitty"))
        assert resource.ref_count_is_one


class TestLookupOrCreate:
    def test_creates_only_what_is_not_there(self, manager: ResourceMgr) -> None:
        created: list[str] = []

        def creator() -> Resource:
            created.append("cat")
            return Resource("cat")

        with manager.lookup_or_create("foo", "bar", Resource, creator) as first:
            assert first.ref_count == 2
            with manager.lookup_or_create("foo", "bar", Resource, creator) as second:
                assert second is first
        assert created == ["cat"]
        assert first.ref_count_is_one

    def test_creates_for_each_type(self, manager: ResourceMgr) -> None:
        with (
            manager.lookup_or_create("foo", "bar", Resource, lambda: Resource("cat")) as one,
            manager.lookup_or_create("foo", "bar", Other, Other) as other,
        ):
            assert isinstance(one, Resource)
            assert isinstance(other, Other)

    def test_passes_on_the_error_of_the_creator(self, manager: ResourceMgr) -> None:
        def fail() -> Resource:
            raise UnknownError("bad")

        with pytest.raises(UnknownError, match="bad"):
            manager.lookup_or_create("foo", "bar", Resource, fail)
        manager.lookup_or_create("foo", "bar", Resource, lambda: Resource("cat")).unref()

    def test_creates_once_for_many_threads(self, manager: ResourceMgr) -> None:
        created: list[int] = []
        found: list[Resource] = []

        def creator() -> Resource:
            time.sleep(0.02)
            created.append(1)
            return Resource("cat")

        together(
            lambda: found.append(manager.lookup_or_create("foo", "bar", Resource, creator)), 16
        )
        assert created == [1]
        assert len(found) == 16
        assert len(set(map(id, found))) == 1
        assert found[0].ref_count == 17

    def test_does_not_hold_up_other_names(self, manager: ResourceMgr) -> None:
        def creator() -> Resource:
            done = threading.Event()

            def work() -> None:
                manager.create("foo", "other", Resource("other"))
                done.set()

            threading.Thread(target=work).start()
            assert done.wait(WAIT_S)
            return Resource(label_of(manager, "foo", "other"))

        with manager.lookup_or_create("foo", "bar", Resource, creator) as found:
            assert found.label == "other"

    def test_takes_what_was_created_meanwhile(self, manager: ResourceMgr) -> None:
        ended: list[str] = []

        def creator() -> Resource:
            manager.create("foo", "bar", Resource("faster"))
            return Resource("slower", ended)

        with manager.lookup_or_create("foo", "bar", Resource, creator) as found:
            assert found.label == "faster"
        assert ended == ["slower"]

    def test_whose_creator_asks_for_itself_fails(self, manager: ResourceMgr) -> None:
        def creator() -> Resource:
            return manager.lookup_or_create("foo", "bar", Resource, creator)

        with pytest.raises(InternalError, match="asks for what it is to make"):
            manager.lookup_or_create("foo", "bar", Resource, creator)


def test_lookup_many(manager: ResourceMgr) -> None:
    manager.create("foo", "a", Resource("a"))
    manager.create("bar", "b", Resource("b"))
    found = manager.lookup_many([("foo", "a"), ("foo", "b"), ("bar", "b")], Resource)
    assert [one and one.label for one in found] == ["a", None, "b"]
    assert [one and one.ref_count for one in found] == [2, None, 2]


def test_finalize_refuses_new_resources(manager: ResourceMgr) -> None:
    finalized: list[str] = []

    class Warm(ResourceBase):
        def finalize(self) -> None:
            finalized.append("warm")

    manager.create("foo", "warm", Warm())
    manager.finalize()
    assert finalized == ["warm"]
    with pytest.raises(FailedPreconditionError, match="ResourceMgr is finalized"):
        manager.create("foo", "bar", Resource("cat"))
    with pytest.raises(FailedPreconditionError, match="ResourceMgr is finalized"):
        manager.lookup_or_create("foo", "bar", Resource, lambda: Resource("cat"))
    manager.lookup("foo", "warm", Warm).unref()


def test_debug_string(manager: ResourceMgr) -> None:
    manager.create("foo", "bar", Resource("cat"))
    manager.create("foo", "bar", Other())
    assert manager.debug_string() == (
        f"{'foo':<20} | {'Other':<40} | {'bar':<40} | Other\n"
        f"{'foo':<20} | {'Resource':<40} | {'bar':<40} | R/cat"
    )


def test_the_default_container() -> None:
    assert ResourceMgr().default_container == "localhost"
    assert ResourceMgr("mine").default_container == "mine"


def test_what_a_resource_says_of_itself_unless_it_says_more() -> None:
    resource = Other()
    assert resource.debug_string() == "Other"
    assert resource.memory_used() == 0


class TestScopedStepContainer:
    def test_ends_what_was_created_in_it(self, manager: ResourceMgr) -> None:
        ended: list[str] = []
        with ScopedStepContainer(7, manager.cleanup) as container:
            assert container.step_id == 7
            assert container.name == "__per_step_7"
            container.create(manager, "a", Resource("a", ended))
            container.lookup(manager, "a", Resource).unref()
            container.lookup_or_create(manager, "b", Resource, lambda: Resource("b", ended)).unref()
            container.delete(manager, "a", Resource)
            assert ended == ["a"]
        assert ended == ["a", "b"]
        with pytest.raises(NotFoundError, match="Container __per_step_7 does not exist"):
            container.lookup(manager, "b", Resource)

    def test_with_a_prefix_has_a_name_of_its_own(self, manager: ResourceMgr) -> None:
        assert ScopedStepContainer(7, manager.cleanup, "eager").name == "__eager_per_step_7"

    def test_that_was_not_used_has_nothing_to_clean(self) -> None:
        cleaned: list[str] = []
        with ScopedStepContainer(7, cleaned.append):
            pass
        assert cleaned == []

    def test_whose_name_went_into_a_handle_is_cleaned(self) -> None:
        cleaned: list[str] = []
        container = ScopedStepContainer(7, cleaned.append)

        class Device:
            name = str(DeviceName(type="CPU", id=0))

        handle = container.make_resource_handle("a", Device(), Resource)
        assert (handle.container, handle.name) == ("__per_step_7", "a")
        container.clean_up()
        container.clean_up()
        assert cleaned == ["__per_step_7"]


def test_threads_that_create_look_up_and_delete_lose_nothing(manager: ResourceMgr) -> None:
    ended: list[str] = []
    created: list[str] = []

    def creator() -> Resource:
        created.append("r")
        return Resource("r", ended)

    def work() -> None:
        for number in range(100):
            name = f"r{number % 7}"
            manager.lookup_or_create("foo", name, Resource, creator).unref()
            with contextlib.suppress(NotFoundError):
                manager.delete("foo", name, Resource)

    together(work, 8)
    manager.clear()
    assert len(ended) == len(created)
