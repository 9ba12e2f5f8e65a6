"""The SavedModel format: its directory, its MetaGraphs, its object graph."""
