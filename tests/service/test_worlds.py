"""Every act of the loop over HTTP; a stale act is refused with what changed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fastapi.testclient import TestClient

from offmap.loop import OpenWorld
from tests.loop.worlds import blobs, classifier
from tests.service.conftest import serving


@pytest.fixture
def reviewing(world: Path) -> Iterator[TestClient]:
    with serving(worlds={"blobs": world}) as client:
        yield client


def act(client: TestClient, kind: str, **content: Any) -> Any:
    answer = client.post(f"/v1/worlds/blobs/{kind}", json=content)
    assert answer.status_code == 200, answer.text
    return answer.json()


def groups(client: TestClient, **query: Any) -> Any:
    return client.get("/v1/worlds/blobs/groups", params=query).json()


def test_a_turn_of_the_loop(reviewing: TestClient, world: Path) -> None:
    before = reviewing.get("/v1/worlds/blobs").json()
    assert before["version"] == 1
    rows = blobs([3], 4, seed=9)[0]
    assert reviewing.post("/v1/models/blobs/score", json={"rows": rows.tolist()}).json()["label"] == [-1] * 4
    for group in groups(reviewing)["groups"]:
        shown = reviewing.get("/v1/worlds/blobs/rows", params={"id": group["rows"][:2]}).json()["rows"]
        assert [row["group"] for row in shown] == [group["id"]] * 2
        assert all(row["p_value"] is not None for row in shown)
        right = 3 if shown[0]["row"][0] > 0 else 4
        assert act(reviewing, "name", group=group["id"], label=right)["revision"] > before["revision"]
    learnt = act(reviewing, "learn")
    assert learnt["version"] == 2
    found = reviewing.post("/v1/models/blobs/score", json={"rows": rows.tolist()}).json()
    assert found["version"] == "2"
    assert found["closest"] == [3] * 4
    old = reviewing.post("/v1/models/blobs/versions/1/score", json={"rows": rows.tolist()}).json()
    assert (old["version"], old["label"]) == ("1", [-1] * 4)
    assert act(reviewing, "undo")["kind"] == "learnt"
    assert reviewing.get("/v1/models/blobs").json()["version"] == "1"
    assert act(reviewing, "redo")["kind"] == "learnt"
    act(reviewing, "rollback", version=1)
    assert reviewing.get("/v1/models/blobs").json()["version"] == "1"
    metrics = reviewing.get("/metrics").text
    assert 'offmap_model_info{method="analytic",model="blobs",version="1"} 1.0' in metrics
    assert 'version="2"' not in metrics
    assert 'offmap_review_groups{status="named",world="blobs"}' in metrics
    reviewing.__exit__()
    with OpenWorld.open(world) as opened:
        assert opened.status().version == 1


def test_groups_are_changed_by_every_act(reviewing: TestClient) -> None:
    first, second = (group["id"] for group in groups(reviewing)["groups"][:2])
    parts = act(reviewing, "split", group=first)["groups"]
    act(reviewing, "merge", group=parts[0], other=parts[1])
    row = groups(reviewing)["groups"][0]["rows"][0]
    act(reviewing, "move", row=row, group=second)
    assert reviewing.get("/v1/worlds/blobs/rows", params={"id": row}).json()["rows"][0]["group"] == second
    act(reviewing, "skip", group=parts[0])
    act(reviewing, "discard", group=second)
    assert [group["id"] for group in groups(reviewing, status="discarded")["groups"]] == [second]
    drawn = act(reviewing, "audit", n=3)["rows"]
    assert len(drawn) == 3
    act(reviewing, "label", row=drawn[0]["id"], label=0)
    assert [entry["kind"] for entry in reviewing.get("/v1/worlds/blobs/history").json()[-2:]] == [
        "discarded",
        "labelled",
    ]


def test_the_second_of_two_reviewers_is_told_what_changed(reviewing: TestClient) -> None:
    seen = groups(reviewing)
    first, second = (group["id"] for group in seen["groups"][:2])
    act(reviewing, "name", group=first, label=7, revision=seen["revision"])
    stale = reviewing.post("/v1/worlds/blobs/name", json={"group": first, "label": 8, "revision": seen["revision"]})
    assert stale.status_code == 409
    assert stale.json()["changes"] == [f"group {first} was named 7"]
    merged = {"group": second, "other": first, "revision": seen["revision"]}
    assert reviewing.post("/v1/worlds/blobs/merge", json=merged).status_code == 409
    assert reviewing.post("/v1/worlds/blobs/undo", json={"revision": seen["revision"]}).status_code == 409
    # Another group is nobody else's business, and rows of the stream make nothing stale.
    reviewing.post("/v1/worlds/blobs/observe", json={"rows": blobs([3], 2, seed=5)[0].tolist()})
    act(reviewing, "name", group=second, label=8, revision=seen["revision"])
    named = {group["id"]: group["name"] for group in groups(reviewing, status="named")["groups"]}
    assert named == {first: 7, second: 8}
    act(reviewing, "name", group=first, label=9, revision=stale.json()["revision"])


def test_rows_are_observed_once(reviewing: TestClient) -> None:
    rows = blobs([0, 3], 3, seed=7)[0].tolist()
    ids = [f"r{place}" for place in range(6)]
    before = reviewing.get("/v1/worlds/blobs").json()["observed"]
    first = reviewing.post("/v1/worlds/blobs/observe", json={"rows": rows, "ids": ids}).json()
    again = reviewing.post("/v1/worlds/blobs/observe", json={"rows": rows, "ids": ids}).json()
    assert first["novelty"] == again["novelty"]
    assert reviewing.get("/v1/worlds/blobs").json()["observed"] == before + 6
    table = "x,y\n" + "\n".join(f"{x},{y}" for x, y in blobs([4], 2, seed=8)[0])
    given = reviewing.post("/v1/worlds/blobs/observe", content=table, headers={"content-type": "text/csv"})
    assert len(given.json()["novel"]) == 2
    assert "offmap_rows_scored_total" in reviewing.get("/metrics").text


def test_a_column_of_an_uploaded_table_holds_the_ids(named: TestClient) -> None:
    points = blobs([1], 2, seed=3)[0]
    table = "code,x,y\n" + "\n".join(f"0{place},{x},{y}" for place, (x, y) in enumerate(points))
    send: dict[str, Any] = {"content": table, "headers": {"content-type": "text/csv"}}
    assert named.post("/v1/worlds/blobs/observe?ids=code", **send).status_code == 200
    before = named.get("/v1/worlds/blobs").json()["observed"]
    assert named.post("/v1/worlds/blobs/observe?ids=code", **send).status_code == 200
    assert named.get("/v1/worlds/blobs").json()["observed"] == before
    shown = named.get("/v1/worlds/blobs/rows", params={"id": ["00", "01"]}).json()["rows"]
    assert [row["id"] for row in shown] == ["00", "01"]
    assert shown[1]["row"] == pytest.approx(points[1].tolist())
    for path, words in (
        ("worlds/blobs/observe?ids=kode", "ids must be a column of"),
        ("models/blobs/score?ids=code", "only observe takes"),
    ):
        answer = named.post(f"/v1/{path}", **send)
        assert (answer.status_code, words in answer.json()["error"]) == (422, True), answer.json()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("worlds/blobs/observe?ids=code", "ids"),
        ("worlds/blobs/teach?label=kind", "label"),
        ("models/blobs/score?text=words", "text"),
        ("models/blobs/suggest-alpha?entity=user", "entity"),
        ("models/blobs/explain?text=words", "text"),
    ],
)
def test_columns_are_not_named_beside_a_json_body(reviewing: TestClient, path: str, name: str) -> None:
    answer = reviewing.post(f"/v1/{path}", json={"rows": [[0.0, 0.0]]})
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(f"?{name}= names a column of an uploaded table, but the body is JSON")


WRONG_NUMBERS: dict[str, dict[str, Any]] = {"skip": {"group": True}, "rollback": {"version": "1"}, "audit": {"n": True}}


@pytest.mark.parametrize(("path", "act"), WRONG_NUMBERS.items())
def test_numbers_of_an_act_are_integers(reviewing: TestClient, path: str, act: dict[str, Any]) -> None:
    answer = reviewing.post(f"/v1/worlds/blobs/{path}", json=act)
    assert (answer.status_code, "integer" in answer.json()["error"]) == (422, True), answer.json()


def test_ids_in_an_address_stand_for_texts_and_for_numbers(reviewing: TestClient) -> None:
    act(reviewing, "observe", rows=[[0, 0], [1, 1]], ids=["--5", -5])
    for text, known in (("--5", "--5"), ("-5", -5)):
        assert reviewing.get("/v1/worlds/blobs/rows", params={"id": text}).json()["rows"][0]["id"] == known
    for text in ("--6", "9" * 5000, "-", " -5", "٥"):
        answer = reviewing.get("/v1/worlds/blobs/rows", params={"id": text})
        assert (answer.status_code, "no row with the id" in answer.json()["error"]) == (404, True), answer.json()


def test_classes_stay_integers_if_a_lesson_writes_them_with_a_point(reviewing: TestClient) -> None:
    X, y = blobs([0, 1], 10, seed=5)
    act(reviewing, "teach", rows=X.tolist(), labels=y.astype(float).tolist())
    act(reviewing, "observe", rows=X[:1].tolist(), ids=["mine"])
    [row] = reviewing.get("/v1/worlds/blobs/rows", params={"id": "mine"}).json()["rows"]
    assert isinstance(row["closest"], int)
    assert all(isinstance(group["nearest_class"], int) for group in groups(reviewing)["groups"])


def test_entries_that_nobody_reads_are_refused(reviewing: TestClient) -> None:
    before = reviewing.get("/v1/worlds/blobs").json()["observed"]
    for path, entry in (("observe", "id"), ("teach", "label")):
        given = {"rows": [[0, 0]], "labels": [0]} if path == "teach" else {"rows": [[0, 0]]}
        answer = reviewing.post(f"/v1/worlds/blobs/{path}", json=given | {entry: ["mine"]})
        assert (answer.status_code, f"the body has {entry!r}" in answer.json()["error"]) == (422, True), answer.json()
    assert reviewing.get("/v1/worlds/blobs").json()["observed"] == before


def test_a_table_is_refused_where_only_json_is_read(reviewing: TestClient) -> None:
    for path in ("/v1/worlds/blobs/teach", "/v1/models/blobs/explain"):
        answer = reviewing.post(path, content="x,y,label\n0,0,1\n", headers={"content-type": "text/csv"})
        assert (answer.status_code, "takes application/json" in answer.json()["error"]) == (415, True)


@pytest.fixture
def named(tmp_path: Path) -> Iterator[TestClient]:
    """A world that was taught the columns x and y."""
    X, y = blobs([0, 1, 2], 30)
    with OpenWorld.create(tmp_path / "named.world", classifier=classifier(), min_group=4) as world:
        world.teach(pd.DataFrame(X, columns=["x", "y"]), y)
    with serving(worlds={"blobs": tmp_path / "named.world"}) as client:
        yield client


TABLES = {
    "another order": lambda x, y: f"y,x\n{y},{x}\n",
    "one more column": lambda x, y: f"x,note,y\n{x},read me,{y}\n",
    "one more number": lambda x, y: f"size,x,y\n7,{x},{y}\n",
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_columns_of_an_uploaded_table_are_matched_by_name(named: TestClient, table: Callable[..., str]) -> None:
    (point,), (label,) = blobs([1], 1, seed=3)
    expected = named.post("/v1/worlds/blobs/observe", json={"rows": [point.tolist()]}).json()
    content = table(*point.tolist())
    found = named.post("/v1/worlds/blobs/observe", content=content, headers={"content-type": "text/csv"}).json()
    assert found["closest"] == expected["closest"] == [label]
    assert found["novelty"] == pytest.approx(expected["novelty"])


def test_a_table_that_lacks_a_column_is_refused(named: TestClient) -> None:
    given = named.post("/v1/worlds/blobs/observe", content="x,z\n1,2\n", headers={"content-type": "text/csv"})
    assert given.status_code == 422
    assert given.json()["error"] == "the upload lacks 'y', which the model was fitted on; it has 'x', 'z'"


def test_versions_of_a_world_know_their_columns(named: TestClient) -> None:
    (point,), _ = blobs([1], 1, seed=3)
    rows = [dict(zip("xy", point.tolist(), strict=True))]
    by_name = named.post("/v1/models/blobs/score", json={"rows": rows})
    by_place = named.post("/v1/models/blobs/score", json={"rows": [point.tolist()]})
    assert by_name.json()["novelty"] == by_place.json()["novelty"]


def test_reasons_name_the_columns_of_a_world(named: TestClient) -> None:
    observed = act(named, "observe", rows=[[0.0, 90.0]], ids=["far"])
    assert observed["novel"] == [True]
    [found] = named.post("/v1/models/blobs/explain", json={"rows": [[0.0, 90.0]]}).json()["explanations"]
    assert {reason["part"] for reason in found["reasons"]} <= {"x", "y"}
    number = next(number for number in range(1, 200) if "far" in named.get(f"/review/blobs/rows/{number}").text)
    assert "feature 1" not in named.get(f"/review/blobs/rows/{number}").text


def test_a_world_is_taught_over_http(tmp_path: Path) -> None:
    OpenWorld.create(tmp_path / "new.world", classifier=classifier(), min_group=4).close()
    with serving(worlds={"blobs": tmp_path / "new.world"}) as client:
        early = client.post("/v1/models/blobs/score", json={"rows": [[0, 0]]})
        assert (early.status_code, "no version yet" in early.json()["error"]) == (409, True)
        assert client.post("/v1/worlds/blobs/observe", json={"rows": [[0, 0]]}).status_code == 409
        X, y = blobs([0, 1, 2], 30)
        lesson = {"rows": X.tolist(), "labels": y.tolist()}
        assert act(client, "teach", **lesson)["version"] == 1
        assert client.post("/v1/models/blobs/score", json={"rows": [[0, 0]]}).json()["closest"] == [0]
        again = blobs([5], 30)
        assert act(client, "teach", rows=again[0].tolist(), labels=again[1].tolist())["version"] == 2


def test_a_world_is_taught_the_names_of_its_columns_over_http(tmp_path: Path) -> None:
    OpenWorld.create(tmp_path / "new.world", classifier=classifier(), min_group=4).close()
    X, y = blobs([0, 1, 2], 30)
    with serving(worlds={"blobs": tmp_path / "new.world"}) as client:
        act(client, "teach", rows=pd.DataFrame(X, columns=["x", "y"]).to_dict("records"), labels=y.tolist())
        turned = client.post(
            "/v1/worlds/blobs/observe", content=f"y,x\n{X[0, 1]},{X[0, 0]}\n", headers={"content-type": "text/csv"}
        ).json()
        assert turned["novelty"] == act(client, "observe", rows=X[:1].tolist())["novelty"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": [[0, 0], [1]]}, "row 1 has 1 values, but row 0 has 2"),
        ({"rows": [[0, 0], [1, None]]}, "row 1, column 1 is missing"),
        ({"rows": [["0", 0], [1, 1]]}, "row 0, column 0 is '0', not a number"),
        ({"rows": [0, 1]}, "row 0 is 0, not a list of numbers"),
        ({"rows": [{"x": 0}, {"y": 0}]}, "row 1 has no 'x'"),
        ({"rows": [{"x": 0}, {"x": 0, "y": 0}]}, "row 1 has 'y', which row 0 lacks"),
        ({"rows": [{"x": 0}, {"x": None}]}, "row 1, column 'x' is missing"),
        ({"texts": ["a", "b"]}, "either rows or texts"),
        ({"labels": [0]}, "labels must be a list with one class per row"),
        ({"labels": [0, "1"]}, "only integers or only strings; got int and str"),
        ({"labels": [[0], [1]]}, "only integers or only strings; got list"),
        ({"labels": [0, None]}, "only integers or only strings"),
    ],
)
def test_a_first_lesson_that_cannot_be_read(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    OpenWorld.create(tmp_path / "new.world", classifier=classifier(), min_group=4).close()
    with serving(worlds={"blobs": tmp_path / "new.world"}) as client:
        lesson = {"rows": [[0, 0], [1, 1]], "labels": [0, 1]} | change
        answer = client.post("/v1/worlds/blobs/teach", json=lesson)
        assert (answer.status_code, words in answer.json()["error"]) == (422, True), answer.json()
        assert client.get("/v1/worlds/blobs").json()["revision"] == 1


@pytest.mark.parametrize(
    ("kind", "content", "words"),
    [
        ("name", {"group": 999, "label": 7}, "there is no group 999"),
        ("name", {"group": 1}, "label"),
        ("name", {"group": "one", "label": 7}, "group"),
        ("name", {"group": 1, "label": "seven"}, "label must be an integer"),
        ("name", {"group": 1, "label": True}, "label"),
        ("name", {"group": 1, "label": 7, "mood": 1}, "mood"),
        ("name", {"group": 1, "label": 7, "revision": 10**6}, "expected"),
        ("merge", {"group": 1, "other": 1}, "cannot be merged with itself"),
        ("move", {"group": 1, "row": "nobody"}, "no row with the id 'nobody'"),
        ("audit", {"n": 0}, "n"),
        ("learn", {}, "nothing to learn"),
        ("rollback", {"version": 9}, "version must be one of"),
        ("observe", {"rows": [[1, 2, 3]]}, "the shape 3"),
        ("observe", {"rows": [[1, 2]], "ids": ["a", "b"]}, "one id per row"),
        ("observe", {"rows": [[1, 2]], "ids": "a"}, "ids must be a list"),
        ("teach", {"rows": [[1, 2]]}, "labels must be a list"),
    ],
)
def test_acts_that_are_not_possible(reviewing: TestClient, kind: str, content: Any, words: str) -> None:
    revision = reviewing.get("/v1/worlds/blobs").json()["revision"]
    answer = reviewing.post(f"/v1/worlds/blobs/{kind}", json=content)
    assert answer.status_code == 422
    assert words in answer.json()["error"]
    assert reviewing.get("/v1/worlds/blobs").json()["revision"] == revision


def test_unknown_rows_and_worlds_are_not_found(reviewing: TestClient) -> None:
    assert reviewing.get("/v1/worlds/blobs/rows", params={"id": "nobody"}).status_code == 404
    assert reviewing.post("/v1/worlds/other/learn", json={}).status_code == 404
    assert reviewing.get("/v1/worlds").json() == ["blobs"]
    assert reviewing.post("/v1/models/blobs/use", json={"version": "1"}).status_code == 409
