"""Write `opkernel/cli/vectors.txt`: of each op, how many of TensorFlow's recorded calls are answered right.

Needs the recorded calls in `../shared/vectors`, and some minutes: `python tools/record_vectors.py`. After it,
`python tools/record_vectors.py sparse other` asks anew what stands in the files of these names. Ops that have no kernel
at all are left out. `opkernel coverage` shows the numbers.
"""

import importlib
import json
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VECTORS = ROOT.parent / "shared" / "vectors"
ANSWER = ROOT / "tests" / "conformance" / "answer.py"
ONEDNN_CALLS = ANSWER.with_name("onednn_calls.txt")
RECORD = ROOT / "src" / "opkernel" / "cli" / "vectors.txt"
NO_SINGLE_CALLS = {"sequences", "advisories"}
"""Files whose calls need each other, or what stood on one machine."""


def main() -> None:
    sys.path.insert(0, str(VECTORS))
    check: Any = importlib.import_module("check")
    stems = {path.name.split(".")[0] for path in VECTORS.glob("*.jsonl.xz")} - NO_SINGLE_CALLS
    lines = recorded() if sys.argv[1:] else {}
    for stem in sys.argv[1:] or sorted(stems):
        print(stem, flush=True)
        lines |= lines_of(check, [*check.iter_rows(str(VECTORS / f"{stem}.jsonl.xz"))])
    text = "".join(f"{op} {lines[op]}\n" for op in sorted(lines) if lines[op])
    RECORD.write_text(text, encoding="utf-8")


def recorded() -> dict[str, str]:
    """The lines that stand there, by op."""
    return dict(line.split(" ", 1) for line in RECORD.read_text("utf-8").splitlines())


def lines_of(check: Any, rows: list[Any]) -> dict[str, str]:
    """How many calls of each op are right, and how many there are; empty for an op without kernel."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for op, verdict in verdicts(check, rows):
        found[op][verdict] += 1
    return {
        op: "" if counts["unsupported"] else f"{counts['right']} {counts.total()}"
        for op, counts in found.items()
    }


def verdicts(check: Any, rows: list[Any]) -> Iterator[tuple[str, str]]:
    """The op of each call, and `right`, `unsupported` or what is wrong; TensorFlow answers some otherwise by oneDNN."""
    by_onednn = {*ONEDNN_CALLS.read_text("utf-8").split("\n")[1:]}
    with subprocess.Popen(
        [sys.executable, str(ANSWER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as answers:
        asking = threading.Thread(target=ask, args=(check, rows, answers.stdin), daemon=True)
        asking.start()
        assert answers.stdout is not None  # it is a pipe
        for row, text in zip(rows, answers.stdout, strict=True):
            verdict = check.verdict(row, json.loads(text)["answer"])
            yield row["op"], "right" if row["id"] in by_onednn else verdict


def ask(check: Any, rows: list[Any], pipe: Any) -> None:
    with pipe:
        for row in rows:
            area, request = check.request(row)
            pipe.write(json.dumps({"id": row["id"], "area": area, "request": request}).encode())
            pipe.write(b"\n")


if __name__ == "__main__":
    main()
