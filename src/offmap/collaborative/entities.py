"""The table of entities: their ids and a few numbers for each, in buffers that grow."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from offmap.collaborative.ids import Ids, Places, same_kind

# New ids wait unsorted until they are so many, or a sixteenth of the sorted ones: then all are sorted anew.
_LONGEST_TAIL = 1024
Columns = dict[str, Tensor]


class EntityTable(nn.Module):
    """Finds entities by id and keeps one row per entity in every column; adding one takes constant time on average.

    It is a module, so that it is saved as the tensors it consists of.

    Args:
        widths: Numbers per entity in each column, by the name of the column.
        dtypes: Type of the columns that are not ``float32``.

    Example:
        >>> table = EntityTable({"level": 2})
        >>> table.add(np.array([7, 3]), {"level": torch.ones(2, 2)})
        >>> table.find(np.array([3, 5, 7]))
        array([ 1, -1,  0])
    """

    def __init__(self, widths: Mapping[str, int], dtypes: Mapping[str, torch.dtype] | None = None) -> None:
        super().__init__()
        self.widths = dict(widths)
        self.length = 0
        self._ids: Ids = np.empty(0, dtype=np.int64)
        self._order: Places = np.empty(0, dtype=np.int64)
        self._sorted: Ids = self._ids
        for name, width in widths.items():
            self.register_buffer(name, torch.zeros(0, width, dtype=(dtypes or {}).get(name, torch.float32)))

    def __len__(self) -> int:
        return self.length

    @property
    def ids(self) -> Ids:
        """The id at each place, as it is stored."""
        return self._ids[: self.length]

    @property
    def counts(self) -> Tensor:
        """The number of rows that each entity was learnt from."""
        return self.column("count")[:, 0]

    def column(self, name: str) -> Tensor:
        """The rows of all entities in the column ``name``; writing to it changes the table."""
        return self.get_buffer(name)[: self.length]

    def find(self, ids: Ids) -> Places:
        """The place of each id; -1 where there is none."""
        same_kind(self._ids, ids)
        # Cut to the width of the ids that are known: otherwise NumPy widens all of those for one long string.
        fitting = ids.astype(self._ids.dtype)
        places = _lookup(self._sorted, self._order, fitting)
        tail = self.ids[len(self._sorted) :]
        if len(tail) and (places < 0).any():
            order = np.argsort(tail, kind="stable")
            places[places < 0] = _lookup(tail[order], order + len(self._sorted), fitting[places < 0])
        return np.where(fitting == ids, places, -1)

    def add(self, ids: Ids, rows: Mapping[str, Tensor]) -> None:
        """Appends entities whose ids are new and differ from one another, with their rows in every column."""
        before, after = self.length, self.length + len(ids)
        self._reserve(after, ids)
        self._ids[before:after] = ids
        for name in self.widths:
            self.get_buffer(name)[before:after] = rows[name]
        self.length = after
        if after - len(self._sorted) > max(_LONGEST_TAIL, len(self._sorted) // 16):
            self._sort()

    def remove(self, places: Places) -> None:
        """Forgets the entities at ``places``; the others keep their order."""
        kept = np.setdiff1d(np.arange(self.length), places)
        self._ids = self.ids[kept]
        for name in self.widths:
            setattr(self, name, self.get_buffer(name)[torch.from_numpy(kept)])
        self.length = len(kept)
        self._sort()

    def _reserve(self, length: int, ids: Ids) -> None:
        """Makes room for ``length`` entities, at least twice what there was, and for longer strings."""
        capacity = len(self._ids) if length <= len(self._ids) else max(length, 2 * len(self._ids))
        dtype = np.promote_types(self._ids.dtype, ids.dtype) if self.length else ids.dtype
        if capacity == len(self._ids) and dtype == self._ids.dtype:
            return
        grown = np.zeros(capacity, dtype=dtype)
        grown[: self.length] = self.ids
        self._ids = grown
        for name, width in self.widths.items():
            old = self.get_buffer(name)
            if len(old) < capacity:
                new = old.new_zeros(capacity, width)
                new[: self.length] = old[: self.length]
                setattr(self, name, new)

    def _sort(self) -> None:
        self._order = np.argsort(self.ids, kind="stable")
        self._sorted = self.ids[self._order]

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        ids = self.ids
        if ids.dtype.kind == "S":
            ids = np.ascontiguousarray(ids).view(np.uint8).reshape(len(ids), -1)
        destination[f"{prefix}ids"] = torch.from_numpy(ids.copy())
        for name in self.widths:
            destination[f"{prefix}{name}"] = self.column(name).clone()

    def _load_from_state_dict(self, state: Any, prefix: str, *_: Any) -> None:
        ids: Ids = state[f"{prefix}ids"].cpu().numpy()
        if ids.dtype == np.uint8:
            ids = np.ascontiguousarray(ids).view(f"S{ids.shape[1]}").ravel()
        columns = {name: state[f"{prefix}{name}"] for name in self.widths}
        shapes = {name: (len(ids), width) for name, width in self.widths.items()}
        if ids.ndim != 1 or ids.dtype.kind not in "iS" or len(ids) < 1:
            raise ValueError("the ids of entities must be flat, and at least one")
        if {name: tuple(column.shape) for name, column in columns.items()} != shapes:
            raise ValueError(f"the table of entities must have columns of the shapes {shapes}")
        self.length = 0
        self.add(ids, columns)
        self._sort()


def _lookup(ordered: Ids, places: Places, ids: Ids) -> Places:
    """The place of each id among those in ascending order; -1 where there is none."""
    if len(ordered) == 0:
        return np.full(len(ids), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(ordered, ids), len(ordered) - 1)
    return np.where(ordered[at] == ids, places[at], -1)
