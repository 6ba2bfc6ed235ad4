"""Tables of numbers, categories, truth values, dates and gaps as feature rows."""

from offmap.data.table.encoder import ColumnsLeftOut, TableEncoder, needs_encoding
from offmap.data.table.problems import require_sound

__all__ = ["ColumnsLeftOut", "TableEncoder", "needs_encoding", "require_sound"]
