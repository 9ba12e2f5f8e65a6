"""How many of the calls that were recorded from TensorFlow each op answers right.

`tools/record_vectors.py` writes `vectors.txt`: an op, the calls that are right, and all, a line.
"""

import functools
import os


@functools.cache
def recorded_vectors() -> dict[str, tuple[int, int]]:
    """Of each op with recorded calls: how many are answered right, and how many there are."""
    file = os.path.join(os.path.dirname(__file__), "vectors.txt")
    with open(file, encoding="utf-8") as stored:
        rows = [line.split() for line in stored]
    return {op: (int(right), int(total)) for op, right, total in rows}
