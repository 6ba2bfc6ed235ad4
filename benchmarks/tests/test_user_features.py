"""What the DeepFM knows of users it has seen among films, and what becomes of the vectors."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from offmap_bench import user_features as module
from offmap_bench.movielens import MovieLens
from offmap_bench.user_features import BEHAVIOUR, DEMOGRAPHIC, Interactions, learn_users, user_features


def two_crowds(users: int = 120, films: int = 60, seed: int = 0) -> MovieLens:
    """Users of even number like films of even number; age says which they are, gender says nothing."""
    rng = np.random.default_rng(seed)
    crowd = np.arange(users) % 2
    frame = pd.DataFrame({"id": np.arange(users), "gender": rng.integers(2, size=users), "age": np.where(crowd, 56, 1),
                          "occupation": rng.integers(4, size=users), "zip": rng.integers(20, size=users)})  # fmt: skip
    exposed = rng.random((users, films)) < np.where(crowd[:, None] == np.arange(films) % 2, 0.6, 0.05)
    rows, columns = exposed.nonzero()
    return MovieLens(frame, rows, columns, np.ones(len(rows), dtype=np.int64))


@pytest.mark.parametrize("fields", [DEMOGRAPHIC, BEHAVIOUR], ids=["demographic", "behaviour"])
def test_vectors_tell_the_crowd_of_a_user(fields: tuple[str, ...]) -> None:
    data = two_crowds()
    found = learn_users(data, fields, seed=0, epochs=20, batch_size=128)
    assert found.vectors.shape == (120, 100)
    assert found.auroc > 0.7
    crowd = np.arange(120) % 2
    model = LogisticRegression(max_iter=1000).fit(found.vectors[:60], crowd[:60])
    assert model.score(found.vectors[60:], crowd[60:]) > 0.9


def test_made_up_pairs_have_the_same_users_and_the_same_films_in_another_order() -> None:
    made = Interactions(torch.arange(10)[:, None], torch.arange(10), torch.arange(10) * 7)
    real, strange = made.pairs(torch.arange(2, 10))
    assert real.tolist() == [[row, 7 * row] for row in range(2, 10)]
    assert strange[:, 0].tolist() == list(range(2, 10))
    assert sorted(strange[:, 1].tolist()) == [7 * row for row in range(2, 10)]
    assert strange[:, 1].tolist() != real[:, 1].tolist()


def test_the_same_seed_gives_the_same_vectors_and_leaves_the_random_state_alone() -> None:
    before = torch.get_rng_state()
    one, other, third = (learn_users(two_crowds(), BEHAVIOUR, seed, epochs=2).vectors for seed in (0, 0, 1))
    assert np.array_equal(one, other)
    assert not np.array_equal(one, third)
    assert torch.equal(torch.get_rng_state(), before)


def test_vectors_are_learnt_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFMAP_CACHE", str(tmp_path))
    monkeypatch.setattr(module, "movielens", two_crowds)
    user_features.cache_clear()
    first = user_features(BEHAVIOUR, 0)
    monkeypatch.setattr(module, "learn_users", None)
    user_features.cache_clear()
    kept = user_features(BEHAVIOUR, 0)
    user_features.cache_clear()
    assert np.array_equal(first.vectors, kept.vectors)
    assert (first.auroc, first.epochs) == (kept.auroc, kept.epochs)
