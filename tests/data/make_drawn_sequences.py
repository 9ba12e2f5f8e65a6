"""Write `drawn_sequences.jsonl.xz`: drawn calls on ragged tensors in variants and on tensor lists, with TensorFlow's answers.

    pip install tensorflow-cpu==2.21.0
    PYTHONPATH=src:.:tests/conformance python tests/data/make_drawn_sequences.py

The lines are as those of `recorded_sequences.jsonl.xz`. It leaves out sequences that opkernel answers otherwise.
"""

import base64
import contextlib
import inspect
import json
import lzma
import os
import random
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tests.ops import test_recorded_values as ours

from answer_op_calls import op_sequence

OUT = Path(__file__).parent / "drawn_sequences.jsonl.xz"
COUNT, AT_ONCE = 160, 20
FORK = get_context("fork")
CODES = {code: name for name, code in vars(tf.errors).items() if isinstance(code, int)}


class Sequence:
    """Calls that TensorFlow has answered; a handle has a name, and its value is kept."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.steps: list[Any] = []
        self.values: dict[str, Any] = {}

    def call(self, op: str, inputs: dict[str, Any], **attrs: Any) -> list[Any]:
        """The outputs of a call: names of handles, and arrays; none if it fails."""
        step: Any = {
            "op": op,
            "inputs": [self.encoded(value) for value in inputs.values()],
            "attrs": {name: attr(value) for name, value in attrs.items()},
        }
        self.steps.append(step)
        try:
            given = {name: self.value(value) for name, value in inputs.items()}
            op_function = getattr(tf.raw_ops, op)
            taken = inspect.signature(op_function).parameters
            passed = {name: value for name, value in attrs.items() if name in taken}
            result = op_function(**given, **passed)
        except tf.errors.OpError as error:
            step["error"] = CODES[error.error_code]
            return []
        args = [*result] if isinstance(result, tuple) else [result]
        step["outputs"] = [self.kept(one) for one in args]
        return [*map(self.taken, step["outputs"], args)]

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.value(one) for one in value]
        return self.values[value] if isinstance(value, str) else tf.constant(value)

    def encoded(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.encoded(one) for one in value]
        return {"ref": value} if isinstance(value, str) else array(value)

    def kept(self, result: Any) -> Any:
        if isinstance(result, list):
            return [self.kept(one) for one in result]
        if result.dtype != tf.variant:
            return array(result.numpy())
        name = f"h{len(self.values)}"
        self.values[name] = result
        return {"bind": name, "dtype": "variant"}

    def taken(self, kept: Any, result: Any) -> Any:
        return kept["bind"] if isinstance(kept, dict) and "bind" in kept else result


def array(value: Any) -> Any:
    value = np.asarray(value)
    data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
    return {"dtype": value.dtype.name, "shape": [*value.shape], "b64": data}


def attr(value: Any) -> Any:
    if isinstance(value, tf.DType):
        return {"type": value.name}
    return {"bool" if isinstance(value, bool) else "int": value}


def ragged(s: Sequence) -> None:
    """A ragged tensor becomes variants, perhaps of another order, and these a ragged tensor again."""
    rng, kind = s.rng, s.rng.choice([tf.int32, tf.int64])
    levels, count = [], rng.randrange(4)
    for _ in range(rng.randrange(4)):
        ends = np.cumsum([0, *(rng.randrange(4) for _ in range(count))])
        levels.append(ends.astype(kind.as_numpy_dtype))
        count = int(ends[-1])
    shape = (count, *rng.choice([(), (), (2,), (1, 3), (0,)]))
    dtype = rng.choice([tf.float32, tf.int32, tf.float64])
    values = np.arange(1, 1 + np.prod(shape)).astype(dtype.as_numpy_dtype).reshape(shape)
    batched = rng.random() < 0.7
    made = s.call(
        "RaggedTensorToVariant",
        {"rt_nested_splits": [*levels], "rt_dense_values": values},
        Tvalues=dtype,
        Tsplits=kind,
        batched_input=batched,
    )
    if not made:
        return
    (rows,) = made
    if batched and rng.random() < 0.3 and count:
        shaped = s.call("Reshape", {"tensor": rows, "shape": np.array([-1, 1], np.int32)})
        rows = shaped[0] if shaped else rows
    elif rng.random() < 0.2:
        zeros = s.call("ZerosLike", {"x": rows})
        rows = zeros[0] if zeros else rows
    for _ in range(3):
        s.call(
            "RaggedTensorFromVariant",
            {"encoded_ragged": rows},
            input_ragged_rank=rng.choice([-1, 0, len(levels) - 1, len(levels), 1, 2]),
            output_ragged_rank=rng.choice([0, len(levels), len(levels), 1, 2, 3]),
            Tvalues=dtype if rng.random() < 0.9 else tf.uint8,
            Tsplits=kind if rng.random() < 0.9 else tf.int64,
        )
    first = levels[0] if levels else np.array([0, count], kind.as_numpy_dtype)
    dims = np.array(shape, np.int32)
    s.call(
        "RaggedTensorToVariantGradient",
        {"encoded_ragged_grad": rows, "row_splits": first, "dense_values_shape": dims},
        Tvalues=dtype,
        Tsplits=kind,
    )


def shape_of_items(rng: random.Random) -> Any:
    shapes: list[Any] = [[2], [-1], [2], [3], [1, 2], [-1, 2], []]
    return np.array(-1 if rng.random() < 0.2 else rng.choice(shapes), np.int32)


def item(rng: random.Random, dtype: Any) -> Any:
    shape = rng.choice([(2,), (2,), (2,), (3,), (1, 2), (), (0,)])
    start = rng.randrange(9)
    return np.arange(start, start + np.prod(shape)).astype(dtype.as_numpy_dtype).reshape(shape)


def lists(s: Sequence) -> None:
    """Calls on one tensor list after another."""
    rng, dtype = s.rng, s.rng.choice([tf.float32, tf.int32])
    one = {"element_dtype": dtype}
    shape, at = shape_of_items(rng), rng.randrange(-1, 4)
    if rng.random() < 0.5:
        made = s.call(
            "TensorListReserve",
            {"element_shape": shape, "num_elements": np.int32(rng.randrange(-1, 4))},
            shape_type=tf.int32,
            **one,
        )
    else:
        most = np.int32(rng.choice([-1, 2, 5]))
        made = s.call(
            "EmptyTensorList",
            {"element_shape": shape, "max_num_elements": most},
            shape_type=tf.int32,
            **one,
        )
    current = made[0] if made else None
    for _ in range(8 if current else 0):
        at, shape, value = rng.randrange(-1, 4), shape_of_items(rng), item(rng, dtype)
        rows = np.stack([value] * rng.randrange(1, 4))
        places = np.array([rng.randrange(-1, 4) for _ in rows], np.int32)
        other = {"element_dtype": dtype if rng.random() < 0.9 else tf.int64}
        h = {"input_handle": current}
        deeds: list[tuple[str, Any, Any]] = [
            ("TensorListPushBack", h | {"tensor": value}, one),
            ("TensorListPushBack", h | {"tensor": value}, one),
            ("TensorListSetItem", h | {"index": np.int32(at), "item": value}, one),
            ("TensorListSetItem", h | {"index": np.int32(at), "item": value}, one),
            ("TensorListGetItem", h | {"index": np.int32(at), "element_shape": shape}, other),
            ("TensorListPopBack", h | {"element_shape": shape}, other),
            ("TensorListLength", h, {}),
            ("TensorListElementShape", h, {"shape_type": rng.choice([tf.int32, tf.int64])}),
            ("TensorListResize", h | {"size": np.int32(at)}, {}),
            (
                "TensorListStack",
                h | {"element_shape": shape},
                other | {"num_elements": rng.choice([-1, -1, 2])},
            ),
            ("TensorListGather", h | {"indices": places, "element_shape": shape}, other),
            ("TensorListScatterIntoExistingList", h | {"tensor": rows, "indices": places}, one),
            (
                "TensorListConcatV2",
                h | {"element_shape": shape, "leading_dims": places.astype(np.int64)},
                other,
            ),
            ("TensorListFromTensor", {"tensor": rows, "element_shape": shape}, one),
            (
                "TensorListScatterV2",
                {
                    "tensor": rows,
                    "indices": places,
                    "element_shape": shape,
                    "num_elements": np.int32(at),
                },
                one,
            ),
            (
                "TensorListSplit",
                {"tensor": rows, "element_shape": shape, "lengths": places.astype(np.int64)},
                one,
            ),
            ("TensorListConcatLists", {"input_a": current, "input_b": current}, other),
            ("ZerosLike", {"x": current}, {}),
            ("AddN", {"inputs": [current, current]}, {}),
        ]
        op, inputs, attrs = rng.choice(deeds)
        for found in s.call(op, inputs, **attrs):
            current = found if isinstance(found, str) else current


def main() -> None:
    lines: list[str] = []
    for name in DRAWS:
        for start in range(0, COUNT, AT_ONCE):
            receiver, sender = FORK.Pipe(duplex=False)
            process = FORK.Process(target=send_lines, args=(sender, name, start))
            process.start()
            sender.close()
            with contextlib.suppress(EOFError):  # where TensorFlow crashes
                while True:
                    lines.append(receiver.recv())
            process.join()
    OUT.write_bytes(lzma.compress("".join(lines).encode(), preset=9))
    print(len(lines), OUT.stat().st_size)


def send_lines(sender: Any, name: str, start: int) -> None:
    for seed in range(start, start + AT_ONCE):
        sequence = Sequence(seed)
        DRAWS[name](sequence)
        if is_right(sequence.steps):
            one = {"name": f"{name}_{seed}", "steps": sequence.steps}
            sender.send(json.dumps(one, separators=(",", ":"), sort_keys=True) + "\n")


DRAWS: dict[str, Callable[[Sequence], None]] = {"ragged": ragged, "lists": lists}


def is_right(steps: Any) -> bool:
    try:
        asked = [{**step, "binds": ours.binds_of(step.get("outputs", []))} for step in steps]
        for answer, step in zip(op_sequence({"steps": asked})["steps"], steps, strict=True):
            ours.check_answer(answer, step)
    except Exception as error:
        print("DIFFERS", json.dumps(steps), repr(error)[:700])
        return False
    return True


if __name__ == "__main__":
    main()
