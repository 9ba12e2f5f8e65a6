"""Engines that compile clusters with libraries of others; each stands in a package of its own."""
