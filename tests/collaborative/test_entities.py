"""The table of entities against a Python dictionary, and its ids against what was given."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from offmap.collaborative import SeparateGaussianDetector
from offmap.collaborative.entities import EntityTable
from offmap.collaborative.ids import Id, as_given, check_ids
from offmap.collaborative.observations import Observations
from tests.collaborative.problems import ring, small


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=60), max_size=12), st.booleans())
def test_it_finds_what_a_dictionary_finds(pieces: list[list[int]], strings: bool) -> None:
    table, known = EntityTable({"value": 1}), dict[int, int]()
    for piece in pieces:
        fresh = sorted(set(piece) - known.keys())
        if fresh:
            ids = check_ids([str(entity) for entity in fresh] if strings else fresh)
            table.add(ids, {"value": torch.arange(float(len(known)), len(known) + len(fresh)).unsqueeze(1)})
            known |= {entity: len(known) + place for place, entity in enumerate(fresh)}
    if not known:
        return
    asked = [*known, 2**41, -(2**41)]
    places = table.find(check_ids([str(entity) for entity in asked] if strings else asked))
    assert places.tolist() == [known.get(entity, -1) for entity in asked]
    assert table.column("value")[:, 0].tolist() == list(range(len(known)))


def test_many_single_additions_are_sorted_in_at_times_and_all_found() -> None:
    table = EntityTable({"value": 2})
    ids = np.random.default_rng(0).permutation(5000)
    for entity in ids:
        table.add(np.array([entity]), {"value": torch.full((1, 2), float(entity))})
    assert table.find(ids).tolist() == list(range(5000))
    assert (table.column("value")[:, 1].numpy() == ids).all()
    # Doubling, so that all additions together copy no more than a few times what is there.
    assert len(table.get_buffer("value")) <= 2 * 5000


@pytest.mark.parametrize("ids", [[4, 2, 9], ["é", "longer", "x"], [("é", 3), ("é", 12), ("3",)]])
def test_its_state_holds_tensors_alone_and_restores_it(ids: list[Id]) -> None:
    table = EntityTable({"value": 1})
    table.add(check_ids(ids), {"value": torch.tensor([[1.0], [2.0], [3.0]])})
    state = table.state_dict()
    assert all(isinstance(value, torch.Tensor) and len(value) == 3 for value in state.values())
    other = EntityTable({"value": 1})
    other.load_state_dict(state)
    assert as_given(other.ids).tolist() == ids
    assert other.find(check_ids(ids[1:])).tolist() == [1, 2]
    assert torch.equal(other.column("value"), table.column("value"))


@pytest.mark.parametrize(
    "given_ids", [[1.5, 2.0], [True, False], [1, "a"], [None, 1], [b"x", b"y"], [(1, 2.5)], [(True,)]]
)
def test_other_ids_are_refused(given_ids: list[object]) -> None:
    with pytest.raises(ValueError, match="entities must be all integers or all strings"):
        check_ids(given_ids)
    with pytest.raises(ValueError, match="entities must be flat"):
        check_ids([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="entities must be a list of ids; got 'pump' alone"):
        check_ids("pump")


def test_tuples_are_one_entity_however_their_integers_are_made_and_differ_from_their_text() -> None:
    ids = check_ids(list(zip(np.array([1, 1, 2]), ["a", "a", "a"], strict=True)))
    assert (ids == check_ids([(1, "a"), (1, "a"), (2, "a")])).all()
    assert ids[0] == ids[1] != ids[2]
    assert check_ids([("1", "a")])[0] != ids[0] != check_ids(['[1, "a"]'])[0]


def test_object_arrays_and_series_of_one_type_are_taken() -> None:
    assert check_ids(np.array(["a", "bc"], dtype=object)).tolist() == [b"a", b"bc"]
    assert check_ids(np.array([3, 2**40], dtype=object)).tolist() == [3, 2**40]


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 6), st.integers(1, 40), st.integers(0, 1000))
def test_entity_means_are_those_of_a_loop(entities: int, extra: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(entities), rng.integers(entities, size=extra)])
    index = rng.integers(5, size=len(codes))
    observed = Observations(torch.zeros(5, 1), torch.from_numpy(index), torch.from_numpy(codes))
    values = rng.normal(size=(5, 3))
    expected = [values[index[codes == entity]].mean(axis=0) for entity in range(entities)]
    np.testing.assert_allclose(observed.entity_means(torch.from_numpy(values)).numpy(), expected, atol=1e-12)


def test_a_split_keeps_a_row_of_every_entity_in_the_first_part() -> None:
    entities = torch.tensor([0, 1, 1, 1, 1, 1, 1, 1, 1, 2])
    observed = Observations(torch.zeros(10, 1), torch.arange(10), entities)
    first, second = observed.split(0.5)
    assert set(first.entities.tolist()) == {0, 1, 2}
    assert len(second) == 5
    assert sorted(first.index.tolist() + second.index.tolist()) == list(range(10))


@pytest.mark.parametrize(
    "ids", [["t1\0", "t2"], ("t1\0",), np.array(["t1", "t1\0"], dtype=object), pd.Series(["t1\0"])]
)
def test_ids_that_end_in_nul_are_refused(ids: Any) -> None:
    """NumPy drops it: "t1\0" would be the entity "t1"."""
    with pytest.raises(ValueError, match="must not end in a NUL character"):
        check_ids(ids)
    assert check_ids(["a\0b"]).tolist() == [b"a\0b"]
    assert as_given(check_ids([("t1\0",)])).tolist() == [("t1\0",)]


@pytest.mark.parametrize("ids", [["t\ud800", "t2"], [("shop", "t\ud800")]])
def test_ids_with_half_a_surrogate_pair_are_refused(ids: Any) -> None:
    with pytest.raises(ValueError, match=r"entities holds .*; an id must not have half a surrogate pair"):
        check_ids(ids)


def test_similar_entities_are_those_with_the_highest_cosine_of_centred_embeddings() -> None:
    X, entities = ring()
    detector = small(SeparateGaussianDetector).fit(X, entities)
    centred = detector.entity_embeddings_ - detector.entity_embeddings_.mean(axis=0)
    directions = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    cosine = directions @ directions[2]
    order = [place for place in np.argsort(-cosine) if place != 2][:3]
    found = detector.similar_entities(2, k=3)
    assert found.entities.tolist() == order
    np.testing.assert_allclose(found.cosine, cosine[order], rtol=1e-4)


def test_the_centre_of_similarity_stays_that_of_the_fitted_entities() -> None:
    X, entities = ring()
    detector = small(SeparateGaussianDetector).fit(X, entities)
    before = detector.similar_entities(2, k=5)
    detector.add_entity(9, X[:20] + 50)
    after = detector.similar_entities(2, k=6)
    kept = after.entities != 9
    assert after.entities[kept].tolist() == before.entities.tolist()
    np.testing.assert_allclose(after.cosine[kept], before.cosine, rtol=1e-5)
