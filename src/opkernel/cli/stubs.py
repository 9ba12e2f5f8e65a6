"""`opkernel stubs`: ops as typed functions, for type checkers and editors."""

from pathlib import Path

import click

from opkernel.cli.files import OutputPath
from opkernel.cli.op_sources import OpSource, ops_of_target
from opkernel.cli.output import WrongUse, counted, echo, one_line
from opkernel.opdef import global_op_registry, stub_text, validate_op_def
from opkernel.ops.api_defs import python_api_def
from opkernel.ops.loader import all_op_names
from opkernel.proto import OpDef


@click.command()
@click.argument("targets", nargs=-1, metavar="[MODULE]...")
@click.option(
    "--out",
    type=OutputPath(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The folder for the stubs; it can be put on MYPYPATH. They are printed without it.",
)
def stubs(targets: tuple[str, ...], out: Path | None) -> None:
    """Write typing stubs of ops.

    MODULE is a module or Python file that registers ops, or a file that holds an OpList. Its stub
    has a function for each op, as `opkernel.raw_ops` has; a module offers them itself after
    `from opkernel.raw_ops import __getattr__`. Without a MODULE the stub is that of TensorFlow's ops,
    opkernel/raw_ops.pyi, in which type checkers find names that no op has.
    """
    if targets:
        files = dict(map(_stub_of_target, targets))
    else:
        catalogue = map(global_op_registry().look_up_op_def, all_op_names())
        files = {Path("opkernel/raw_ops.pyi"): [*catalogue]}
    for path, ops in files.items():
        module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        title = f"The ops of {module}. Written by `opkernel stubs`"
        text = stub_text(ops, title, python_api_def, is_all=not targets)
        if out is None:
            echo(text if len(files) == 1 else f"# {one_line(path.as_posix())}\n{text}")
        else:
            file = out / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            echo(f"{one_line(file)}: {counted(len(ops), 'op')}")


def _stub_of_target(target: str) -> tuple[Path, list[OpDef]]:
    source = ops_of_target(target)
    if not source.ops:
        raise WrongUse(f"'{target}' registers no ops")
    ops = source.ops.newest()
    for op_def in ops:
        validate_op_def(op_def)
    return _path(source), ops


def _path(source: OpSource) -> Path:
    """Where the stub of a module is looked for, from the folder that is on the path."""
    if source.module is None:
        return Path(f"{source.file.name.partition('.')[0]}.pyi")
    path = Path(*source.module.name.split("."))
    is_package = source.file.name == "__init__.py"
    return path / "__init__.pyi" if is_package else path.with_suffix(".pyi")
