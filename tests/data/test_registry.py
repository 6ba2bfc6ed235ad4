"""The registry on toy data sets: lookup order, checksums, errors and file formats."""

import gzip
import hashlib
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from offmap.data import DataCorrupt, DataNotFound, Listing, describe, load, load_table, names, store
from offmap.data.dataset import DataSet, Split, Table
from offmap.data.registry import CATALOGUE
from offmap.data.sources import IdxSource, NpzSource, TextSource
from offmap.data.store import File

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 4, 3), dtype=np.uint8)
LABELS = np.array([2, 0, 1, 1, 0])


class Places:
    """A data folder and a cache for one test, with toy data sets in them."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.data, self.cache, self.official = root / "data", root / "cache", root / "official"
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("OFFMAP_DATA", str(self.data))
        for module in ("store", "download"):
            monkeypatch.setattr(f"offmap.data.{module}.cache_folder", lambda: self.cache)

    def put(self, folder: Path, name: str, content: bytes) -> File:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        return File(name, hashlib.sha256(content).hexdigest(), (folder / name).as_uri())

    def npz(self, folder: Path) -> File:
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(folder / "toy.npz", x_test=IMAGES, y_test=LABELS, names=np.array(["a", "b", "c"]))
        return replace(self.put(folder, "toy.npz", (folder / "toy.npz").read_bytes()), url=None)

    def idx(self) -> IdxSource:
        images = b"\x00\x00\x08\x03" + np.array(IMAGES.shape, ">i4").tobytes() + IMAGES.tobytes()
        labels = b"\x00\x00\x08\x01" + np.array(LABELS.shape, ">i4").tobytes() + LABELS.astype(np.uint8).tobytes()
        return IdxSource(
            self.put(self.official, "toy/i.gz", gzip.compress(images)),
            self.put(self.official, "toy/l.gz", gzip.compress(labels)),
        )

    def declare(self, **fields: object) -> None:
        toy = DataSet("toy", "images", "toys", "MIT", "https://toys.example")
        self._monkeypatch.setitem(CATALOGUE, "toy", replace(toy, **fields))  # type: ignore[arg-type]


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    return Places(tmp_path, monkeypatch)


def listing(name: str) -> Listing:
    return next(each for each in describe() if each.name == name)


def test_folder_of_the_environment_goes_before_the_cache(places: Places) -> None:
    file = places.npz(places.cache)
    places.declare(splits=(Split("test", 5, (NpzSource(file, "x_test", "y_test", "names"),)),))
    assert listing("toy").where == str(places.cache)
    data = load("toy")
    assert np.array_equal(data.X, IMAGES)
    assert data.y is not None
    assert data.y.tolist() == LABELS.tolist()
    assert (data.name, data.class_names) == ("toy", ("a", "b", "c"))
    places.npz(places.data)
    assert listing("toy").where == str(places.data)


def test_decoded_arrays_are_shared_and_read_only(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    file = places.npz(places.data)
    places.declare(splits=(Split("test", 5, (NpzSource(file, "x_test", "y_test"),)),))
    first = load("toy")
    monkeypatch.setattr("offmap.data.sources.read_npz_keys", None)
    monkeypatch.setattr("hashlib.file_digest", None)
    assert load("toy").X is first.X
    with pytest.raises(ValueError, match="read-only"):
        first.X[0] = 0


def test_changed_file_is_refused_naming_both_checksums(places: Places) -> None:
    file = places.npz(places.data)
    places.declare(splits=(Split("test", 5, (NpzSource(file, "x_test", "y_test"),)),))
    load("toy")
    path = places.data / "toy.npz"
    content = bytearray(path.read_bytes())
    content[-30] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(1, 1))
    found = hashlib.sha256(content).hexdigest()
    with pytest.raises(DataCorrupt, match=f"{path} .* sha256 is {found}, expected {file.sha256}"):
        load("toy")


def test_missing_set_says_where_it_looked_and_what_to_do(places: Places) -> None:
    places.declare(splits=(Split("test", 5, (NpzSource(File("toy.npz", "0" * 64), "x_test", "y_test"),)),))
    with pytest.raises(DataNotFound) as caught:
        load("toy")
    for part in ("'toy'", "toy.npz", str(places.data), str(places.cache), "OFFMAP_DATA", "https://toys.example"):
        assert part in str(caught.value)
    assert isinstance(caught.value, FileNotFoundError)
    assert listing("toy").found is False
    assert listing("toy").where == "not found; derived from https://toys.example"


def test_official_files_are_fetched_when_nothing_is_found(places: Places) -> None:
    idx = places.idx()
    packed = NpzSource(File("toy.npz", "0" * 64), "x_test", "y_test")
    places.declare(splits=(Split("test", 5, (packed, idx)),), class_names=("a", "b", "c"))
    assert listing("toy").where == "downloads on first use from https://toys.example"
    data = load("toy", "test")
    assert np.array_equal(data.X, IMAGES)
    assert data.y is not None
    assert (data.y.dtype.name, data.y.tolist()) == ("int64", LABELS.tolist())
    assert listing("toy").found
    for file in places.official.rglob("*.gz"):
        file.unlink()
    assert load("toy").X is data.X


def test_failed_download_says_where_it_looked_too(places: Places) -> None:
    idx = places.idx()
    (places.official / "toy" / "l.gz").unlink()
    places.declare(splits=(Split("test", 5, (idx,)),))
    with pytest.raises(DataNotFound, match=rf"no toy/i.gz and toy/l.gz in {places.data} or .* could not be downloaded"):
        load("toy")


def test_texts_are_read_as_they_stand(places: Places) -> None:
    lines = 'text\tlabel\tsplit\n"quoted\tNA\ttrain\n1\tnull\tval\n2\t7\ttrain\n'
    file = places.put(places.data, "toy.tsv.gz", gzip.compress(lines.encode()))
    places.declare(
        splits=(
            Split("val", 1, (TextSource(file, split="val"),)),
            Split("train", 2, (TextSource(file, split="train"),)),
        )
    )
    train, val = load("toy"), load("toy", "val")
    assert train.X.tolist() == ['"quoted', "2"]
    assert train.y is not None
    assert train.y.tolist() == ["NA", "7"]
    assert val.X.tolist() == ["1"]


def test_features_are_floats_however_they_are_stored(places: Places) -> None:
    places.data.mkdir()
    np.savez(places.data / "toy.npz", X=IMAGES.reshape(5, 12), y=LABELS)
    file = places.put(places.data, "toy.npz", (places.data / "toy.npz").read_bytes())
    places.declare(splits=(Split("all", 5, (NpzSource(file, "X", "y"),)),))
    assert load("toy").X.dtype == np.float64
    assert load("toy").kind == "features"


def test_tables_keep_codes_as_strings_and_are_copies(places: Places) -> None:
    first = Table("codes", 2, places.put(places.data, "codes.csv", b"code,n\n007,1\n100,2\n"), ("code",))
    second = Table("others", 1, places.put(places.data, "others.csv", b"n\n1\n"))
    places.declare(kind="tables", tables=(first, second))
    frame = load_table("toy", "codes")
    assert frame["code"].tolist() == ["007", "100"]
    frame.loc[0, "n"] = 99
    assert load_table("toy", "codes")["n"].tolist() == [1, 2]
    for table in (None, "gone"):
        with pytest.raises(ValueError, match="must be one of 'codes', 'others'"):
            load_table("toy", table)
    with pytest.raises(ValueError, match="use load_table"):
        load("toy")


def test_idx_of_other_content_is_refused(places: Places) -> None:
    file = places.put(places.data, "i.gz", gzip.compress(b"\x00\x00\x0d\x01\x00\x00\x00\x01rest"))
    places.declare(splits=(Split("all", 1, (IdxSource(file, file),)),))
    with pytest.raises(ValueError, match=r"i\.gz cannot be read as a gzipped idx file"):
        load("toy")


def test_bundled_sets_need_no_files(places: Places) -> None:
    for name in ("digits", "breast-cancer", "wine", "iris"):
        data, entry = load(name), listing(name)
        assert (len(data), data.kind) == (entry.rows["all"], entry.kind)
        assert entry.found
        assert data.y is not None
        assert len(data.class_names) == len(np.unique(data.y))
    digits = load("digits").X
    assert (digits.min(), digits.max()) == (0.0, 1.0)


def test_errors_of_wrong_names_list_the_right_ones() -> None:
    with pytest.raises(ValueError, match="not 'fashion_mnist'; did you mean 'fashion-mnist'"):
        load("fashion_mnist")
    with pytest.raises(ValueError, match="lists the data sets"):
        load("zzz")
    with pytest.raises(ValueError, match="split of 'mnist' must be one of 'train', 'test', not 'val'"):
        load("mnist", "val")
    with pytest.raises(ValueError, match="holds no tables: use load"):
        load_table("digits")


def test_folders_are_environment_then_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFMAP_DATA", "~/sets")
    assert store.folders() == (Path.home() / "sets", store.cache_folder())
    monkeypatch.delenv("OFFMAP_DATA")
    assert store.folders() == (store.cache_folder(),)


def test_every_entry_is_complete() -> None:
    assert len(names()) == 9 + 8 + 3 + 29
    for name, data_set in CATALOGUE.items():
        assert name == name.lower() == data_set.name
        assert data_set.about
        assert data_set.licence
        assert data_set.origin
        assert bool(data_set.splits) != bool(data_set.tables)
        files = [file for part in data_set.alternatives for files in part for file in files]
        assert all(len(bytes.fromhex(file.sha256)) == 32 for file in files)
