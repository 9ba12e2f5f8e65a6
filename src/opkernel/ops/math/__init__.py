"""Ops of the topic: math."""
