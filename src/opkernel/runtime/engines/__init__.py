"""Engines: compilers that take over parts of graphs."""
