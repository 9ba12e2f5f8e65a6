"""Paths that graphs may and may not open."""

import os
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
