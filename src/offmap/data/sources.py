"""The file formats of the named data sets. A source lists the files it needs and reads them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sklearn.datasets

from offmap.data.arrays import read_idx, read_npz_keys
from offmap.data.rows import Data, as_texts
from offmap.data.store import File
from offmap.data.tables import read_frame

__all__ = ["BundledImages", "BundledTable", "IdxSource", "NpzSource", "Source", "TextSource"]


class Source(ABC):
    """One way to store one split of a data set."""

    @property
    @abstractmethod
    def files(self) -> tuple[File, ...]:
        """The files that must be found."""

    @abstractmethod
    def read(self, paths: Sequence[Path]) -> Data:
        """Reads the split from the paths of ``files``, in the same order."""


@dataclass(frozen=True)
class NpzSource(Source):
    """Rows, labels and optionally class names, under three keys of an ``.npz`` archive."""

    file: File
    x: str
    y: str
    names: str | None = None

    @property
    def files(self) -> tuple[File, ...]:
        """The archive."""
        return (self.file,)

    def read(self, paths: Sequence[Path]) -> Data:
        """Reads the arrays of the archive."""
        keys = [self.x, self.y] + ([self.names] if self.names else [])
        rows, labels, *names = read_npz_keys(paths[0], keys)
        if rows.ndim == 2:
            # Integer features may be stored as bytes, which the estimators would take for grey levels.
            rows = rows.astype(np.float64)
        return Data(rows, labels, class_names=tuple(names[0].tolist()) if names else ())


@dataclass(frozen=True)
class IdxSource(Source):
    """Images and labels in two gzipped idx files."""

    images: File
    labels: File

    @property
    def files(self) -> tuple[File, ...]:
        """The two files."""
        return (self.images, self.labels)

    def read(self, paths: Sequence[Path]) -> Data:
        """Reads both files."""
        return Data(read_idx(paths[0]), read_idx(paths[1]).astype(np.int64))


@dataclass(frozen=True)
class TextSource(Source):
    """Texts and labels in two columns of a table, optionally of the rows with one value of the column ``split``."""

    file: File
    label: str = "label"
    split: str | None = None

    @property
    def files(self) -> tuple[File, ...]:
        """The table."""
        return (self.file,)

    def read(self, paths: Sequence[Path]) -> Data:
        """Reads the columns."""
        frame = read_frame(paths[0], strings=("text", self.label))
        if self.split is not None:
            frame = frame[frame["split"] == self.split]
        return Data(as_texts(frame["text"]), frame[self.label].to_numpy(dtype=str))


@dataclass(frozen=True)
class BundledTable(Source):
    """Features and labels that come with scikit-learn, by the name of their loader."""

    loader: str

    @property
    def files(self) -> tuple[File, ...]:
        """None: the data come with scikit-learn."""
        return ()

    def read(self, paths: Sequence[Path]) -> Data:
        """Reads features and labels."""
        bunch = getattr(sklearn.datasets, self.loader)()
        return Data(bunch.data, bunch.target, class_names=tuple(map(str, bunch.target_names)))


@dataclass(frozen=True)
class BundledImages(Source):
    """The 8x8 digits that come with scikit-learn, scaled to [0, 1]."""

    @property
    def files(self) -> tuple[File, ...]:
        """None: the data come with scikit-learn."""
        return ()

    def read(self, paths: Sequence[Path]) -> Data:
        """Reads images and labels."""
        bunch = sklearn.datasets.load_digits()
        return Data((bunch.images / 16.0).astype(np.float32), bunch.target)
