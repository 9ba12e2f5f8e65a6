"""Write `opkernel/raw_ops.pyi`: the typing stub of the catalogue's ops.

Run after an op was added or changed: `python tools/generate_raw_ops_stub.py`. With `--check`
nothing is written and the exit status says whether the file is current.
"""

import sys
from pathlib import Path

from opkernel.opdef import global_op_registry, stub_text
from opkernel.ops.api_defs import python_api_def
from opkernel.ops.loader import all_op_names

STUB = Path(__file__).resolve().parent.parent / "src" / "opkernel" / "raw_ops.pyi"


def text() -> str:
    ops = map(global_op_registry().look_up_op_def, all_op_names())
    title = "The ops of the catalogue. Written by tools/generate_raw_ops_stub.py"
    return stub_text(ops, title, python_api_def, is_all=True)


def main() -> int:
    new = text()
    if "--check" in sys.argv[1:]:
        if STUB.read_text(encoding="utf-8") == new:
            return 0
        print("stale: src/opkernel/raw_ops.pyi; run tools/generate_raw_ops_stub.py")
        return 1
    STUB.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
