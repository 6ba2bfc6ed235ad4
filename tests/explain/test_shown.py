"""Words, JSON and pictures."""

import json
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from offmap import Calibrated, Guarded
from offmap.density import NearestNeighborDetector
from offmap.explain import Explanation, explain

X = np.random.default_rng(0).normal(size=(300, 12))
HOSTILE = ['<b> & "quoted"', "a\x00b", *(f"f{j}" for j in range(10))]


@pytest.fixture(scope="module")
def explanation() -> Explanation:
    row = X[0].copy()
    row[0], row[1] = 12.0, -9.0
    return explain(NearestNeighborDetector(random_state=0).fit(X), [row], feature_names=HOSTILE, method="exact")[0]


def test_words_name_the_reasons_and_the_change(explanation: Explanation) -> None:
    told = str(explanation).splitlines()
    assert told[0].startswith("Row 0 is novel: novelty")
    assert told[1] == "What makes it novel (exact shares of the novelty):"
    assert '<b> & "quoted": 12 (usually' in told[2]
    assert told[-1].startswith("It would be normal with")
    assert "instead of 12" in told[-1]


def test_reasons_are_sorted_and_their_shares_sum_to_one(explanation: Explanation) -> None:
    reasons = explanation.reasons()
    assert [reason.part for reason in reasons[:2]] == HOSTILE[:2]
    assert sum(reason.share for reason in reasons) == pytest.approx(1)
    assert [r.contribution for r in reasons] == sorted((r.contribution for r in reasons), reverse=True)
    assert len(explanation.reasons(2)) == 2


def test_json_holds_no_arrays_and_no_infinities(explanation: Explanation) -> None:
    found = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
    assert found["counterfactual"]["p_value"] > 0.05
    assert found["reasons"][0]["part"] == HOSTILE[0]
    assert len(found["neighbors"]) == 5
    endless = Calibrated(lambda rows: np.where(np.asarray(rows)[:, 0] > 5, np.inf, np.asarray(rows)[:, 1])).calibrate(X)
    [infinite] = explain(endless, [[9.0, *X[0, 1:]]], reference=X)
    assert infinite.reasons(1)[0].part == "feature 0"
    json.dumps(infinite.to_dict(), allow_nan=False)


def test_pictures_are_well_formed_whatever_the_names(explanation: Explanation) -> None:
    drawn = ElementTree.fromstring(explanation.to_svg())
    words = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert '<b> & "quoted"' in words
    assert "a b" in words
    bars = [float(box.attrib["width"]) for box in drawn.iter("{http://www.w3.org/2000/svg}rect")]
    assert bars == sorted(bars, reverse=True)
    assert explanation._repr_svg_() == explanation.to_svg()


def test_a_normal_row_is_said_to_be_normal() -> None:
    [found] = explain(NearestNeighborDetector(random_state=0).fit(X), X[:1] * 0.1)
    assert str(found).startswith("Row 0 is normal")
    assert found.counterfactual is None
    ElementTree.fromstring(found.to_svg())


@pytest.mark.parametrize("by_class", ["predicted", "actual"])
def test_words_say_that_the_p_value_by_class_decides(by_class: Any) -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 200)
    rows = rng.normal(size=(400, 2)) * np.where(labels, 3, 1)[:, None] + labels[:, None] * [12, 0]
    model = Guarded(LogisticRegression(), novelty_score="mahalanobis", by_class=by_class, random_state=0)
    model.fit(rows, labels)
    new = rng.normal(size=(60, 2)) * 2.5
    found = explain(model, new, reference=rows, counterfactual=False)
    # By the threshold of all rows some of these decisions would be others.
    assert ((model.novelty(new) > model.threshold_) != [each.novel for each in found]).any()
    assert {each.novel for each in found} == {True, False}
    for each in found:
        told = str(each).splitlines()[0]
        relation = "is novel: p-value {} by class, not above" if each.novel else "is normal: p-value {} by class, above"
        assert f"{relation.format(f'{each.p_value:.2g}')} alpha 0.05; novelty" in told
        assert "threshold" not in told
        assert (each.to_dict()["threshold"], each.to_dict()["alpha"]) == (None, 0.05)


def test_pictures_of_texts_mark_the_blamed_part_most() -> None:
    def unlike(texts: list[str]) -> np.ndarray:
        return np.array([float("zebra" in text) + ("7" in text) / 8 for text in texts])

    known = [f"my card number {n} is lost" for n in range(40)]
    [found] = explain(Calibrated(unlike).calibrate(known), "my card is lost, the zebra sings", reference=known)
    boxes = list(ElementTree.fromstring(found.to_svg()).iter("{http://www.w3.org/2000/svg}rect"))
    marks = [float(box.attrib["fill-opacity"]) for box in boxes]
    assert marks == [0, 0, 0, 0, 0.55, 0.55, 0.55]
    assert 'It would be normal as "my card is lost"' in str(found)


def test_pictures_of_images_have_the_image_its_places_and_a_normal_one() -> None:
    images = np.random.default_rng(0).integers(0, 60, size=(80, 9, 12, 3), dtype=np.uint8)
    model = Calibrated(lambda rows: np.asarray(rows)[:, 0, 0].mean(axis=1)).calibrate(images)
    strange = images[:1].copy()
    strange[0, :2, :2] = 255
    [found] = explain(model, strange, reference=images)
    drawn = ElementTree.fromstring(found.to_svg())
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}image"))) == 4
    assert found.counterfactual is not None
    assert found.counterfactual.names == ("rows 0–1, columns 0–1",)
    assert "1 of 30 places" in str(found)
