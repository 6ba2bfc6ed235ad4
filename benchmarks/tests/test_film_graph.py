"""The graph of films, genres and decades, and its spectral embedding."""

import numpy as np
import pandas as pd
import pytest

from offmap.data import DataNotFound
from offmap_bench.film_graph import film_vectors, links, spectral

FILMS = pd.DataFrame({"title": ["A (1995)", "B (1999)", "C, The (1941)"], "genres": ["Comedy|Drama", "Drama", "War"]})


def test_a_film_is_linked_to_its_genres_and_its_decade() -> None:
    assert links(FILMS).tolist() == [[1, 1, 0, 0, 1], [0, 1, 0, 0, 1], [0, 0, 1, 1, 0]]


def test_vectors_solve_the_eigenproblem_of_the_normalised_graph() -> None:
    r"""$D_1^{-1} A D_2^{-1} A^\top u = s^2 u$, without the constant solution."""
    adjacency = (np.random.default_rng(0).random((12, 7)) < 0.5).astype(float)
    adjacency[:, 0] = 1
    walk = (adjacency / adjacency.sum(1, keepdims=True)) @ (adjacency / adjacency.sum(0, keepdims=True)).T
    vectors = spectral(adjacency, dim=3)
    values = np.sort(np.linalg.eigvals(walk).real)[::-1]
    assert values[0] == pytest.approx(1)
    np.testing.assert_allclose(walk @ vectors, values[1:4] * vectors, atol=1e-10)
    np.testing.assert_allclose(vectors.std(axis=0), 1)


@pytest.mark.data
def test_films_of_the_same_kind_are_near() -> None:
    try:
        aladdin, lion_king, toy_story, psycho = film_vectors(np.array([588, 364, 1, 1219]))
    except DataNotFound as error:
        pytest.skip(str(error))
    assert np.linalg.norm(aladdin - lion_king) < np.linalg.norm(aladdin - psycho) / 2
    assert np.linalg.norm(aladdin - toy_story) < np.linalg.norm(aladdin - psycho)
