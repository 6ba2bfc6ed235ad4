"""Folders of images: labels from sub-folders, greyscale and colour, and errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from offmap.data import read

GREY = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
COLOUR = np.stack([GREY, GREY // 2, 255 - GREY], axis=-1)


def save(path: Path, image: Image.Image | np.ndarray, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(path, **options)
    return path


def test_sub_folders_are_labels_and_order_is_that_of_paths(tmp_path: Path) -> None:
    save(tmp_path / "dog" / "a.png", GREY + 1)
    save(tmp_path / "cat" / "b.PNG", GREY + 2)
    save(tmp_path / "cat" / "deep" / "a.png", GREY + 3)
    save(tmp_path / ".hidden" / "a.png", COLOUR)
    save(tmp_path / "dog" / "._a.png", COLOUR)
    (tmp_path / "dog" / "notes.txt").write_text("not an image")
    data = read(tmp_path)
    assert data.y is not None
    assert data.y.tolist() == ["cat", "cat", "dog"]
    assert data.X.dtype == np.uint8
    assert np.array_equal(data.X, np.stack([GREY + 2, GREY + 3, GREY + 1]))


def test_flat_folder_has_no_labels(tmp_path: Path) -> None:
    save(tmp_path / "b.png", COLOUR)
    save(tmp_path / "a.png", COLOUR[:, ::-1].copy())
    data = read(tmp_path)
    assert data.y is None
    assert np.array_equal(data.X, np.stack([COLOUR[:, ::-1], COLOUR]))


def test_one_colour_image_makes_all_colour(tmp_path: Path) -> None:
    save(tmp_path / "a.png", GREY)
    save(tmp_path / "b.png", COLOUR)
    data = read(tmp_path)
    assert np.array_equal(data.X, np.stack([np.stack([GREY] * 3, axis=-1), COLOUR]))


def test_modes_of_grey_and_colour(tmp_path: Path) -> None:
    colour, grey = Image.fromarray(COLOUR), Image.fromarray(GREY)
    save(tmp_path / "grey" / "alpha.png", grey.convert("LA"))
    save(tmp_path / "grey" / "bits.png", Image.fromarray(GREY > 100))
    save(tmp_path / "colour" / "alpha.png", colour.convert("RGBA"))
    save(tmp_path / "colour" / "palette.png", colour.quantize(256), transparency=b"\x00\x80")
    bits = np.where(GREY > 100, 255, 0)
    assert np.array_equal(read(tmp_path / "grey").X, np.stack([GREY, bits]))
    alpha, palette = read(tmp_path / "colour").X
    assert np.array_equal(alpha, COLOUR)
    assert np.abs(palette.astype(int) - COLOUR).max() < 8


def test_jpeg_is_turned_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    save(tmp_path / "a.jpg", np.full((8, 16, 3), 90, dtype=np.uint8), exif=exif)
    assert read(tmp_path).X.shape == (1, 16, 8, 3)


def test_odd_size_is_named(tmp_path: Path) -> None:
    for name, image in (("a", GREY), ("b", GREY), ("c", GREY[:2]), ("d", GREY[:1])):
        save(tmp_path / f"{name}.png", image)
    with pytest.raises(ValueError, match=r"c\.png is 4x2, but .*a\.png is 4x3"):
        read(tmp_path)


def test_sixteen_bits_are_refused_not_clipped(tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", GREY.astype(np.uint16) * 200)
    with pytest.raises(ValueError, match=f"{path} .*8 bits per channel"):
        read(tmp_path)


def test_stray_image_beside_sub_folders_is_named(tmp_path: Path) -> None:
    save(tmp_path / "cat" / "a.png", GREY)
    stray = save(tmp_path / "b.png", GREY)
    with pytest.raises(ValueError, match=f"so {stray} must be moved into one of them"):
        read(tmp_path)


def test_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no images"):
        read(tmp_path)


POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 3\n(run) = showpage\n%%EOF\n"


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.jpeg"])
def test_what_is_not_what_its_name_says_is_not_decoded(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: pytest.fail("a process was started"))
    (tmp_path / name).write_bytes(POSTSCRIPT)
    with pytest.raises(ValueError, match=rf"{name} cannot be read as a (PNG|JPEG) image"):
        read(tmp_path)
    for form in ("TIFF", "GIF", "ICO", "BMP", "JPEG" if name == "a.png" else "PNG"):
        Image.fromarray(np.tile(GREY, (8, 8))).save(tmp_path / name, format=form)
        with pytest.raises(ValueError, match=rf"{name} cannot be read as a (PNG|JPEG) image"):
            read(tmp_path)


def test_an_image_of_too_many_pixels_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    Image.new("1", (9_000, 9_000)).save(tmp_path / "a.png")
    with pytest.raises(ValueError, match="it has 9000 x 9000 pixels; at most"):
        read(tmp_path)
