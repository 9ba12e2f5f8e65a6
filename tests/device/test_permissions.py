"""Paths that graphs may and may not open."""

import os
import pickle
from pathlib import Path

import pytest

import opkernel
from opkernel.device.permissions import NO_PERMISSIONS, OWN_CODE
from opkernel.errors import InvalidArgumentError, PermissionDeniedError


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in ("data/in", "database", "out"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("data/a", "data/in/b", "database/c", "secret"):
        (tmp_path / file).write_text(file)
    (tmp_path / "data" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "data" / "up").symlink_to(tmp_path)
    (tmp_path / "linked").symlink_to(tmp_path / "data")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "is_allowed"),
    [
        ("data", True),
        ("data/a", True),
        ("data/in/b", True),
        ("data/not there", True),
        ("data/in/../a", True),
        ("linked/a", True),
        ("data/", True),
        ("database/c", False),
        ("secret", False),
        ("data/../secret", False),
        ("data/link", False),
        ("data/up/secret", False),
        ("data/up/data/a", True),
        ("data/in/../../secret", False),
        (".", False),
        ("/etc/passwd", False),
    ],
)
def test_what_may_be_read(tree: Path, path: str, is_allowed: bool) -> None:
    for allowed in (tree / "data", f"{tree}/data/", tree / "linked", tree / "data" / "in" / ".."):
        permissions = opkernel.Permissions(read=[allowed])
        given = os.path.join(tree, path)
        if is_allowed:
            assert permissions.check_read(given) == os.path.realpath(given)
            assert permissions.check_read(os.fsencode(given)) == os.path.realpath(given)
        else:
            with pytest.raises(PermissionDeniedError, match="--allow-read"):
                permissions.check_read(given)
        with pytest.raises(
            PermissionDeniedError, match=r"may not write this file.*Permissions\(write="
        ):
            permissions.check_write(given)
        with pytest.raises(PermissionDeniedError):
            NO_PERMISSIONS.check_read(given)
        assert OWN_CODE.check_read(given) == OWN_CODE.check_write(given)


def test_relative_paths(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    permissions = opkernel.Permissions(read="data", write=["out", "new"])
    monkeypatch.chdir("/")
    assert permissions.check_read(f"{tree}/data/a") == f"{tree}/data/a"
    assert permissions.check_write(f"{tree}/new") == f"{tree}/new"
    assert permissions.check_write(f"{tree}/out/x/y") == f"{tree}/out/x/y"
    more = permissions.reading(tree / "secret")
    assert more.check_read(tree.joinpath("secret").as_posix())
    assert permissions != more == opkernel.Permissions(more.read, more.write)
    with pytest.raises(PermissionDeniedError):
        permissions.check_read(f"{tree}/secret")


@pytest.mark.parametrize("path", ["", "a\0b", b""])
def test_no_paths(path: str) -> None:
    for permissions in (OWN_CODE, opkernel.Permissions(read=["/"])):
        with pytest.raises(InvalidArgumentError, match="not the path of a file"):
            permissions.check_read(path)


def test_the_whole_disk() -> None:
    assert opkernel.Permissions(read=["/"]).check_read("/etc/passwd") == os.path.realpath(
        "/etc/passwd"
    )


@pytest.mark.parametrize(
    ("name", "is_read", "is_written"),
    [
        ("ckpt-1", True, True),
        ("ckpt-1.index", True, True),
        ("ckpt-1.data-00000-of-00001", True, True),
        ("ckpt-1-00000-of-00002", True, True),
        ("ckpt-1.index.tempstate7", False, True),
        ("ckpt-1_temp/part-00000", False, True),
        ("ckpt-1_temp/part/deeper", False, False),
        ("ckpt-10", False, False),
        ("ckpt-1.indexes", False, False),
        ("ckpt-1.data-x-of-1", False, False),
        ("ckpt-1/index", False, False),
        ("ckpt-2.index", False, False),
        ("other1", False, False),
        ("other1.index", False, False),
        ("a", False, False),
        ("sub/ckpt-1.index", False, False),
    ],
)
def test_kernels_of_checkpoints_open_the_files_of_one_prefix(
    tmp_path: Path, name: str, is_read: bool, is_written: bool
) -> None:
    prefix, path = tmp_path / "ckpt-1", str(tmp_path / name)
    restoring = opkernel.Permissions().restoring(prefix)
    saving = opkernel.Permissions().saving(prefix)
    checks = [
        (restoring.for_checkpoints().check_read, is_read),
        (saving.for_checkpoints().check_write, is_written),
        (restoring.for_checkpoints().check_write, False),
        (saving.for_checkpoints().check_read, False),
        (restoring.check_read, False),
        (saving.check_write, False),
    ]
    for check, is_allowed in checks:
        if is_allowed:
            assert check(path) == os.path.realpath(path)
        else:
            with pytest.raises(PermissionDeniedError):
                check(path)


@pytest.mark.parametrize(
    ("name", "is_read"),
    [
        ("model/variables/variables.index", True),
        ("model/variables/deeper/file", True),
        ("model/assets/words.txt", True),
        ("model/saved_model.pb", False),
        ("model/variables2/file", False),
        ("variables/file", False),
        ("model", False),
    ],
)
def test_a_model_reads_its_variables_and_assets(tmp_path: Path, name: str, is_read: bool) -> None:
    permissions = opkernel.Permissions().reading_own(tmp_path / "model")
    path = str(tmp_path / name)
    if is_read:
        assert permissions.check_read(path) == os.path.realpath(path)
    else:
        with pytest.raises(PermissionDeniedError):
            permissions.check_read(path)
    with pytest.raises(PermissionDeniedError):
        permissions.check_write(path)


def test_a_folder_of_a_model_that_is_a_link_gives_nothing(tree: Path) -> None:
    (tree / "model" / "assets").mkdir(parents=True)
    (tree / "model" / "variables").symlink_to(tree)
    permissions = opkernel.Permissions().reading_own(tree / "model")
    assert permissions.read == (os.path.realpath(tree / "model" / "assets"),)


def test_more_permissions_keep_the_ones_there_were(tree: Path) -> None:
    first = opkernel.Permissions(read=[tree / "data"], write=[tree / "out"])
    more = (
        first.restoring(tree / "a").saving(tree / "b").reading(tree / "secret", tree / "data")
    ).restoring(tree / "c")
    assert more.read == (os.path.realpath(tree / "data"), os.path.realpath(tree / "secret"))
    assert more.write == first.write == (os.path.realpath(tree / "out"),)
    kernels = more.for_checkpoints()
    for name in ("a.index", "c.index", "data/a", "secret"):
        assert kernels.check_read(str(tree / name))
    for name in ("b.index", "out/x"):
        assert kernels.check_write(str(tree / name))
    for name in ("b.index", "database/c"):
        with pytest.raises(PermissionDeniedError):
            kernels.check_read(str(tree / name))
    with pytest.raises(PermissionDeniedError):
        kernels.check_write(str(tree / "a.index"))


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """The prefix of a checkpoint, one of whose files is a link to a file elsewhere."""
    for folder in ("run", "store"):
        (tmp_path / folder).mkdir()
    for name in ("run/ckpt.index", "run/other.index", "store/blob", "store/other"):
        (tmp_path / name).write_text(name)
    (tmp_path / "run" / "ckpt.data-00000-of-00001").symlink_to(tmp_path / "store" / "blob")
    (tmp_path / "run" / "other.data-00000-of-00001").symlink_to(tmp_path / "store" / "other")
    return tmp_path / "run" / "ckpt"


def test_files_of_a_checkpoint_that_the_caller_named_may_be_links(linked: Path) -> None:
    data = f"{linked}.data-00000-of-00001"
    permissions = opkernel.Permissions().restoring(linked, follows_links=True)
    kernels = permissions.for_checkpoints()
    assert kernels.check_read(data) == os.path.realpath(linked.parent.parent / "store" / "blob")
    assert kernels.check_read(f"{linked}.index")
    for other in (linked.parent / "other.data-00000-of-00001", linked.parent / "other.index"):
        with pytest.raises(PermissionDeniedError):
            kernels.check_read(str(other))
    with pytest.raises(PermissionDeniedError):
        permissions.check_read(data)
    with pytest.raises(PermissionDeniedError):
        opkernel.Permissions().restoring(linked).for_checkpoints().check_read(data)


def test_a_checkpoint_that_is_not_there_yet_has_no_links(tmp_path: Path) -> None:
    permissions = opkernel.Permissions().restoring(tmp_path / "no" / "ckpt", follows_links=True)
    assert permissions.for_checkpoints().check_read(f"{tmp_path}/no/ckpt.index")


def test_without_a_checkpoint_kernels_of_checkpoints_have_the_same() -> None:
    permissions = opkernel.Permissions(read=["/data"])
    assert permissions.for_checkpoints() is permissions
    assert OWN_CODE.for_checkpoints() is OWN_CODE


def test_permissions_are_equal_where_they_allow_the_same() -> None:
    plain = opkernel.Permissions(read=["/a"], write=["/b"])
    assert plain == opkernel.Permissions(read=["/a/../a", "/a"], write="/b")
    assert hash(plain) == hash(opkernel.Permissions(read=["/a"], write=["/b"]))
    others = [
        opkernel.Permissions(read=["/a"]),
        opkernel.Permissions(read=["/b"], write=["/a"]),
        plain.restoring("/c"),
        plain.saving("/c"),
        plain.restoring("/c").for_checkpoints(),
        OWN_CODE,
        "Permissions(read=['/a'], write=['/b'])",
    ]
    for other in others:
        assert plain != other
    assert len({plain, *others}) == 8


def test_permissions_are_told_as_they_are_written() -> None:
    permissions = opkernel.Permissions(read=["/a", "/c"], write=["/b"])
    assert repr(permissions) == "Permissions(read=['/a', '/c'], write=['/b'])"
    assert (repr(OWN_CODE), repr(NO_PERMISSIONS)) == ("OWN_CODE", "Permissions(read=[], write=[])")


def test_permissions_travel_to_other_processes() -> None:
    given = opkernel.Permissions(read=["/a"]).saving("/b").restoring("/c")
    assert pickle.loads(pickle.dumps(given)) == given
    assert pickle.loads(pickle.dumps(OWN_CODE)) is OWN_CODE


def test_a_refusal_says_how_to_allow_it(tree: Path) -> None:
    for path, folder in (("data/in/b", "data/in"), ("data/in", "data/in")):
        with pytest.raises(PermissionDeniedError) as raised:
            NO_PERMISSIONS.check_read(str(tree / path))
        message = raised.value.message
        assert message.startswith(f"'{tree / path}': the graph may not read this file.")
        assert message.endswith(f"--allow-read {os.path.realpath(tree / folder)}")


def contents(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def test_files_are_opened_for_reading(tree: Path) -> None:
    permissions = opkernel.Permissions(read=[tree / "data"])
    for path in ("data/a", "data/../data/a", "linked/a"):
        assert contents(permissions.open_to_read(str(tree / path))) == b"data/a"
    with pytest.raises(PermissionDeniedError):
        permissions.open_to_read(str(tree / "data" / "link"))
    with pytest.raises(IsADirectoryError):
        permissions.open_to_read(str(tree / "data" / "in"))
    with pytest.raises(FileNotFoundError):
        permissions.open_to_read(str(tree / "data" / "absent"))
    assert contents(OWN_CODE.open_to_read(str(tree / "data" / "link"))) == b"secret"


def test_directories_are_listed(tree: Path) -> None:
    permissions = opkernel.Permissions(read=[tree / "data"])
    assert permissions.names_in(str(tree / "data")) == ["a", "in", "link", "up"]
    with pytest.raises(PermissionDeniedError):
        permissions.names_in(str(tree))
    with pytest.raises(NotADirectoryError):
        permissions.names_in(str(tree / "data" / "a"))


def test_files_are_made_with_their_directories(tree: Path) -> None:
    permissions = opkernel.Permissions(write=[tree / "out", tree / "data" / "in"])
    for path in ("out/x", "out/deep/er/y", "data/in/b"):
        with os.fdopen(permissions.open_to_write(str(tree / path)), "r+b") as file:
            file.write(b"12345678")
        assert (tree / path).read_bytes()[:8] == b"12345678"
    with pytest.raises(PermissionDeniedError):
        permissions.open_to_write(str(tree / "data" / "new"))
    assert not (tree / "data" / "new").exists()


def test_a_place_to_write_makes_no_directory_unless_it_is_told(tree: Path) -> None:
    permissions = opkernel.Permissions(write=[tree / "out"])
    directory, name = permissions.place_to_write(str(tree / "out" / "x"))
    with directory:
        assert name == "x"
        assert directory.names() == []
    with pytest.raises(FileNotFoundError):
        permissions.place_to_write(str(tree / "out" / "a" / "x"))
    directory, _ = permissions.place_to_write(str(tree / "out" / "a" / "x"), makes=1)
    directory.close()
    assert (tree / "out" / "a").is_dir()
    with pytest.raises(FileNotFoundError):
        permissions.place_to_write(str(tree / "out" / "b" / "c" / "x"), makes=1)
