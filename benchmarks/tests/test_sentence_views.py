"""The table of contrastive text: the thesis's numbers, and that a run measures what it says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from offmap.dependence.views import TokenReader
from offmap_bench import half_precision, mpnet
from offmap_bench.sts import RatedPairs
from offmap_bench.table import Table
from offmap_bench.tables import sentence_views
from offmap_bench.tables.sentence_views import (
    DROPOUT,
    LARGER,
    MANY,
    RESET,
    START,
    TEMPLATES,
    VIEWS,
    RoundedReader,
    measure,
    settings_of,
)

pytest.importorskip("sentence_transformers", reason="needs the extra text")

TINY = {"sentences": 4, "pairs": None, "tune_layers": 1, "batch_size": 4}
PAIRS = RatedPairs(
    ("a cat sleeps", "a cat sleeps", "a cat sleeps", "rain falls"),
    ("a kitten naps", "an animal rests", "shares fell today", "it is raining"),
    np.array([4.5, 3.0, 0.0, 5.0]),
    np.array(["STS12"] * 4, object),
)


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ("a man rides a horse", "the sun is very bright", "we drove to the sea", "she reads an old book", "no")
    monkeypatch.setattr(sentence_views, "sentences", lambda: texts)
    monkeypatch.setattr(sentence_views, "sts_pairs", lambda split, limit: PAIRS)


def test_printed_numbers_stand_where_the_thesis_has_them() -> None:
    assert VIEWS.printed["TC-Tree", DROPOUT, "mean"] == 76.69
    assert VIEWS.printed["MI-fix", TEMPLATES, "STS16"] == 80.60
    assert VIEWS.printed["TC-Tree", TEMPLATES, "SICK-R"] == 70.23
    assert VIEWS.printed["Full-Graph", TEMPLATES, "mean"] == 78.52
    assert not any(column == RESET for _, column, _ in VIEWS.printed)


@pytest.mark.parametrize("column", VIEWS.columns)
def test_an_encoder_is_trained_as_the_column_says(column: str) -> None:
    settings: dict[str, Any] = {**VIEWS.method("TC-Tree", "cpu"), **TINY}
    found = measure(settings, column, seed=0)
    assert found == measure(settings, column, seed=0)
    assert set(found) == {"STS12", "mean"}
    assert found["mean"] == found["STS12"]


def test_templates_have_the_mask_of_the_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpnet, "folder", lambda: Path("mpnet"))
    settings_of.cache_clear()
    larger, smaller = settings_of(TEMPLATES, mpnet.NAME), settings_of(TEMPLATES, "minilm")
    settings_of.cache_clear()
    assert larger["model"] == "mpnet"
    assert [view.text("It rains.").count("<mask>") for view in larger["views"]] == [1] * 4
    assert [view.text("It rains.").count("[MASK]") for view in smaller["views"]] == [1] * 4


@pytest.mark.parametrize("supported", [True, False])
def test_only_the_frozen_layers_are_rounded(supported: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half_precision, "supported", lambda: supported)
    texts = ["a cat sleeps", "it will rain tomorrow in the north of the country"]
    exact, rounded = TokenReader("minilm", 1).states(texts), RoundedReader("minilm", 1).states(texts)
    assert all(state.dtype == torch.float32 for state in rounded)
    assert not torch.is_autocast_enabled("cpu")
    for here, there in zip(exact, rounded, strict=True):
        assert torch.equal(here, there) is not supported
        assert torch.cosine_similarity(here, there).min() > 0.999


@pytest.mark.parametrize("table", [MANY, LARGER], ids=lambda table: table.name)
def test_larger_tables_train_one_layer_on_more_sentences(table: Table) -> None:
    methods = [table.method(name, "cpu") for name in table.rows]
    assert {(method["tune_layers"], method["batch_size"]) for method in methods} == {(1, 64)}
    size = (20_000, None) if table is MANY else (2_000, 1_000)
    assert {(method["sentences"], method["pairs"]) for method in methods} == {size}
    assert [method["epochs"] for method in methods] == [0, 1, 1]


def test_the_first_row_is_not_trained() -> None:
    settings: dict[str, Any] = {**VIEWS.method(START, "cpu"), **TINY}
    assert measure(settings, DROPOUT, seed=0) == measure(settings, DROPOUT, seed=1)
    assert measure(settings, DROPOUT, seed=0)["mean"] == pytest.approx(1)


def test_rows_differ_in_their_strategy_alone() -> None:
    for profile in VIEWS.profiles:
        methods = [VIEWS.method(name, profile) for name in VIEWS.rows if name != START]
        assert len({method["strategy"] for method in methods}) == 5
        for name in ("sentences", "pairs", "tune_layers", "batch_size", "lr", "epochs"):
            assert len({method[name] for method in methods}) == 1
