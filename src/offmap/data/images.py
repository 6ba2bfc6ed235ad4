"""Reader of folders of images. Sub-folders are labels."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image, ImageOps

from offmap.data.decoding import decoding
from offmap.data.rows import Data
from offmap.data.table_files import PARQUET_SUFFIXES, SEPARATED_SUFFIXES, TABLE_SUFFIXES

__all__ = ["IMAGE_SUFFIXES", "image_paths", "read_images"]

# The one decoder that a name allows: by content alone Pillow would start Ghostscript for PostScript named .png.
_FORMATS = {".png": ("PNG",), ".jpg": ("JPEG",), ".jpeg": ("JPEG",)}
IMAGE_SUFFIXES = tuple(_FORMATS)
_SHOWN = 5
_MOST_PIXELS = 1 << 26
_GREY = ("1", "L", "LA")
_COLOUR = ("P", "RGB", "RGBA", "CMYK", "YCbCr")


def read_images(folder: Path) -> Data:
    """Reads the PNG and JPEG images of a folder, sorted by path.

    The label of an image is the name of its sub-folder; images directly in the folder have no labels. All images must
    have the same size. The shape is ``(n, h, w)`` if all are greyscale, else ``(n, h, w, 3)``; transparency is dropped.

    Args:
        folder: The folder.
    """
    paths = image_paths(folder)
    images = [_read_image(path) for path in paths]
    _require_one_size(paths, images)
    if any(image.mode == "RGB" for image in images):
        images = [image.convert("RGB") for image in images]
    files = pd.DataFrame({"file": [path.relative_to(folder).as_posix() for path in paths]})
    stacked = np.stack([np.asarray(image) for image in images])
    return Data(stacked, _folder_labels(folder, paths), name=str(folder), identity=files)


def image_paths(folder: Path) -> list[Path]:
    """The images of a folder in the order of their paths.

    Raises:
        ValueError: There is none; the message says what the folder holds instead, and what reads that.
    """
    shown = [path for path in folder.rglob("*") if not _is_hidden(path.relative_to(folder))]
    paths = sorted(path for path in shown if path.suffix.lower() in IMAGE_SUFFIXES)
    if not paths:
        others = sorted({_ending(path) for path in shown if path.is_file()})
        raise ValueError(f"{folder} holds no images ({', '.join(IMAGE_SUFFIXES)}) {_instead(others)}")
    return paths


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _ending(path: Path) -> str:
    known = next((suffix for suffix in (".csv.gz", ".tsv.gz") if path.name.lower().endswith(suffix)), "")
    return known or path.suffix.lower() or path.name


def _instead(endings: list[str]) -> str:
    """What a folder without images holds, and what reads it."""
    if not endings:
        return "and no other file"
    held = f"but files that end in {', '.join(endings[:_SHOWN])}"
    readers = []
    if not {*endings}.isdisjoint((*SEPARATED_SUFFIXES, *PARQUET_SUFFIXES)):
        readers.append("read the folder with offmap score --out")
    if not {*endings}.isdisjoint(PARQUET_SUFFIXES):
        readers.append("train on it with offmap fit --stream")
    table = not {*endings}.isdisjoint(TABLE_SUFFIXES)
    return f"{held}; {', or '.join(['give one file', *readers])}" if table else held


def _read_image(path: Path) -> Image.Image:
    formats = _FORMATS[path.suffix.lower()]
    with decoding(path, f"a {formats[0]} image"), _quiet_about_size(), Image.open(path, formats=formats) as image:
        if image.width * image.height > _MOST_PIXELS:
            raise ValueError(f"it has {image.width} x {image.height} pixels; at most {_MOST_PIXELS:,} are read")
        if image.mode not in _GREY + _COLOUR:
            raise ValueError(f"its mode is {image.mode}; 8 bits per channel are expected")
        # A palette may hold transparent entries, which only RGBA can express.
        upright = ImageOps.exif_transpose(image.convert("RGBA") if image.mode == "P" else image)
        return upright.convert("L" if image.mode in _GREY else "RGB")


@contextmanager
def _quiet_about_size() -> Iterator[None]:
    """Pillow warns of large images; ours is a limit, and an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        yield


def _require_one_size(paths: list[Path], images: list[Image.Image]) -> None:
    for path, image in zip(paths, images, strict=True):
        if image.size != images[0].size:
            expected, found = ("x".join(map(str, one.size)) for one in (images[0], image))
            raise ValueError(f"all images must have the same size: {path} is {found}, but {paths[0]} is {expected}")


def _folder_labels(folder: Path, paths: list[Path]) -> NDArray[Any] | None:
    parents = [path.relative_to(folder).parts[:-1] for path in paths]
    if not any(parents):
        return None
    if not all(parents):
        stray = paths[parents.index(())]
        raise ValueError(f"{folder} has images in sub-folders, so {stray} must be moved into one of them")
    return np.array([parent[0] for parent in parents])
