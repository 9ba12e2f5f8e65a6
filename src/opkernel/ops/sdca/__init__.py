"""Stochastic dual coordinate ascent: linear models that are trained by their dual variables."""
