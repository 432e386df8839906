"""Data: parallel text -> batches of ids. `read_table` reads columns of any table."""

from nmt.data.tables import read_table

__all__ = ["read_table"]
