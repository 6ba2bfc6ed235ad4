"""The replay of MovieLens: nothing twice, nothing from the future, films that become tasks on the way."""

import numpy as np
import pandas as pd
import pytest

from offmap_bench import film_stream
from offmap_bench.film_stream import replay
from offmap_bench.movielens import MovieLens


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> MovieLens:
    """Twelve users who see twelve films, each in an order of its own; one film comes late for all."""
    monkeypatch.setattr(film_stream, "ENDS", (4, 8, 100))
    monkeypatch.setattr(film_stream, "ENOUGH", 3)
    rng = np.random.default_rng(0)
    orders = np.array([np.append(rng.permutation(11), 11) for _ in range(12)])
    rows, places = np.indices(orders.shape).reshape(2, -1)
    return MovieLens(pd.DataFrame({"id": np.arange(12)}), rows, orders.ravel(), places + 1)


def pairs(data: MovieLens) -> set[tuple[int, int]]:
    return set(zip(data.rows.tolist(), data.films.tolist(), strict=True))


def test_pieces_add_up_to_all_that_came_and_nothing_comes_twice(history: MovieLens) -> None:
    taken: set[tuple[int, int]] = set()
    for piece in replay(history):
        assert not taken & pairs(piece.fresh)
        taken |= pairs(piece.fresh)
        assert taken == pairs(piece.so_far)
        assert piece.so_far.ranks.max() <= piece.end
    assert taken == pairs(history)


def test_a_film_is_a_task_from_its_third_exposure_on(history: MovieLens) -> None:
    for piece in replay(history):
        past = history.films[history.ranks <= piece.end]
        assert piece.films.tolist() == [film for film in range(12) if (past == film).sum() >= 3]
        assert set(piece.so_far.films.tolist()) == set(piece.films.tolist())
    assert 11 in piece.films


def test_exposures_of_unknown_time_are_left_out(history: MovieLens) -> None:
    ranks = history.ranks.copy()
    ranks[::5] = 0
    *_, last = replay(MovieLens(history.users, history.rows, history.films, ranks))
    assert len(last.so_far.rows) == int((ranks > 0).sum())
