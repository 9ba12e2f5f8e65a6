"""Ops on ragged tensors: flat values, and for each ragged dimension where its rows begin."""
