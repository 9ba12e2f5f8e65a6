"""Readers: resources that read records from the files that a queue names."""
