"""Ops of TensorFlow's debugger: tensors passed on and published in files, counts of NaNs, summaries of numbers."""
