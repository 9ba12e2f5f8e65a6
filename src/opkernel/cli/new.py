"""`opkernel new`: a package with an op of one's own, ready to install and to test."""

import importlib.util
import keyword
import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from string import Template

import click

from opkernel.cli.files import OutputPath
from opkernel.cli.output import WrongUse, echo, one_line
from opkernel.ops.loader import all_op_names
from opkernel.plugins import API_VERSION, ENTRY_POINT_GROUP


@click.command()
@click.argument("name")
@click.option(
    "--into",
    type=OutputPath(file_okay=False, path_type=Path),
    default=".",
    metavar="DIR",
    help="Where the folder of the package is made; here without it.",
)
@click.option("--force", is_flag=True, help="Write into a folder that is there already.")
def new(name: str, into: Path, force: bool) -> None:
    """Write a package with an op, its shape function, a kernel, its gradient and tests.

    NAME is the package's, in lower case: `row_norm` has the op RowNorm. Once it is installed,
    opkernel finds the op by itself.
    """
    _check_name(name)
    folder = into / name
    if not force:
        _check_is_free(name, folder)
    try:
        for path, text in new_package(name):
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            echo(one_line(file))
    except OSError as error:
        raise WrongUse(f"cannot write '{error.filename}': {error.strerror}") from error
    echo(f"Next: cd {one_line(folder)} && pip install -e '.[test]' && pytest")


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise WrongUse(f"'{name}' is no name for a package: it takes a word, or words_like_these")
    if name in sys.stdlib_module_names or name == "opkernel":
        raise WrongUse(f"'{name}' is the name of another module")
    if op_name(name) in all_op_names():
        raise WrongUse(f"there is an op {op_name(name)} already; '{name}' would declare it again")


def _check_is_free(name: str, folder: Path) -> None:
    if folder.exists():
        raise WrongUse(f"'{folder}' is there already (--force writes into it)")
    if importlib.util.find_spec(name) is not None:
        raise WrongUse(f"there is a module '{name}' already (--force does not mind)")


__all__ = ["new_package", "op_name"]


def op_name(package: str) -> str:
    """The name of the op of a package: `row_norm` has `RowNorm`."""
    return "".join(word[:1].upper() + word[1:] for word in package.split("_"))


def new_package(package: str) -> Iterator[tuple[PurePosixPath, str]]:
    """The files of a package with one op, each with its path and text."""
    values = {
        "package": package,
        "distribution": package.replace("_", "-"),
        "op": op_name(package),
        "constant": package.upper(),
        "api": API_VERSION,
        "group": ENTRY_POINT_GROUP,
    }
    for path, text in _FILES.items():
        yield PurePosixPath(Template(path).substitute(values)), Template(text).substitute(values)


_PYPROJECT = """\
[build-system]
requires = ["setuptools>=77.0"]
build-backend = "setuptools.build_meta"

[project]
name = "$distribution"
version = "0.1.0"
description = "The op $op, for opkernel"
readme = "README.md"
requires-python = ">=3.11"
keywords = ["opkernel-api=$api"] # the version of opkernel's API that this is built for
dependencies = ["opkernel"]

[project.optional-dependencies]
test = ["opkernel[test]"]

[project.entry-points."$group"]
$package = "$package"

[tool.setuptools.packages.find]
where = ["src"]

[tool.pytest.ini_options]
testpaths = ["tests"]
"""

_README = """\
# $distribution

The op `$op` for [opkernel](https://pypi.org/project/opkernel): the length of each row of a matrix.

    pip install -e ".[test]"
    pytest
    opkernel doctor

Once it is installed, opkernel finds it by itself:

    >>> import opkernel
    >>> opkernel.raw_ops.$op(x=[[3.0, 4.0]])
    array([5.], dtype=float32)

`src/$package/ops.py` says what the op is, `src/$package/kernels.py` how it is computed,
`src/$package/gradients.py` what its gradient is.
"""

_INIT = '''\
"""The op $op, for opkernel; importing this registers it."""

from $package import gradients, kernels
from $package.ops import $constant

__all__ = ["$constant", "gradients", "kernels"]
'''

_OPS = '''\
"""What $op is: its declaration and its shape function."""

import opkernel
from opkernel.opdef import InferenceContext

__all__ = ["$constant"]


def _shape(c: InferenceContext) -> None:
    rows = c.with_rank(c.input(0), 2)
    c.set_output(0, c.vector(c.dim(rows, 0)))


$constant = opkernel.register_op(
    "$op(x: T) -> y: T",
    attrs=["T: {float, double}", "squared: bool = false"],
    shape_fn=_shape,
    doc="""The length of each row of a matrix.

x: A matrix, [n, d].
y: The lengths, [n].
squared: Whether to leave out the square root.""",
)
'''

_KERNELS = '''\
"""How $op is computed."""

from typing import Any

import opkernel

from $package.ops import $constant

__all__ = ["row_lengths"]


@opkernel.register_kernel($constant, device="CPU")
def row_lengths(x: Any, *, squared: bool, xp: Any) -> Any:
    """The kernel for all types; `xp` is the array library of the device."""
    total = xp.sum(x * x, axis=1)
    return total if squared else xp.sqrt(total)
'''

_GRADIENTS = '''\
"""The gradient of $op. An op without one says so instead: `no_gradient($constant)`."""

import opkernel.gradients as g

from $package.ops import $constant

__all__ = ["row_lengths_gradient"]


@g.register_gradient($constant)
def row_lengths_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """Each element over the length of its row; twice the element where that is squared."""
    (x,), (y,) = op.inputs, op.outputs
    slope = g.nodes.Mul(grad, 2) if op.get_attr("squared") else g.nodes.RealDiv(grad, y)
    return g.nodes.Mul(x, g.nodes.ExpandDims(slope, -1))
'''

_TEST = """\
import numpy as np
import pytest
from opkernel import errors
from opkernel.testing import assert_outputs, check_gradient, check_op, expect_shapes, run_op

from $package import $constant

ROWS = np.array([[3.0, 4.0], [0.0, 0.0], [-1.0, 0.0]])


def test_values():
    assert_outputs(run_op($constant.name, [ROWS]), [5.0, 0.0, 1.0])


def test_squared():
    assert_outputs(run_op($constant.name, [ROWS], attrs={"squared": True}), [25.0, 0.0, 1.0])


def test_no_columns():
    assert_outputs(run_op($constant.name, [np.zeros((2, 0))]), [0.0, 0.0])


def test_shapes():
    expect_shapes($constant.name, [[None, 2]], [[None]])
    expect_shapes($constant.name, [None], [[None]])


def test_only_matrices_have_rows():
    with pytest.raises(errors.InvalidArgumentError, match="rank 2"):
        expect_shapes($constant.name, [[3]], [[]])


@pytest.mark.parametrize("squared", [False, True])
def test_gradient(squared):
    check_gradient($constant.name, [ROWS + 1], {"squared": squared})


def test_every_kernel_keeps_the_rules():
    report = check_op($constant.name)
    assert report.gradients, report.gradient_skipped
"""

_FILES = {
    "pyproject.toml": _PYPROJECT,
    "README.md": _README,
    "src/$package/__init__.py": _INIT,
    "src/$package/ops.py": _OPS,
    "src/$package/kernels.py": _KERNELS,
    "src/$package/gradients.py": _GRADIENTS,
    "tests/test_$package.py": _TEST,
}
