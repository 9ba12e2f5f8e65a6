"""Ops of the topic: nn."""
