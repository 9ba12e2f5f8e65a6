"""Batches: the calls of several steps, joined so that one call of a function serves them all."""
