"""Datasets, which are values, and iterators over them, which are resources (tf.data)."""
