"""Semantic textual similarity: the measure, the sets, and the templates."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata

from offmap.data import DataNotFound, text_model
from offmap_bench.sentence_templates import templates
from offmap_bench.sts import SETS, RatedPairs, spearman, sts_pairs

TEXTS = (
    "a cat sleeps on the sofa",
    "it will rain tomorrow",
    "a man plays the guitar in the park while children listen",
)


@pytest.mark.parametrize("number", range(4))
def test_the_mask_of_each_template_is_where_it_says(number: int) -> None:
    pytest.importorskip("sentence_transformers", reason="needs the extra text")
    network, template = text_model.load("minilm", "cpu"), templates()[number]
    for text in TEXTS:
        ids = network.tokenizer(template.text(text))["input_ids"]
        assert ids.count(network.tokenizer.mask_token_id) == 1
        assert template.token is not None
        assert ids[template.token] == network.tokenizer.mask_token_id


def test_spearman_is_the_correlation_of_ranks_of_each_set() -> None:
    rng = np.random.default_rng(0)
    vectors = {f"text {number}": rng.normal(size=4).astype(np.float32) for number in range(12)}
    left, right = tuple(vectors), tuple(vectors)[::-1]
    names = np.array(["first"] * 6 + ["second"] * 6, object)
    pairs = RatedPairs(left, right, rng.random(12), names)
    calls: list[int] = []

    def encode(texts: Any) -> Any:
        calls.append(len(texts))
        return np.stack([vectors[text] for text in texts])

    found = spearman(encode, pairs)
    assert calls == [12]
    for name in ("first", "second"):
        rows = [row for row in range(12) if names[row] == name]
        cosines = [_cosine(vectors[left[row]], vectors[right[row]]) for row in rows]
        differences = rankdata(cosines) - rankdata(pairs.score[rows])
        assert found[name] == pytest.approx(1 - 6 * float((differences**2).sum()) / (6 * (6**2 - 1)))


def _cosine(a: Any, b: Any) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.data
def test_the_seven_sets_have_the_pairs_that_the_field_counts() -> None:
    try:
        pairs = sts_pairs("test")
    except DataNotFound as error:
        pytest.skip(str(error))
    counts = {name: int((pairs.dataset == name).sum()) for name in SETS}
    assert counts == dict(zip(SETS, (3108, 1500, 3750, 3000, 1186, 1379, 4927), strict=True))
    few, again = sts_pairs(limit=10), sts_pairs(limit=10)
    assert few.left == again.left
    assert len(few.left) == 70
    with pytest.raises(ValueError, match="split must be 'test'"):
        sts_pairs("dev")
