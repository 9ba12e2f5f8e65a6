"""Ops of the topic: array."""
