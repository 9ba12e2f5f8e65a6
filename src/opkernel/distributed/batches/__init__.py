"""Models mapped over data sets.

`data_files` finds the rows of a data set: arrays in memory (`rows`), or files that whoever computes reads (`npz_rows`,
`table_rows`, `image_rows`). `rows` cuts them into batches. `mapped_model` is the model that takes them as `fitting` makes
them, and `outcome` what comes of a batch. `workers` computes batches here or by processes, `ray_data` on a Ray cluster.
`parts` writes what comes of them, so that a later run goes on from there, and `prediction` puts all of it together.
"""
