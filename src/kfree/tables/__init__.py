"""Tables as people have them: files read, a target taken out, columns made ready for distances."""

from kfree.tables.messages import TableError, TableWarning
from kfree.tables.odd_rows import OddRows, without_odd_rows
from kfree.tables.preparation import TablePreparation
from kfree.tables.reading import read_blocks, read_cells
from kfree.tables.target import split_target

__all__ = [
    "OddRows",
    "TableError",
    "TablePreparation",
    "TableWarning",
    "read_blocks",
    "read_cells",
    "split_target",
    "without_odd_rows",
]
