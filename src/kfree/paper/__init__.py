"""The experiments of the paper, made anew by ``kfree paper``.

Each part of the experiments is a module here, which measures, and a module of the same name in
`chapters`, which tells what came out:

- ``units(settings, dataset)``: the pieces of work for one data set, each of which can be kept;
- ``chapter(settings, datasets, results)``: words, tables and pictures about the results there are.
"""
