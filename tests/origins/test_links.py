"""Links in the directory of a SavedModel lead its ops nowhere outside of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.origins.file_ops import scalar

import opkernel
from opkernel import Permissions, raw_ops
from opkernel.checkpoint import BundleWriter
from opkernel.errors import NotFoundError, PermissionDeniedError
from opkernel.proto import BundleEntryProto, BundleHeaderProto


class Opening(opkernel.Module):
    """A model that opens the files that its caller names."""

    def __init__(self) -> None:
        self.v = opkernel.Variable(np.float32(1), name="v")

    @opkernel.function(input_signature=[opkernel.TensorSpec([], opkernel.string)])
    def read(self, name: Any) -> Any:
        return raw_ops.ReadFile(filename=name)

    @opkernel.function(input_signature=[opkernel.TensorSpec([], opkernel.string)])
    def match(self, pattern: Any) -> Any:
        return raw_ops.MatchingFiles(pattern=pattern)

    @opkernel.function(input_signature=[opkernel.TensorSpec([], opkernel.string)])
    def restore(self, prefix: Any) -> Any:
        return raw_ops.RestoreV2(
            prefix=prefix,
            tensor_names=np.array([b"secret"], object),
            shape_and_slices=np.array([b""], object),
            dtypes=[opkernel.float32],
        )[0]

    @opkernel.function(input_signature=[])
    def value(self) -> Any:
        return self.v + 0


@pytest.fixture
def model(tmp_path: Path) -> Path:
    module = Opening()
    value = opkernel.function(lambda: {"value": module.v + 0}, [])
    opkernel.save(module, tmp_path / "model", signatures=value)
    return tmp_path / "model"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A folder that no model may read."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "secret").write_bytes(b"secret")
    with BundleWriter(folder / "ckpt") as writer:
        writer.add("secret", np.ones(2, np.float32))
    return folder


def link(place: Path, target: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(target)


LINKS = {
    "a file in variables": ("variables/leak", "secret", "variables/leak"),
    "a folder in variables": ("variables/dir", "", "variables/dir/secret"),
    "the assets": ("assets", "", "assets/secret"),
    "a file in the assets": ("assets/leak", "secret", "assets/leak"),
    "a folder in the assets": ("assets/dir", "", "assets/dir/secret"),
    "the variables": ("variables", "", "variables/secret"),
    "the variables, to everything": ("variables", "/", None),
}


@pytest.mark.parametrize("what", LINKS)
@pytest.mark.parametrize("as_session", [False, True])
@pytest.mark.parametrize("through_link", [False, True])
def test_ops_follow_no_link(
    what: str, as_session: bool, through_link: bool, model: Path, secret: Path, tmp_path: Path
) -> None:
    place, target, name = LINKS[what]
    (model / "assets").mkdir(exist_ok=True)
    link(model / place, Path(target) if target == "/" else secret / target)
    if through_link:  # which the user has named
        (tmp_path / "linked").symlink_to(model)
        model = tmp_path / "linked"
    path = secret / "secret" if name is None else model / name
    paths = [path, secret / "secret"]
    if as_session:
        module = opkernel.load_as_session(model)
        graph = module.graph
        with graph.as_default():
            given = opkernel.placeholder(opkernel.string, [])
            content = raw_ops.ReadFile(filename=given)
        with opkernel.Session(graph, permissions=module.permissions) as session:
            for path in paths:
                with pytest.raises((PermissionDeniedError, NotFoundError)):
                    session.run(content, {given: str(path).encode()})
        return
    loaded = opkernel.load(model)
    for path in paths:
        with pytest.raises((PermissionDeniedError, NotFoundError)):
            loaded.read(scalar(path))
    with pytest.raises((PermissionDeniedError, NotFoundError)):
        loaded.restore(scalar(path.with_name("ckpt")))
    for pattern in ("variables/*/*", "assets/*/*", "variables/*", "assets/*"):
        try:
            found = loaded.match(scalar(model / pattern)).tolist()
        except PermissionDeniedError:
            continue
        assert not [one for one in found if one.endswith((b"/secret", b"passwd", b"/ckpt.index"))]


def test_a_link_inside_is_followed(model: Path) -> None:
    (model / "variables" / "note").write_text("inside")
    (model / "variables" / "link").symlink_to("note")
    assert opkernel.load(model).read(scalar(model / "variables" / "link")) == b"inside"


@pytest.mark.parametrize("file", ["variables.index", "variables.data-00000-of-00001"])
@pytest.mark.parametrize("as_session", [False, True])
def test_a_checkpoint_lies_in_its_model(
    file: str, as_session: bool, model: Path, tmp_path: Path
) -> None:
    """Its files may be links to regular files of the model; others have to be allowed."""
    inside, outside = model / "variables" / "moved", tmp_path / "outside"
    (model / "variables" / file).rename(inside)
    (model / "variables" / file).symlink_to(inside)

    def value(permissions: Permissions | None = None) -> Any:
        if as_session:
            with opkernel.load_as_session(model, permissions=permissions) as loaded:
                return loaded.signatures["serving_default"]()["value"]
        return opkernel.load(model, permissions=permissions).value()

    assert value() == 1
    inside.rename(outside)
    (model / "variables" / file).unlink()
    (model / "variables" / file).symlink_to(outside)
    with pytest.raises(PermissionDeniedError, match="may not read this file"):
        value()
    assert value(Permissions(read=[outside])) == 1


def test_data_files_of_six_digits(model: Path, secret: Path) -> None:
    """However many data files an index says there are, each is opened as permissions allow."""
    prefix = model / "variables" / "many"
    with BundleWriter(prefix) as writer:
        writer.add("secret", np.ones(2, np.float32))
    with opkernel.load_checkpoint(prefix) as reader:
        assert reader.get("secret").tolist() == [1, 1]
    _rewrite(prefix, num_shards=100_001, shard_id=100_000)
    name = f"{prefix}.data-100000-of-100001"
    os.rename(f"{prefix}.data-00000-of-00001", name)
    assert opkernel.load(model).restore(scalar(prefix)).tolist() == [1, 1]
    os.rename(name, secret / "data")
    os.symlink(secret / "data", name)
    with pytest.raises(PermissionDeniedError):
        opkernel.load(model).restore(scalar(prefix))


def _rewrite(prefix: Path, num_shards: int, shard_id: int) -> None:
    """Have an index say that a tensor is in another data file."""
    from opkernel.checkpoint.sstable import Table, TableWriter

    table = Table(f"{prefix}.index")
    entries = dict(table)
    table.close()
    header = BundleHeaderProto.FromString(entries.pop(b""))
    header.num_shards = num_shards
    with open(f"{prefix}.index", "wb") as file:
        writer = TableWriter(file)
        writer.add(b"", header.SerializeToString())
        for key, value in entries.items():
            entry = BundleEntryProto.FromString(value)
            entry.shard_id = shard_id
            writer.add(key, entry.SerializeToString())
        writer.finish()


@pytest.mark.parametrize("place", ["assets", "assets/leak", "assets.extra", "assets.extra/leak"])
@pytest.mark.parametrize("as_session", [False, True])
def test_a_save_copies_nothing_from_outside(
    place: str, as_session: bool, model: Path, secret: Path, tmp_path: Path
) -> None:
    folder = model / place.split("/", maxsplit=1)[0]
    folder.mkdir(exist_ok=True)
    link(model / place, secret if "/" not in place else secret / "secret")
    loaded = opkernel.load_as_session(model) if as_session else opkernel.load(model)
    with pytest.raises(PermissionDeniedError):
        opkernel.save(loaded, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    permissions = Permissions(read=[secret])
    loaded = opkernel.load(model, permissions=permissions)
    opkernel.save(loaded, tmp_path / "again")
    copied = tmp_path / "again" / place
    assert (copied / "secret" if copied.is_dir() else copied).read_bytes() == b"secret"
    assert not copied.is_symlink()
