"""Graphs that run on the tasks of a cluster: what the client, and what each task, has to do."""
