"""Ops of the topic: numbers stored as integers of few bits, and the range that they stand for."""
