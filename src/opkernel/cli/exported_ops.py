"""Run as a script, in a process of its own: which ops importing a module registers.

The request is a JSON object, the only argument:

- `module`: the module's name.
- `roots`: where modules are searched first.
- `tree`, `replaces`: where they are given, the folder `tree` stands in for the folder `replaces`:
  what would be imported from the one is imported from the other, and the module must be found in
  it.
- `answer`: the file to write the answer to; the module's own output does not count.

The answer is a JSON object: `file` of the module and `ops`, each with `op_def` (base64), `file` and
`line`; or `missing`, where there is no such module; or the `error` of its import.
"""

import base64
import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

__all__ = ["is_missing", "told"]


def main(request: dict[str, Any]) -> None:
    """Import the module and write the answer."""
    sys.path[:0] = [*request["roots"], *_moved(sys.path, request)]
    try:
        answer = _answer(request["module"], request.get("tree"))
    except Exception as error:  # any error of the module is the answer
        answer = {"error": told(error).replace(f"{request.get('tree')}{os.sep}", "")}
    Path(request["answer"]).write_text(json.dumps(answer))


def _moved(folders: list[str], request: dict[str, Any]) -> list[str]:
    """The folders below `replaces`, moved to `tree`."""
    if "tree" not in request:
        return []
    tree, replaces = Path(request["tree"]), Path(request["replaces"])
    resolved = [Path(folder).resolve() for folder in folders]
    moved = [tree / f.relative_to(replaces) for f in resolved if f.is_relative_to(replaces)]
    return [str(folder) for folder in moved if folder.is_dir()]


def _answer(name: str, tree: str | None) -> dict[str, Any]:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if is_missing(error, name):
            return {"missing": True}
        raise
    file = module.__file__ or ""
    if tree is not None and not Path(file).is_relative_to(tree):
        return {"missing": True}
    return {"file": file, "ops": _registered_ops(name)}


def _registered_ops(module: str) -> list[dict[str, Any]]:
    from opkernel.opdef import global_op_registry

    registry = global_op_registry()
    is_catalogue = module.partition(".")[0] == "opkernel"
    if not is_catalogue:
        registry.set_loader(None)  # only ops that the module registers itself
    site = getattr(registry, "site", lambda name: None)  # an older opkernel has none
    ops = []
    for op_def in registry.get_registered_ops():
        owner = registry.owner(op_def.name) or ""
        if is_catalogue or owner.partition(".")[0] != "opkernel":
            file, line = site(op_def.name) or ("", 0)
            encoded = base64.b64encode(op_def.SerializeToString()).decode()
            ops.append({"op_def": encoded, "file": os.path.abspath(file or "."), "line": line})
    return ops


def is_missing(error: Exception, module: str) -> bool:
    """Whether an import failed because there is no such module, or no package that it is in."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return bool(missing) and f"{module}.".startswith(f"{missing}.")


def told(error: Exception) -> str:
    """The error of an import, and where the imported code raised it."""
    what = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [f for f in frames if "importlib" not in f.filename and not _is_ours(f.filename)]
    return f"{what} ({theirs[-1].filename}, line {theirs[-1].lineno})" if theirs else what


def _is_ours(file: str) -> bool:
    return Path(file).is_relative_to(Path(__file__).parents[1])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
