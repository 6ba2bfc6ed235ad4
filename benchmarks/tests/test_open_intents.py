"""The tables of open-set classification: their settings, the thesis's numbers, and heads trained one by one."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from offmap.data import DataNotFound, hold_out_classes, load
from offmap.metrics import f1_open
from offmap.nets import mlp
from offmap.openset import ANSClassifier
from offmap_bench.claims import Claim
from offmap_bench.papers.open_set import PAGE
from offmap_bench.places import RESULTS
from offmap_bench.plain_scores import PlainScore
from offmap_bench.samples import read_samples
from offmap_bench.tables.open_intents import ABLATION, ADDED, COMPARED, SETS, column, own
from offmap_bench.tables.open_intents_ngrams import NGRAMS
from offmap_bench.tables.speed_heads import OneAfterAnother, put_head


def test_printed_numbers_stand_where_the_thesis_has_them() -> None:
    assert COMPARED.printed["ANS", "BANKING 25 %", "accuracy"] == 83.93
    assert COMPARED.printed["ANS", "StackOverflow 75 %", "f1"] == 87.49
    assert COMPARED.printed["ADB", "CLINC 50 %", "f1"] == 85.05
    assert COMPARED.printed["SelfSup", "CLINC 75 %", "f1_open"] == 86.28
    assert COMPARED.printed["DOC", "StackOverflow 25 %", "f1_known"] == 49.02
    assert ABLATION.printed["+ projection", "CLINC 50 %", "f1_open"] == 92.01
    assert ADDED.printed["ADB + negatives", "BANKING 25 %", "f1_known"] == 72.12
    assert COMPARED.printed["ANS", "CLINC 75 %", "f1, suggested rate"] == 89.97
    assert len(COMPARED.printed) == 7 * 9 * 4 + 9 * 4


def test_every_method_decides_by_its_own_rule_on_all_rows() -> None:
    for table in (COMPARED, ABLATION, ADDED):
        for row, method in table.rows.items():
            if not isinstance(method, PlainScore):
                assert method.rule == "own", row
                assert method.calibration == 0


def test_plain_scores_are_those_of_their_definitions() -> None:
    digits = load_digits()
    X, y = digits.data[:300] / 16, digits.target[:300]
    nearest = PlainScore(score="nearest", random_state=0).fit(X, y)
    largest = PlainScore(score="max logit", random_state=0).fit(X, y)
    with torch.no_grad():
        rows = nearest._adapter(nearest._scale(torch.from_numpy(np.float32(X)))).numpy()
    for row, found in zip(rows[:5], nearest.novelty(X[:5]), strict=True):
        assert found == pytest.approx(min(np.linalg.norm(nearest._neighbours._fit_X - row, axis=1)), abs=1e-4)
    logits = largest._logistic.decision_function(rows)
    np.testing.assert_allclose(largest.novelty(X), [-max(each) for each in logits], rtol=1e-5)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "counts"), [("BANKING", (19, 38, 58)), ("CLINC", (38, 75, 112)), ("StackOverflow", (5, 10, 15))]
)
def test_known_classes_are_as_many_as_the_protocol_says(name: str, counts: tuple[int, ...]) -> None:
    from offmap.data import known_classes

    try:
        labels = load(SETS[name], "train").y
    except DataNotFound as error:
        pytest.skip(str(error))
    assert labels is not None
    assert tuple(len(known_classes(labels, ratio, seed=0)) for ratio in (0.25, 0.5, 0.75)) == counts
    assert column(name, 25) in COMPARED.columns


def test_a_head_alone_scores_as_it_does_among_the_stacked_ones() -> None:
    digits = load_digits()
    split = hold_out_classes(digits.images / 16, digits.target, known=[0, 1, 2], test_size=0.4)
    model = own(ANSClassifier, random_state=0, steps=1).fit(split.X_train, split.y_train)
    head = mlp([64, *model.head_hidden, 1], model.dropout).eval()
    put_head(model, head, place=1)
    rows = torch.randn(5, 64)
    with torch.no_grad():
        found, expected = model.network_.head_logits(rows)[:, 1], head(rows).squeeze(1)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_heads_one_after_another_reject_unknown_digits() -> None:
    digits = load_digits()
    split = hold_out_classes(digits.images / 16, digits.target, known=[0, 1, 2, 3], test_size=0.4)
    method = OneAfterAnother(random_state=0).fit(split.X_train, split.y_train)
    answers = method.predict(split.X_test)
    assert f1_open(split.y_test, answers, [0, 1, 2, 3], -1) > 0.85
    assert (
        np.mean(method.classifier_.predict_closed(split.X_test[~split.unknown]) == split.y_test[~split.unknown]) > 0.95
    )


@pytest.mark.parametrize("title", NGRAMS.columns)
def test_the_suggested_rate_is_nearly_as_good_as_the_best_threshold(title: str) -> None:
    samples, _ = read_samples(NGRAMS, "cpu", RESULTS)
    suggested, best = (samples["ANS", title, metric] for metric in ("f1, suggested rate", "best f1"))
    assert len(suggested.values) >= 10
    assert suggested.mean > best.mean - 0.015


@pytest.mark.parametrize("claim", [claim for claim in PAGE.claims if "best threshold" in claim.cause], ids=str)
def test_the_numbers_of_a_cause_are_those_of_the_stored_results(claim: Claim) -> None:
    samples, _ = read_samples(NGRAMS, "cpu", RESULTS)
    found = samples["ANS", claim.columns[0], "best f1"]
    assert len(found.values) >= 10
    assert claim.cause.endswith(f"gives F1 {100 * found.mean:.1f}")
