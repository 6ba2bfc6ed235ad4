"""Ids of entities: integers, strings and tuples."""

from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import offmap
from offmap.collaborative import (
    ClosedFormDetector,
    RatioDetector,
)
from offmap.collaborative.ids import check_ids
from offmap.workflow import remove_entities
from tests.collaborative.problems import ring, small


def test_strings_are_ids_too(tmp_path: Path) -> None:
    X, entities = ring()
    names = np.array(["ant", "bee", "cicada", "dragonfly", "earwig", "flé"])[entities]
    detector = ClosedFormDetector(features="fourier", embedding_size=16, calibration=0.2, random_state=0).fit(X, names)
    numbered = ClosedFormDetector(features="fourier", embedding_size=16, calibration=0.2, random_state=0).fit(
        X, entities
    )
    assert (detector.novelty(X, names) == numbered.novelty(X, entities)).all()
    detector.add_entity("a much longer name than all", X[:20])
    detector.save(tmp_path / "model.safetensors")
    loaded = offmap.load(tmp_path / "model.safetensors")
    assert loaded.entity_ids_.tolist() == detector.entity_ids_.tolist()
    assert loaded.entity_ids_[5] == "flé"
    with pytest.raises(ValueError, match="never fitted"):
        loaded.novelty(X[:1], ["a much longer name than all others"])
    with pytest.raises(ValueError, match="entity must be strings"):
        loaded.add_entity(3, X[:2])


def test_tuples_are_ids_too(tmp_path: Path) -> None:
    X, entities = ring()
    shops = [("shop", int(entity)) for entity in entities]
    known = {shop: np.eye(6)[shop[1]] for shop in shops}
    detector = small(RatioDetector, head="concat", embedding="given").fit(X, shops, embeddings=known)
    framed = small(RatioDetector, head="concat", embedding="given").fit(X, shops, embeddings=pd.DataFrame(known).T)
    assert (framed.novelty(X, shops) == detector.novelty(X, shops)).all()
    detector.add_entity(("kiosk", "north", 7), X[:20])
    detector.save(tmp_path / "model.safetensors")
    loaded = offmap.load(tmp_path / "model.safetensors")
    assert loaded.entity_ids_.tolist() == [*sorted(set(shops)), ("kiosk", "north", 7)]
    assert (loaded.novelty(X, pd.Series(shops)) == detector.novelty(X, shops)).all()
    assert ("kiosk", "north", 7) in loaded.similar_entities(("shop", 0)).entities.tolist()
    with pytest.raises(ValueError, match=r"entities holds \('shop', 9\), which was never fitted"):
        loaded.novelty(X[:1], [("shop", 9)])
    with pytest.raises(ValueError, match="entity must be tuples, as the fitted entities are; got strings"):
        loaded.add_entity("shop", X[:2])
    with pytest.raises(
        ValueError, match=r"got date \(tuples of integers and strings are ids too; for anything else pass str"
    ):
        loaded.novelty(X[:1], [date(2020, 1, 1)])


def test_ids_that_no_int64_holds_are_refused() -> None:
    with pytest.raises(
        ValueError, match="entities must be integers of at most 9223372036854775807; got 9223372036854775809"
    ):
        check_ids(np.array([2**63 + 1, 5], dtype=np.uint64))
    assert check_ids(np.array([5], dtype=np.uint64)).dtype == np.int64


@pytest.mark.parametrize("entity", [2**63, -(2**63) - 1, 2**70])
def test_python_integers_that_no_int64_holds_are_refused(entity: int) -> None:
    with pytest.raises(ValueError, match=r"must be (all )?integers"):
        check_ids([entity, 5])


def test_a_verdict_names_entities_as_they_were_given() -> None:
    X, entities = ring()
    names = np.array([f"device {entity}" for entity in entities])
    detector = ClosedFormDetector(features="pca", calibration=0.2, random_state=0).fit(X, names)
    assert np.array_equal(detector.assess(X[::30], names[::30]).entity, names[::30])  # type: ignore[arg-type]


def test_an_error_says_what_to_do_with_ids_of_another_form() -> None:
    X, entities = ring()
    detector = ClosedFormDetector(features="fourier", embedding_size=16, calibration=0.2, random_state=0)
    with pytest.raises(ValueError, match=r"got float64; write whole numbers without a decimal point, .* str\(id\)"):
        detector.fit(X, entities.astype(float))
    detector.fit(X, entities)
    with pytest.raises(ValueError, match=r"entities holds 9, which was never fitted; .*offmap add"):
        detector.novelty(X[:1], [9])
    with pytest.raises(ValueError, match="entities must be integers, as the fitted ones are; got '--5'"):
        remove_entities(detector, ["--5"])
    before = len(detector.entity_ids_)
    with pytest.raises(ValueError, match="entities holds 9, which the model does not know; none was removed"):
        remove_entities(detector, ["0", "9"])
    assert len(detector.entity_ids_) == before
