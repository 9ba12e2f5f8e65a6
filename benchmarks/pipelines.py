"""How fast pipelines of `opkernel.data` are, beside `tf.data`.

    python benchmarks/pipelines.py --tensorflow PYTHON_WITH_TENSORFLOW [--rows WORD ...]
                                   [--rounds N] [--json FILE]

Both make the same pipelines (`pipeline_rows.py`) of the same tensors and files, once. A step takes all elements: in
Python's `for`, but where the row says otherwise. Prints what `catalogue.py` does for each row; the ratio is that of the
elements a second. The aim is 0.5 for pipelines of real work, 0.2 for trivial ones.
"""

from catalogue import compare

if __name__ == "__main__":
    compare("pipeline_rows", __doc__)
