"""Write `recorded_calls.jsonl.xz` and `recorded_sequences.jsonl.xz`: calls of ops with what TensorFlow gave.

    PYTHONPATH=src:.:tests/conformance python tests/data/make_recorded_calls.py ../shared/vectors
    PYTHONPATH=src:.:tests/conformance python tests/data/make_recorded_calls.py ../shared/vectors more

The recorded calls in `../shared/vectors` are many. Of each op, this keeps small calls that together run each step from
line to line of the op's code, have each value of its attrs, each rank of its first inputs, and each status code; and a
few calls on larger arrays with results of many values. It leaves out ops without a kernel, and the few calls that opkernel answers otherwise; `opkernel coverage` counts these.
That is also so where opkernel does what oneDNN does, with which TensorFlow was not recorded.
`more` adds, of larger calls and those of TensorFlow's security advisories, what runs further steps, and of all small
calls some with other pairs of attrs, dtypes and ranks.
The sequences of calls that share variables, tables, lists and the like are all kept. A line of a file is a recorded call
or sequence without its source and messages.
"""

import importlib
import json
import lzma
import random
import sys
from collections import Counter, defaultdict
from itertools import chain, combinations
from pathlib import Path
from types import FrameType
from typing import Any

from tests.recorded_nodes import arrays

import opkernel
from answer_op_calls import op_call

FOLDER = Path(__file__).parent
OPS = str(Path(opkernel.__file__).parent / "ops")
MAX_BYTES = 2000  # of a recorded line
SMALL = 800  # calls that are kept for their attrs and inputs alone
MAX_TRIED = 120  # of an op
MOST_TYPICAL = 3
MOST_BYTES, MOST_OF_PAIRS, MOST_OF_STEPS = 6000, 6, 12
VECTORS = Path(sys.argv[1])
sys.path.insert(0, str(VECTORS))
CHECK: Any = importlib.import_module("check")
NO_SINGLE_CALLS = ("sequences", "advisories")


def main() -> None:
    by_op: dict[str, list[str]] = defaultdict(list)
    for path in sorted(VECTORS.glob("*.jsonl.xz")):
        if not path.name.startswith(NO_SINGLE_CALLS):
            with lzma.open(path, "rt") as file:
                for line in file:
                    if len(line) < MAX_BYTES:
                        by_op[json.loads(line)["op"]].append(line)
    kept: list[str] = []
    for op, lines in sorted(by_op.items()):
        tried = random.Random(op).sample(lines, min(MAX_TRIED, len(lines)))
        asked = [json.loads(line) for line in sorted(tried, key=len)]
        calls = chosen(asked)
        calls += [call for call in typical(asked) if call not in calls]
        kept += [as_text(as_kept(call)) for call in calls]
        print(op, len(kept), flush=True)
    write("recorded_calls.jsonl.xz", kept)
    with lzma.open(VECTORS / "sequences.jsonl.xz", "rt") as file:
        sequences = list(map(json.loads, file))
    texts = [
        as_text({"name": one["name"], "steps": [*map(as_kept, one["steps"])]}) for one in sequences
    ]
    write("recorded_sequences.jsonl.xz", texts)


def add_more() -> None:
    """Add calls to those that the file has."""
    kept: dict[str, list[str]] = defaultdict(list)
    text = lzma.decompress((FOLDER / "recorded_calls.jsonl.xz").read_bytes()).decode()
    for one in text.splitlines(keepends=True):
        kept[json.loads(one)["op"]].append(one)
    others: dict[str, list[Any]] = {op: [] for op in kept}
    for path in sorted(VECTORS.glob("*.jsonl.xz")):
        if not path.name.startswith("sequences"):
            with lzma.open(path, "rt") as file:
                for line in file:
                    call = json.loads(line)
                    if len(line) < MOST_BYTES and call["op"] in others:
                        others[call["op"]].append((len(line), "advisory" in call, call))
    for op, found in others.items():
        found.sort(key=lambda one: one[0])
        kept[op] += [*map(as_text, more_calls(kept[op], found))]
        print(op, len(kept[op]), flush=True)
    write("recorded_calls.jsonl.xz", [*chain.from_iterable(kept.values())])


def more_calls(lines: list[str], found: list[Any]) -> list[Any]:
    """Of one op, calls that differ from those in the file."""
    texts, calls = {*lines}, [json.loads(line) for line in lines]
    steps = set(chain.from_iterable(features(coded(call)) or () for call in calls))
    pairs = set(chain.from_iterable(map(pairs_of, calls)))
    chosen: list[Any] = []
    of_pairs = of_steps = 0
    for size, is_advisory, call in found:
        kept = as_kept(call)
        if as_text(kept) in texts:
            continue
        if (is_advisory or size >= MAX_BYTES) and of_steps < MOST_OF_STEPS:
            does = features(call)
            if does and not does <= steps:
                of_steps += 1
                steps |= does
                chosen.append(kept)
        elif size < MAX_BYTES and of_pairs < MOST_OF_PAIRS and is_new_pair(call, pairs):
            of_pairs += 1
            pairs |= pairs_of(kept)
            chosen.append(kept)
    return chosen


def is_new_pair(call: Any, pairs: set[Any]) -> bool:
    """Whether a call has a pair that none has yet, and opkernel answers it as TensorFlow did."""
    kept = as_kept(call)
    return not pairs_of(kept) <= pairs and CHECK.verdict(call, op_call(kept)) == "right"


def coded(call: Any) -> Any:
    """A call of the file, as it is among the vectors."""
    return call | {"error": {"code": call["error"], "message": ""}} if "error" in call else call


def pairs_of(call: Any) -> set[Any]:
    """Pairs of attrs, dtypes, ranks and of what a call gives."""
    first = [*arrays(call["inputs"])][:3]
    ones = [(i, len(a["shape"]), 0 in a["shape"]) for i, a in enumerate(first)]
    attrs = [(name, json.dumps(value)) for name, value in sorted(call["attrs"].items())]
    texts = [one for one in attrs if len(one[1]) < 40]
    return {*combinations([*texts, *ones, str(call.get("error"))], 2)}


def write(name: str, lines: list[str]) -> None:
    (FOLDER / name).write_bytes(lzma.compress("".join(lines).encode(), preset=9))


def chosen(calls: list[Any]) -> list[Any]:
    """Calls that each do something that no other one does, the shorter ones first."""
    found = [(call, does) for call in calls if (does := features(call))]
    count = Counter(chain.from_iterable(does for _, does in found))
    kept = []
    for call, does in reversed(found):
        if all(count[one] > 1 for one in does):
            count.subtract(does)
        else:
            kept.append(call)
    return kept[::-1]


def typical(calls: list[Any]) -> list[Any]:
    """The shortest calls on arrays that are longer than 1 in each dimension, with results of some different values."""
    found: dict[Any, Any] = {}
    for call in calls:
        shapes = [a["shape"] for a in arrays(call["inputs"]) if a["shape"]]
        values = [a.get("b64") or str(a.get("values_b64")) for a in arrays(call.get("outputs", []))]
        is_large = any(len(one) > 1 for one in shapes) and min(map(min, shapes)) > 1
        if is_large and any(len({*one}) > 12 for one in values):
            found.setdefault(tuple(map(len, shapes)), call)
    return [call for call in [*found.values()][:MOST_TYPICAL] if features(call)]


def as_kept(call: Any) -> Any:
    """A call with what the file says of it."""
    kept = {name: call[name] for name in ("op", "attrs", "inputs", "outputs") if name in call}
    if "error" in call:
        kept["error"] = call["error"]["code"]
    return kept


def as_text(kept: Any) -> str:
    """A line of a file."""
    return json.dumps(kept, separators=(",", ":"), sort_keys=True) + "\n"


def features(call: Any) -> set[Any] | None:
    """What a call does: steps of the code of ops, and kinds of attrs and inputs. None where the answer is another."""
    steps: set[Any] = set()

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(OPS):
            return None
        last = -1

        def local(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal last
            steps.add((code.co_filename, last, frame.f_lineno))
            last = frame.f_lineno
            return local

        return local(frame, event, arg)

    sys.settrace(trace)
    try:
        answer = op_call({name: call[name] for name in ("op", "attrs", "inputs")})
    finally:
        sys.settrace(None)
    if CHECK.verdict(call, answer) != "right":
        return None
    error = call["error"]["code"] if "error" in call else None
    if len(json.dumps(call)) > SMALL:
        return steps | {error}
    of_attrs = {
        (name, json.dumps(value)) for name, value in call["attrs"].items() if len(str(value)) < 40
    }
    first = [*arrays(call["inputs"])][:3]
    of_inputs = {(i, len(a["shape"]), 0 in a["shape"]) for i, a in enumerate(first)}
    return steps | of_attrs | of_inputs | {error}


if __name__ == "__main__":
    add_more() if sys.argv[2:] else main()
