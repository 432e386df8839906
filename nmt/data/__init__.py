"""Data: parallel text -> batches of ids. `read_table` reads columns of any table."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt.data.tables import read_table

__all__ = ["read_table"]


def __getattr__(name: str) -> Any:
    """Import what is public when it is first asked for: commands that read no table start faster."""
    if name not in __all__:
        raise AttributeError(f"module 'nmt.data' has no attribute '{name}'")
    from nmt.data import tables

    return getattr(tables, name)
