"""Ops that make summaries for TensorBoard, and ops that write event files."""
