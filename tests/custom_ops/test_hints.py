"""What the hints of a function make of an op, and what is refused."""

import functools
import textwrap
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.errors import AlreadyExistsError, InvalidArgumentError
from opkernel.opdef.text.spec_text import arg_spec, attr_spec

IMPORTS = """
import collections.abc
from typing import Annotated, Literal, NamedTuple, Optional, TypeVar
import numpy as np
import opkernel
from opkernel import DataType, PartialTensorShape, float32, int32
from opkernel.custom_ops import Tensor
U = TypeVar("U")
class Two(NamedTuple):
    values: Tensor["T"]
    counts: list[Tensor["int32"]]
class Wrong(NamedTuple):
    X: Tensor["T"]
"""
PRELUDES = {
    "plain": "",
    "future": "from __future__ import annotations",
}


def defined(signature: str, prelude: str = "", decorator: str = "opkernel.op") -> Any:
    """The op of a function `hints_test` with these parameters and this result."""
    names: dict[str, Any] = {"__name__": "hints_test_module"}
    code = f"@{decorator}\ndef hints_test{signature}: ..."
    exec(f"{prelude}\n{IMPORTS}\n{code}", names)
    return names["hints_test"]


def specs(op: Any) -> str:
    op_def = op.op_def
    parts = [[*map(arg_spec, op_def.input_arg)], [*map(attr_spec, op_def.attr)]]
    parts.append([*map(arg_spec, op_def.output_arg)])
    return " | ".join("; ".join(part) for part in parts)


@pytest.mark.parametrize("prelude", PRELUDES)
@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        ('(x: Tensor["T"]) -> Tensor["T"]', "x: T | T: type | output: T"),
        ('(x: "Tensor[\'T\']") -> "Tensor[\'T\']"', "x: T | T: type | output: T"),
        ('(x: opkernel.Tensor["T"]) -> None', "x: T | T: type | "),
        ("(x: Tensor[U], y: Tensor[U]) -> Tensor[int32]", "x: U; y: U | U: type | output: int32"),
        ('(x: Tensor["float64"]) -> Tensor["float"]', "x: double |  | output: float"),
        ('(xs: list[Tensor["T"]]) -> list[Tensor["T"]]',
         "xs: N * T | T: type; N: int >= 1 | output: N * T"),
        ('(xs: collections.abc.Sequence[Tensor["string"]]) -> None',
         "xs: N * string | N: int >= 1 | "),
        ('(xs: list[Tensor["T"]], ys: Annotated[list[Tensor["T"]], "M"]) -> None',
         "xs: N * T; ys: M * T | T: type; N: int >= 1; M: int >= 1 | "),
        ('(x: Tensor["T"], N: int) -> list[Tensor["T"]]',
         "x: T | T: type; N: int >= 1 | output: N * T"),
        ('(x: Tensor["T"], dtype: DataType = float32) -> Tensor["dtype"]',
         "x: T | T: type; dtype: type = DT_FLOAT | output: dtype"),
        ('(Tout: list[DataType]) -> list[Tensor["Tout"]]',
         " | Tout: list(type) >= 1 | output: Tout"),
        ('(x: Tensor["T"]) -> tuple[Tensor["T"], Tensor["int64"]]',
         "x: T | T: type | output_0: T; output_1: int64"),
        ('(x: Tensor["T"], N: int) -> Two',
         "x: T | T: type; N: int >= 1 | values: T; counts: N * int32"),
        ("(a: int, b: float = 0.5, *, c: bool = True, d: str = 'x') -> None",
         ' | a: int; b: float = 0.5; c: bool = true; d: string = "x" | '),
        ("(a: PartialTensorShape, b: list[int] = [1, 2], c: list[str] = []) -> None",
         " | a: shape; b: list(int) = [1, 2]; c: list(string) = [] | "),
        ("(m: Literal['A', 'B'] = 'A', t: np.ndarray = np.zeros(0)) -> None",
         ' | m: {"A", "B"} = "A"; t: tensor = { dtype: DT_DOUBLE tensor_shape { dim { } } } | '),
    ],
)  # fmt: skip
def test_hints_say_what_the_op_takes_and_gives(signature, expected, prelude):
    assert specs(defined(signature, PRELUDES[prelude])) == expected


def test_types_restrict_type_attrs():
    op = defined(
        '(x: Tensor["T"], out: DataType) -> Tensor["out"]',
        decorator='opkernel.op(types={"T": ["float", opkernel.float64], "out": int32})',
    )
    assert specs(op) == "x: T | T: {float, double}; out: {int32} | output: out"


def test_the_name_is_that_of_the_function_or_the_one_that_is_given():
    assert defined("(a: int) -> None").name == "HintsTest"
    assert defined("(a: int) -> None", decorator="opkernel.op(name='Mine>Hints')").op_def.name == (
        "Mine>Hints"
    )


def test_names_of_a_function_around_it_may_stand_in_hints():
    from opkernel.custom_ops import Tensor as Array

    def scope() -> Any:
        kind = Array["float"]

        @opkernel.op
        def hints_test_local(x: "kind") -> "Array['float']": ...  # type: ignore[valid-type]  # a variable

        return hints_test_local

    assert specs(scope()) == "x: float |  | output: float"


def test_the_summary_of_the_docstring_is_that_of_the_op():
    @opkernel.op
    def hints_test_doc(a: int) -> None:
        """Does a thing
        on two lines.

        Args:
            a: What it is.
        """

    assert hints_test_doc.op_def.summary == "Does a thing on two lines."
    assert hints_test_doc.__name__ == "hints_test_doc"


REFUSED = {
    "(x) -> None": "its parameter 'x' has no hint; write Tensor['T']",
    '(x: Tensor["T"])': "its result has no hint; write -> Tensor['T'], or -> None",
    "(x: Tensor) -> None": "'x' has the hint Tensor without a type; write Tensor['T']",
    "(x: Tensor[float]) -> None": "'x' has the hint Tensor[<class 'float'>], which names no type; write",
    '(x: Tensor["flaot"]) -> None': "'x' is of type 'flaot', which is no type; a type attr begins",
    '(x: Tensor["T"] | None) -> None': "but an op has all its tensors at every call; write",
    '(x: Optional[Tensor["T"]]) -> None': "but an op has all its tensors at every call; write",
    '(x: tuple[Tensor["T"], Tensor["T"]]) -> None': "but an op has all its tensors at every call; write",
    '(x: Tensor["T"] = 1) -> None': "'x' is an input with a default; an op has all its inputs",
    '(*xs: Tensor["T"]) -> None': "'xs' takes any number of arguments; write list[Tensor['T']]",
    "(**k: int) -> None": "'k' takes any number of arguments",
    '(k: int, x: Tensor["T"]) -> None': "'x' is an input behind an attr; put the inputs first",
    '(*, x: Tensor["T"]) -> None': "'x' is an input by keyword alone; put the inputs first",
    '(X: Tensor["T"]) -> None': "'X' is no name for an op: it begins with a lower-case letter",
    "(_k: int) -> None": "'_k' is no name for an op: it begins with a letter",
    "(k: complex) -> None": "'k' has the hint <class 'complex'>; a tensor has a hint such as",
    "(k: list) -> None": "'k' has the hint <class 'list'>; a tensor has a hint such as",
    "(k: [int]) -> None": "'k' has the hint [<class 'int'>]; a tensor has a hint such as",
    "(k: Annotated[int, 1]) -> None": "; a tensor has a hint such as",
    '(xs: Annotated[list[Tensor["T"]], 3]) -> None': "'xs' is a list of '3' tensors, which is no name",
    '(x: Tensor["T"], y: Annotated[list[Tensor["T"]], "T"]) -> None': "which is an attr of type type",
    "(k: list[list[int]]) -> None": "; a tensor has a hint such as",
    "(k: Literal[1, 2]) -> None": "; a tensor has a hint such as",
    "(k: int | None = None) -> None": "'k' has the hint int | None, but an attr is never None; give",
    "(k: 'Nothing') -> None": "'k' has the hint Nothing, which cannot be evaluated (name 'Nothing' is",
    "(k: int = 'a') -> None": "'k' has a default that is not of its hint: 'a' is not a value for",
    '(x: Tensor["k"], k: int) -> None': "'k' is an attr that the input 'x' determines; take it out",
    '(x: Tensor["t"], t: DataType) -> None': "'t' is an attr that the input 'x' determines",
    '(xs: list[Tensor["T"]], N: int) -> None': "'N' is an attr that the input 'xs' determines",
    '(x: Tensor["T"]) -> Tensor["S"]': "its result is of type 'S', which no input determines; write",
    '(x: Tensor["T"], k: int) -> Tensor["k"]': "is of type 'k', which is an attr of type int",
    '(x: Tensor["T"]) -> list[Tensor["T"]]': "its result is a list whose length, the attr 'N', no",
    '(x: Tensor["T"]) -> tuple[Tensor["T"], ...]': "its result is a tuple of any length; write list",
    '(x: Tensor["T"]) -> float': "its result is no tensor but <class 'float'>; write Tensor['T']",
    '(x: Tensor["T"]) -> Wrong': "its output 'X' is no name for an output: it has lower-case letters",
}  # fmt: skip


@pytest.mark.parametrize("prelude", PRELUDES)
@pytest.mark.parametrize("signature", REFUSED)
def test_a_wrong_hint_is_refused_with_function_parameter_rule_and_fix(signature, prelude):
    with pytest.raises(InvalidArgumentError) as caught:
        defined(signature, PRELUDES[prelude])
    assert str(caught.value).startswith("hints_test makes no op: its ")
    assert REFUSED[signature] in str(caught.value)


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ('{"S": ["float"]}', "types= names 'S', which is no type attr of it; it has T"),
        ('{"T": ["flaot"]}', "types= of 'T': 'flaot' is not the name of a DataType"),
    ],
)
def test_wrong_types(types, message):
    with pytest.raises(InvalidArgumentError, match=message):
        defined('(x: Tensor["T"]) -> None', decorator=f"opkernel.op(types={types})")


@pytest.mark.parametrize("thing", ["MyOp", len, np.sin, int])
def test_what_is_no_function(thing):
    with pytest.raises(
        TypeError, match=r"with type hints, not of .*; the name .* @op\(name='...'\)"
    ):
        opkernel.op(thing)


def test_a_decorated_function_is_read_in_its_own_module():
    names: dict[str, Any] = {"__name__": "hints_test_module"}
    exec(f"{IMPORTS}\ndef hints_test_inner(x: 'Tensor[\"T\"]') -> None: return ()", names)
    inner = names["hints_test_inner"]

    @functools.wraps(inner)
    def outer(x: Any) -> Any:
        return inner(x)

    assert specs(opkernel.op(outer)) == "x: T | T: type | "
    assert opkernel.raw_ops.HintsTestInner(x=1) is None


def test_the_name_of_an_op_of_the_catalogue():
    with pytest.raises(
        AlreadyExistsError, match=r"give the op its name, as in @op\(name='MyAdd'\)"
    ):
        exec(textwrap.dedent(f"{IMPORTS}\n@opkernel.op\ndef add(k: int) -> None: ..."), {})
