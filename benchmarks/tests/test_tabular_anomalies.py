"""The table of anomalies in features: who is trained on what, and which way each library's scores point."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.neighbors import LocalOutlierFactor

from offmap.data import Data, names
from offmap.density import VAEDetector
from offmap_bench import rivals
from offmap_bench.tables import tabular_anomalies
from offmap_bench.tables.tabular_anomalies import (
    COMPARED,
    SETS,
    Contender,
    FromPyOD,
    measure,
    rows_of,
    split,
    standardised,
)

NORMAL, ANOMALIES = 200, 30


@pytest.fixture
def shifted(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A set of normal rows around 0, anomalies around 4 in wider features, and one feature that numbers the rows."""
    rng = np.random.default_rng(0)
    features = np.concatenate([rng.normal(size=(NORMAL, 3)), rng.normal(4, 1, size=(ANOMALIES, 3))]) * [1, 10, 100]
    number = np.arange(NORMAL + ANOMALIES)
    order = rng.permutation(len(number))
    labels = (number >= NORMAL).astype(np.int64)
    data = Data(np.column_stack([features, number % NORMAL])[order], labels[order], name="shifted")
    monkeypatch.setattr(tabular_anomalies, "load", lambda name: data)
    rows_of.cache_clear()
    yield "shifted"
    rows_of.cache_clear()


def test_seven_tenths_of_the_normal_rows_train_and_all_others_are_tested(shifted: str) -> None:
    training, normal, anomalies = split(shifted, 0, None)
    assert (len(training), len(normal), len(anomalies)) == (140, 60, ANOMALIES)
    np.testing.assert_array_equal(np.sort(np.concatenate([training, normal])[:, 3]), np.arange(NORMAL))
    assert anomalies[:, 0].mean() > 3 > np.concatenate([training, normal])[:, 0].mean() + 2


def test_each_group_is_cut_to_the_same_number_of_rows_and_seeds_draw_others(shifted: str) -> None:
    assert [len(rows) for rows in split(shifted, 0, 20)] == [20, 20, 20]
    whole, cut = split(shifted, 0, None), split(shifted, 0, 20)
    for all_rows, some in zip(whole, cut, strict=True):
        np.testing.assert_array_equal(all_rows[:20], some)
    assert not np.array_equal(split(shifted, 1, 20)[0], cut[0])


def test_features_are_scaled_by_the_training_rows_alone() -> None:
    training, other = standardised(np.array([[0.0, 5.0], [2.0, 5.0]]), np.array([[5.0, 6.0]]))
    np.testing.assert_allclose(training, [[-1, 0], [1, 0]])
    np.testing.assert_allclose(other, [[4, 1]])


@pytest.mark.parametrize(
    "row", ["NearestNeighborDetector", "IsolationForest", "LOF", "one-class SVM", "ECOD", "COPOD", "KNN"]
)
def test_rivals_find_shifted_rows(shifted: str, row: str) -> None:
    if isinstance(COMPARED.rows[row].method, FromPyOD):
        pytest.importorskip("pyod")
    found = measure(COMPARED.method(row, "cpu"), shifted, seed=0)
    # A score read the wrong way round would be near 0.
    assert found["auroc"] > 0.9
    assert found["aupr"] > 0.8


@pytest.mark.parametrize("row", ["VAEDetector, nearest", "VAEDetector, bpd"])
def test_the_autoencoder_finds_shifted_rows(shifted: str, row: str) -> None:
    contender = COMPARED.method(row, "cpu")
    contender.method.set_params(epochs=5)
    found = measure(contender, shifted, seed=0)
    assert found["auroc"] > 0.9
    assert found["aupr"] > 0.8


def test_a_seed_decides_all(shifted: str) -> None:
    runs = [measure(Contender(VAEDetector(novelty_score="nearest", epochs=1)), shifted, seed) for seed in (3, 3, 4)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_anomalies_are_the_positives_of_aupr(shifted: str) -> None:
    class Indifferent(LocalOutlierFactor):
        def score_samples(self, X: Any) -> Any:
            return np.zeros(len(X))

    found = measure(Contender(Indifferent(novelty=True)), shifted, seed=0)
    assert found["auroc"] == 0.5
    assert found["aupr"] == pytest.approx(ANOMALIES / (ANOMALIES + 60))


def test_without_pyod_the_row_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(rivals, "import_module", missing)
    with pytest.raises(ImportError, match=r"ECOD needs PyOD: pip install --editable './benchmarks\[rivals\]'"):
        FromPyOD("ecod", "ECOD").make()


def test_all_sets_are_known_and_the_full_profile_takes_every_row() -> None:
    assert len(SETS) == 29
    assert set(COMPARED.needs) == {name for name in names() if name.startswith("adbench/")}
    assert COMPARED.method("LOF", "cpu").most_rows == 10_000
    assert all(COMPARED.method(row, "paper").most_rows is None for row in COMPARED.rows)
