"""Ops of the topic: image."""
