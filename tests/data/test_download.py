"""Downloads from file:// addresses: the final name appears only after the checksum is verified."""

import hashlib
import os
from pathlib import Path

import pytest

from offmap.data import DataCorrupt, DataNotFound
from offmap.data.download import download
from offmap.data.store import File

CONTENT = bytes(range(256)) * 10_000


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("offmap.data.download.cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def address(tmp_path: Path) -> str:
    (tmp_path / "official.bin").write_bytes(CONTENT)
    return (tmp_path / "official.bin").as_uri()


def files_in(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


def test_download_arrives_whole_and_alone(cache: Path, address: str) -> None:
    path = download(File("set/rows.bin", hashlib.sha256(CONTENT).hexdigest(), address))
    assert path == cache / "set" / "rows.bin"
    assert path.read_bytes() == CONTENT
    assert files_in(cache) == ["rows.bin"]


def test_wrong_bytes_never_get_the_final_name(cache: Path, address: str) -> None:
    found, expected = hashlib.sha256(CONTENT).hexdigest(), "0" * 64
    with pytest.raises(DataCorrupt, match=f"{address} .* sha256 is {found}, expected {expected}"):
        download(File("set/rows.bin", expected, address))
    assert files_in(cache) == []


def test_wrong_bytes_leave_an_older_file_alone(cache: Path, address: str) -> None:
    (cache / "set").mkdir(parents=True)
    (cache / "set" / "rows.bin").write_bytes(b"older")
    with pytest.raises(DataCorrupt):
        download(File("set/rows.bin", "0" * 64, address))
    assert (cache / "set" / "rows.bin").read_bytes() == b"older"


def test_checksum_comes_before_the_rename(cache: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    renamed: list[bytes] = []

    def replace(source: Path, target: Path) -> None:
        assert not target.exists()
        renamed.append(source.read_bytes())

    monkeypatch.setattr(os, "replace", replace)
    download(File("rows.bin", hashlib.sha256(CONTENT).hexdigest(), address))
    assert renamed == [CONTENT]
    assert files_in(cache) == []


def test_silent_address_is_named(cache: Path, tmp_path: Path) -> None:
    address = (tmp_path / "gone.bin").as_uri()
    with pytest.raises(DataNotFound, match=f"{address} could not be downloaded to .*rows.bin"):
        download(File("rows.bin", "0" * 64, address))
    assert files_in(cache) == []
