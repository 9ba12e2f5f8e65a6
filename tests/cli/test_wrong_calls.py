"""Wrong calls from the shell: one line says what, where, which rule, and what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.conftest import Command

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "digits"
MODEL, IMAGES = EXAMPLE / "digits.pb", f"@{EXAMPLE / 'images.npy'}"

CALLS: dict[str, tuple[list[object], int, str]] = {
    "opkernel shw digits.pb": (["shw", MODEL], 2, "No such command 'shw'"),
    "opkernel run digits.pb --inptu x=1": (
        ["run", MODEL, "--inptu", "x=1"],
        2,
        "[Nn]o such option:? '?--inptu'?.*--input",
    ),
    "opkernel run digits.pb --input image=@images.npy": (
        ["run", MODEL, "--input", f"image={IMAGES}"],
        1,
        "'image', does not exist in the graph; perhaps you mean images. The inputs .*: images:0",
    ),
    "opkernel run digits.pb --input images=@images.npy --fetch digits": (
        ["run", MODEL, "--input", f"images={IMAGES}", "--fetch", "digits"],
        1,
        "'digits', does not exist .*; perhaps you mean digit. The outputs .*: probabilities:0, digit:0",
    ),
    "opkernel run digits.pb --input images=@no.npy": (
        ["run", MODEL, "--input", "images=@no.npy"],
        2,
        "--input images:0: there is no file no.npy",
    ),
    "opkernel run digits.pb --fetch digit": (
        ["run", MODEL, "--fetch", "digit"],
        1,
        r"You must feed a value for placeholder tensor 'images' .* shape \[\?,8,8,1\]",
    ),
    "opkernel run nothing.pb": (["run", "nothing.pb"], 2, "'MODEL'.* 'nothing.pb' does not exist"),
    "opkernel show README.md": (
        ["show", EXAMPLE / "README.md"],
        1,
        "README.md is a text file, not a GraphDef",
    ),
    "opkernel explain digits.pb digt": (
        ["explain", MODEL, "digt"],
        1,
        "the graph has no node or op 'digt'; perhaps you mean digit",
    ),
    "opkernel shapes digits.pb --input image:8,8,8,1": (
        ["shapes", MODEL, "--input", "image:8,8,8,1"],
        1,
        "'image', does not exist in the graph; perhaps you mean images",
    ),
    "opkernel kernels Matmul": (
        ["kernels", "Matmul"],
        1,
        "there is no op 'Matmul'; perhaps you mean MatMul",
    ),
    "opkernel optimize digits.pb --with constant_foldng": (
        ["optimize", MODEL, "--with", "constant_foldng", "-o", "out.pb"],
        2,
        "no optimization pass 'constant_foldng'; perhaps you mean constant_folding.*; there are aggregates",
    ),
    "opkernel stubs my_opz": (["stubs", "my_opz"], 2, "there is no module or file 'my_opz'"),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_call_is_told(
    call: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, status, message = CALLS[call]
    done = command(*arguments)
    assert done.exit_code == status, done.output
    lines = [line for line in done.output.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1, done.output
    assert re.search(message, lines[0]), done.output
    assert "Traceback" not in done.output
