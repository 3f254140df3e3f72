"""Training rows in shards: what is computed on each, and how the results are put together.

Plain functions on frozen records. Whoever has several machines gives each some of the shards and
carries the records between them (`kfree.dask`); nothing here knows of machines. The rows of a shard
stand in the order of the whole, and a neighbor is known by its place in the whole, so that lists
come out as they do on one machine, ties included.
"""
