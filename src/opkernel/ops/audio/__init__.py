"""Ops of the topic: sound."""
