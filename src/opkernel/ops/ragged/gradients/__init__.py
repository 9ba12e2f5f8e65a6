"""Gradients of the ops on ragged tensors."""
