"""Ops of the topic: signals."""
