"""The cache of embeddings: what it finds again, and what may happen to its file."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from offmap.data import TextEncoder
from offmap.data.text_cache import CacheWarning, Embedding, EmbeddingCache, cache_file

pytest.importorskip("sentence_transformers", reason="needs the extra text")

TEXTS = [f"question {n} about my card" for n in range(80)]


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def some(start: int, stop: int) -> dict[bytes, Embedding]:
    return {key(n): Embedding(np.full(5, n, dtype=np.float32), n % 2 == 0) for n in range(start, stop)}


def test_what_is_kept_is_found_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "x.embeddings"
    with EmbeddingCache(path) as cache:
        assert cache.find([key(1)]) == {}
        cache.keep(some(0, 1200))
        cache.keep({key(3): Embedding(np.zeros(5, dtype=np.float32), True)})
    with EmbeddingCache(path) as cache:
        found = cache.find(key(n) for n in range(3, 1300))
    assert found.keys() == some(3, 1200).keys()
    for name, (vector, cut) in some(3, 1200).items():
        np.testing.assert_array_equal(found[name].vector, vector)
        assert found[name].cut is cut


def test_known_texts_are_not_run_again_and_come_much_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = TextEncoder()
    encoder.transform("the model is loaded")
    start = time.perf_counter()
    vectors = encoder.transform(TEXTS)
    middle = time.perf_counter()
    again = encoder.transform(TEXTS)
    assert middle - start > 20 * (time.perf_counter() - middle)
    np.testing.assert_array_equal(again, vectors)

    ran: list[str] = []

    def run(_: object, texts: list[str], part: object) -> NDArray[np.float32]:
        ran.extend(texts)
        return np.ones((1, 384), dtype=np.float32)

    monkeypatch.setattr("offmap.data.text_model.encoded", run)
    np.testing.assert_array_equal(TextEncoder().transform([TEXTS[3], "new", TEXTS[1]])[[0, 2]], vectors[[3, 1]])
    assert ran == ["new"]


def test_where_the_file_lies(tmp_path: Path, embeddings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_file(False, "minilm", "0" * 64) is None
    assert cache_file(True, "minilm", "ab" * 32) == embeddings / f"minilm.{'ab' * 12}.embeddings"
    assert cache_file("~/kept", "a/b c", "0" * 64) == Path.home() / "kept" / f"a-b-c.{'0' * 24}.embeddings"
    monkeypatch.delenv("OFFMAP_CACHE")
    usual = cache_file(True, "minilm", "ab" * 32)
    assert usual is not None
    assert usual.parent.parts[-2:] == ("offmap", "embeddings")
    TextEncoder(cache=False).transform("hello")
    TextEncoder(cache=str(tmp_path / "own")).transform("hello")
    assert [path.name.partition(".")[0] for path in (tmp_path / "own").iterdir()] == ["minilm"]
    assert not embeddings.exists()


def overwrite(path: Path) -> None:
    path.write_bytes(b"this is no database" * 1000)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path) -> None:
    """Changes bytes of the vectors alone, which SQLite does not notice."""
    content = bytearray(path.read_bytes())
    content[-3000:-2000] = bytes(255 - byte for byte in content[-3000:-2000])
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [overwrite, truncate, flip])
def test_a_damaged_file_is_made_anew(damage: Callable[[Path], None], embeddings: Path) -> None:
    vectors = TextEncoder().transform(TEXTS)
    (path,) = embeddings.iterdir()
    damage(path)
    with pytest.warns(CacheWarning, match="is damaged and was removed") as told:
        np.testing.assert_array_equal(TextEncoder().transform(TEXTS), vectors)
    assert told[0].filename == __file__
    with EmbeddingCache(path) as cache:
        assert cache._attempt(lambda base: base.execute("SELECT count(*) FROM embeddings").fetchone(), None) == (80,)
    np.testing.assert_array_equal(TextEncoder().transform(TEXTS), vectors)


def test_a_folder_that_cannot_be_used_costs_a_warning_only(embeddings: Path) -> None:
    embeddings.parent.write_text("a file where the folder should be")
    with pytest.warns(CacheWarning, match="cannot be used") as told:
        vectors = TextEncoder().transform(TEXTS[:20])
    assert (len(told), told[0].filename) == (1, __file__)
    np.testing.assert_array_equal(vectors, TextEncoder(cache=False).transform(TEXTS[:20]))


def test_the_files_unused_for_longest_make_room(tmp_path: Path) -> None:
    (tmp_path / "mine.sqlite").write_text("not a cache")
    for number in range(40):
        with EmbeddingCache(tmp_path / f"{number}.embeddings") as cache:
            cache.keep(some(0, 1))
        os.utime(tmp_path / f"{number}.embeddings", (number + 1, number + 1))
        with EmbeddingCache(tmp_path / "0.embeddings") as cache:
            assert cache.find([key(0)])
    left = {path.stem for path in tmp_path.glob("*.embeddings")}
    assert left == {"0", *map(str, range(9, 40))}
    assert (tmp_path / "mine.sqlite").exists()


def test_many_may_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.embeddings"

    def write(first: int) -> None:
        for start in range(first, 200, 10):
            with EmbeddingCache(path) as cache:
                cache.keep(some(start, start + 30))
                assert len(cache.find(some(start, start + 30))) == 30

    writers = [threading.Thread(target=write, args=(first,)) for first in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    with EmbeddingCache(path) as cache:
        assert len(cache.find(some(0, 225))) == 225


WRITER = """
import sys
from pathlib import Path
import numpy as np
from offmap.data.text_cache import Embedding, EmbeddingCache
with EmbeddingCache(Path(sys.argv[1])) as cache:
    for n in range(10**9):
        cache.keep({n.to_bytes(32, "big"): Embedding(np.full(384, n, dtype=np.float32), False)})
        if n == 100:
            print("under way", flush=True)
"""


def test_a_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "x.embeddings"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with EmbeddingCache(path) as cache:
            cache.keep({b"mine": Embedding(np.zeros(3, dtype=np.float32), False)})
        writer.send_signal(signal.SIGKILL)
    with EmbeddingCache(path) as cache:
        found = cache.find([b"mine", *map(key, range(101))])
        assert len(found) == 102
        assert all((found[key(n)].vector == n).all() for n in range(101))
        cache.keep({b"more": Embedding(np.zeros(3, dtype=np.float32), False)})
        assert cache._attempt(lambda base: base.execute("PRAGMA integrity_check").fetchone(), None) == ("ok",)
