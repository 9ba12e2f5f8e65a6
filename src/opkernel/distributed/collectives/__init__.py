"""Collectives whose members are on several tasks: who meets whom, and how tensors travel between them."""
