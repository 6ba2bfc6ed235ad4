from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest

from offmap_bench import Table
from offmap_bench.table import slug


@dataclass(frozen=True)
class Recipe:
    forest: IsolationForest
    epochs: int = 1


def test_the_profile_sets_only_parameters_a_row_has(make_table: Callable[..., Table]) -> None:
    rows = {"forest": IsolationForest(), "pca": PCA(), "mapping": {"epochs": 1}, "recipe": Recipe(IsolationForest())}
    profile = {"n_estimators": 5, "n_components": 2, "epochs": 7}
    table = make_table(rows=rows, profiles={"cpu": profile})
    assert table.method("forest", "cpu").n_estimators == 5
    assert table.method("pca", "cpu").n_components == 2
    assert table.method("mapping", "cpu") == {"epochs": 7}
    assert table.method("recipe", "cpu").epochs == 7


def test_a_method_is_a_copy(make_table: Callable[..., Table]) -> None:
    forest = IsolationForest()
    table = make_table(rows={"alone": forest, "mapped": {"forest": forest}, "recipe": Recipe(forest)})
    assert table.method("alone", "cpu") is not forest
    assert table.method("mapped", "cpu")["forest"] is not forest
    assert table.method("recipe", "cpu").forest is not forest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "My table"}, "name must be"),
        ({"rows": {"A+": 1, "A": 2}}, r"rows must hold .* got \['A\+', 'A'\]"),
        ({"columns": ("x y", "x-y")}, "columns must hold"),
        ({"columns": ("→",)}, "columns must hold"),
        ({"columns": ()}, "columns must hold one or more"),
        ({"metrics": ("auroc", "auroc")}, "metrics must hold"),
        (
            {"printed": {("tiny", "shift 1", "auroc"): 1.0}},
            "rows of printed must be among 'small', 'large'; got 'tiny'",
        ),
        ({"printed": {("small", "shift 2", "auroc"): 1.0}}, "columns of printed"),
        ({"printed": {("small", "shift 1", "aupr"): 1.0}}, "metrics of printed"),
        ({"higher_is_better": {"aupr": True}}, "metrics of higher_is_better"),
        ({"formats": {"aupr": ".3f"}}, "metrics of formats"),
        ({"profiles": {"paper": {}}}, "seeds and profiles"),
        ({"seeds": {"cpu": []}}, "seeds must hold one or more"),
        ({"profiles": {"cpu": {"n_estimator": 5}}}, "got 'n_estimator'"),
    ],
)
def test_a_wrong_table_says_what_is_wrong(
    make_table: Callable[..., Table], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make_table(**changes)


@settings(deadline=None)
@given(st.text())
def test_a_slug_holds_no_path_and_no_double_hyphen(text: str) -> None:
    name = slug(text)
    assert not set(name) & set("/\\. :|")
    assert "--" not in name
