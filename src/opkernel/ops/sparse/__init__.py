"""Ops of the topic: sparse tensors, in three tensors each: indices [n, r], values [n], shape [r]."""
