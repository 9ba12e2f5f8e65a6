"""Ops that parse: raw bytes, CSV, compressed text, tensors, and Example messages."""
