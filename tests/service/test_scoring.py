"""Scores over HTTP are the library's own, whichever way rows are sent."""

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient

import offmap
import offmap.explain
from offmap.collaborative import SeparateGaussianDetector
from offmap.collaborative.base import EntityDetector
from offmap.data import open_data
from offmap.data.roles import Roles
from offmap.density import MahalanobisDetector
from offmap.workflow import configure, fit_model
from tests.service.conftest import WIDTH, binary, serving, tensor

ROWS = np.random.default_rng(1).normal(size=(5, WIDTH)) * [[0.5], [1], [9], [0.1], [20]]
FRAME = pd.DataFrame(ROWS, columns=["height", "weight", "age"])


def test_rows_score_as_in_the_library(client: TestClient, files: Path) -> None:
    verdict = offmap.load(files / "numbers.safetensors").assess(ROWS)
    found = client.post("/v1/models/numbers/score", json={"rows": ROWS.tolist()}).json()
    assert found["model"] == "numbers"
    assert found["version"] == "1"
    assert found["novelty"] == verdict.novelty.tolist()
    assert found["p_value"] == verdict.p_value.tolist()
    assert found["novel"] == verdict.novel.tolist()
    assert True in found["novel"]
    assert False in found["novel"]


def test_texts_score_as_in_the_library(client: TestClient, files: Path) -> None:
    texts = ["pay the invoice", "the weather in Bern"]
    verdict = offmap.load(files / "texts.safetensors").assess(texts)
    found = client.post("/v1/models/texts/score", json={"texts": texts}).json()
    assert found["novelty"] == verdict.novelty.tolist()
    assert found["closest"] == verdict.closest.tolist()
    tensors = {"inputs": [{"name": "rows", "shape": [2], "datatype": "BYTES", "data": texts}]}
    outputs = client.post("/v2/models/texts/infer", json=tensors).json()["outputs"]
    by_name = {each["name"]: each for each in outputs}
    assert by_name["novelty"]["data"] == found["novelty"]
    assert by_name["label"]["datatype"] == "BYTES"
    assert by_name["label"]["data"] == found["label"]


@pytest.mark.parametrize("name", ["named", "table"])
def test_columns_are_found_by_their_names(client: TestClient, files: Path, name: str) -> None:
    frame = FRAME if name == "named" else FRAME.assign(city=["Bern", "Basel", "Bern", "Oslo", "Bern"])
    expected = offmap.load(files / f"{name}.safetensors").novelty(frame).tolist()
    turned = frame[frame.columns[::-1]].to_dict("records")
    assert client.post(f"/v1/models/{name}/score", json={"rows": turned}).json()["novelty"] == expected
    lists = frame.to_numpy().tolist()
    assert client.post(f"/v1/models/{name}/score", json={"rows": lists}).json()["novelty"] == expected


def test_rows_are_scored_for_their_entities(client: TestClient, files: Path) -> None:
    entities = ["ann", "bob", "nobody", "ann", "eve"]
    model = offmap.load(files / "entities.safetensors")
    known = np.array([True, True, False, True, True])
    expected = model.assess(ROWS[known], np.array(entities)[known]).novelty.tolist()
    found = client.post("/v1/models/entities/score", json={"rows": ROWS.tolist(), "entities": entities}).json()
    assert [novelty for novelty, had in zip(found["novelty"], known, strict=True) if had] == expected
    assert (found["novelty"][2], found["novel"][2], found["p_value"][2]) == (None, True, None)
    inputs = tensor(ROWS)["inputs"] + [{"name": "entities", "shape": [5], "datatype": "BYTES", "data": entities}]
    outputs = client.post("/v2/models/entities/infer", json={"inputs": inputs}).json()["outputs"]
    assert outputs[0]["data"] == found["novelty"]
    refused = client.post("/v1/models/entities/score", json={"rows": ROWS.tolist()})
    assert (refused.status_code, "entities must name" in refused.json()["error"]) == (422, True)


@pytest.mark.parametrize("alpha", [0.1, 0.4])
def test_a_request_can_state_the_false_alarm_rate(client: TestClient, files: Path, alpha: float) -> None:
    rows = np.random.default_rng(2).normal(size=(200, WIDTH)) * 1.5
    model = offmap.load(files / "numbers.safetensors")
    found = client.post(f"/v1/models/numbers/score?alpha={alpha}", json={"rows": rows.tolist()}).json()
    assert found["novel"] == model.at(alpha=alpha).assess(rows).novel.tolist()
    assert found["novel"] != model.assess(rows).novel.tolist()
    # The next request has the model's own rate again.
    again = client.post("/v1/models/numbers/score", json={"rows": rows.tolist()}).json()
    assert again["novel"] == model.assess(rows).novel.tolist()


@pytest.mark.parametrize("alpha", ["0", "1", "nan", "-0.1", "often"])
def test_a_rate_that_is_none_is_refused(client: TestClient, alpha: str) -> None:
    refused = client.post(f"/v1/models/numbers/score?alpha={alpha}", json={"rows": ROWS.tolist()})
    assert refused.status_code == 422
    assert "alpha" in refused.json()["error"]


def test_a_rate_that_the_held_out_rows_cannot_promise_is_refused(client: TestClient) -> None:
    body = {"rows": ROWS.tolist()}
    refused = client.post("/v1/models/numbers/score?alpha=0.02", json=body)
    assert refused.status_code == 422
    assert refused.json()["error"] == "alpha must be at least 0.033: the model's 30 held-out rows promise no less"
    assert client.post("/v1/models/numbers/score?alpha=0.033", json=body).status_code == 200


def test_unlabelled_rows_suggest_a_rate(client: TestClient, files: Path) -> None:
    rng = np.random.default_rng(3)
    rows = np.concatenate([rng.normal(size=(150, WIDTH)), rng.normal(size=(150, WIDTH)) + 3])
    expected = offmap.load(files / "numbers.safetensors").suggest_alpha(rows)
    found = client.post("/v1/models/numbers/suggest-alpha", json={"rows": rows.tolist()}).json()
    assert {name: found[name] for name in expected._fields} == expected._asdict()
    assert found["words"] == str(expected)
    assert 0.3 < found["novel_share"] < 0.7
    # Nothing novel: there is no precision to speak of.
    none = client.post("/v1/models/numbers/suggest-alpha", json={"rows": np.zeros((3, WIDTH)).tolist()}).json()
    assert (none["novel_share"], none["precision"]) == (0, None)


def test_rows_of_known_entities_suggest_a_rate(client: TestClient, files: Path) -> None:
    model, rows = offmap.load(files / "entities.safetensors"), np.random.default_rng(4).normal(size=(60, WIDTH))
    entities = np.array(["ann", "bob", "nobody"] * 20)
    known = entities != "nobody"
    body = {"rows": rows.tolist(), "entities": entities.tolist()}
    found = client.post("/v1/models/entities/suggest-alpha", json=body).json()
    assert found["alpha"] == model.suggest_alpha(rows[known], entities[known]).alpha
    refused = client.post("/v1/models/entities/suggest-alpha", json={"rows": rows.tolist()})
    assert (refused.status_code, "entities must name" in refused.json()["error"]) == (422, True)


def _upload(frame: pd.DataFrame, kind: str) -> bytes:
    if kind == "application/vnd.apache.parquet":
        stream = io.BytesIO()
        frame.to_parquet(stream)
        return stream.getvalue()
    if kind == "application/x-ndjson":
        return frame.to_json(orient="records", lines=True, double_precision=15).encode()
    return frame.to_csv(index=False, sep="\t" if "tab" in kind else ",").encode()


@pytest.mark.parametrize(
    "kind", ["text/csv", "text/tab-separated-values", "application/x-ndjson", "application/vnd.apache.parquet"]
)
@pytest.mark.parametrize("name", ["numbers", "named", "table"])
def test_uploaded_tables_score_as_in_the_library(client: TestClient, files: Path, kind: str, name: str) -> None:
    frame = FRAME.assign(city=["Bern", "Basel", "Bern", "Oslo", "Bern"]) if name == "table" else FRAME
    rows = frame.to_numpy() if name == "numbers" else frame
    expected = offmap.load(files / f"{name}.safetensors").novelty(rows)
    found = client.post(f"/v1/models/{name}/score", content=_upload(frame, kind), headers={"content-type": kind}).json()
    np.testing.assert_allclose(found["novelty"], expected, rtol=1e-5)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame]:
    """A model of a table with texts that look like numbers or truth values, and its rows."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("mixed") / "mixed.safetensors"
    frame = pd.DataFrame({"paid": rng.normal(size=300), "release": rng.choice(["1.0", "1.10", "beta", "b-2"], 300)})
    frame["answer"] = rng.choice(["true", "false", "maybe"], 300)
    MahalanobisDetector(random_state=0).fit(frame).save(path)
    return path, frame


@pytest.mark.parametrize("kind", ["text/csv", "application/x-ndjson", "application/vnd.apache.parquet"])
def test_a_row_of_texts_scores_alike_alone_and_among_others(mixed: tuple[Path, pd.DataFrame], kind: str) -> None:
    path, frame = mixed
    expected = offmap.load(path).novelty(frame)
    with serving(models={"mixed": path}) as client:
        for row in range(12):
            content = _upload(frame.iloc[row : row + 1], kind)
            found = client.post("/v1/models/mixed/score", content=content, headers={"content-type": kind}).json()
            assert found["novelty"] == pytest.approx([expected[row]])


def test_entities_that_look_like_numbers_are_known_alone_and_among_others(tmp_path: Path) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
    model = configure("separate-gaussian", ["calibration=0.2"])
    frame.assign(who=np.repeat(["12", "ann", "7b"], 100)).to_csv(tmp_path / "train.csv", index=False)
    roles = Roles(entity="who")
    fit_model(model, open_data(str(tmp_path / "train.csv"), roles=roles), roles).save(tmp_path / "model.safetensors")
    with serving(models={"model": tmp_path / "model.safetensors"}) as client:
        content = _upload(frame[:3].assign(who="12"), "text/csv")
        found = client.post("/v1/models/model/score", content=content, headers={"content-type": "text/csv"}).json()
    assert isinstance(model, EntityDetector)
    assert found["novelty"] == pytest.approx(model.novelty(frame[:3], ["12"] * 3).tolist())


def test_a_table_names_its_column_of_entities(client: TestClient, files: Path) -> None:
    of, kind = ["ann", "bob", "eve", "ann", "bob"], {"content-type": "text/csv"}
    content = _upload(FRAME.assign(who=of), "text/csv")
    found = client.post("/v1/models/entities/score?entity=who", content=content, headers=kind).json()
    expected = offmap.load(files / "entities.safetensors").novelty(ROWS, of)
    np.testing.assert_allclose(found["novelty"], expected, rtol=1e-5)
    refused = client.post("/v1/models/entities/score", content=content, headers=kind)
    assert refused.status_code == 422
    assert refused.json()["error"].endswith("name the column of them with ?entity=COLUMN")
    other = client.post("/v1/models/named/score?entity=who", content=content, headers=kind)
    assert (other.status_code, "knows none" in other.json()["error"]) == (422, True)


def test_texts_in_json_lines_may_hold_any_break_but_that_of_lines(client: TestClient) -> None:
    texts = ["pay\u2028the bill", "book\x85a flight", "book\u2029the train"]
    lines = "\r\n".join(json.dumps({"words": text}, ensure_ascii=False) for text in texts)
    kind = {"content-type": "application/x-ndjson"}
    found = client.post("/v1/models/texts/score?text=words", content=lines.encode(), headers=kind).json()
    assert found["novelty"] == client.post("/v1/models/texts/score", json={"texts": texts}).json()["novelty"]


def test_columns_of_an_upload_may_come_in_another_order(client: TestClient, files: Path) -> None:
    expected = offmap.load(files / "named.safetensors").novelty(FRAME)
    kind = {"content-type": "text/csv"}
    turned = FRAME[["age", "height", "weight"]].to_csv(index=False)
    np.testing.assert_allclose(
        client.post("/v1/models/named/score", content=turned, headers=kind).json()["novelty"], expected, rtol=1e-5
    )
    other = client.post("/v1/models/named/score", content=turned.replace("age", "mood"), headers=kind)
    assert (other.status_code, "height, weight, age" in other.json()["error"]) == (422, True)


def test_a_form_uploads_a_file_and_a_client_can_ask_for_csv(client: TestClient) -> None:
    content = "words,n\npay the invoice,1\nthe weather,2\n"
    given = {"file": ("../../etc/passwd.csv", content, "text/csv")}
    answer = client.post("/v1/models/texts/score?text=words", files=given, headers={"accept": "text/csv"})
    frame = pd.read_csv(io.StringIO(answer.text))
    assert answer.headers["content-type"].startswith("text/csv")
    assert list(frame["closest"]) == ["pay", frame["closest"][1]]
    assert len(frame) == 2


def test_tensors_as_json_and_as_bytes_agree(client: TestClient, files: Path) -> None:
    X = ROWS.astype(np.float32)
    expected = offmap.load(files / "numbers.safetensors").assess(X)
    found = client.post("/v2/models/numbers/infer", json=tensor(X, "FP32", id="a-1")).json()
    assert (found["model_name"], found["model_version"], found["id"]) == ("numbers", "1", "a-1")
    outputs = {each["name"]: each for each in found["outputs"]}
    assert outputs["novelty"]["data"] == expected.novelty.tolist()
    assert outputs["novel"]["datatype"] == "BOOL"
    asked = [{"name": "novelty", "parameters": {"binary_data": True}}, {"name": "novel"}]
    answer = client.post("/v2/models/numbers/versions/1/infer", **binary(X, outputs=asked))
    length = int(answer.headers["inference-header-content-length"])
    header = json.loads(answer.content[:length])
    assert [each["name"] for each in header["outputs"]] == ["novelty", "novel"]
    np.testing.assert_array_equal(np.frombuffer(answer.content[length:], "<f8"), expected.novelty)
    assert header["outputs"][1]["data"] == expected.novel.tolist()


def test_tables_are_tensors_of_cells(client: TestClient, files: Path) -> None:
    frame = FRAME.assign(city=["Bern", "Basel", "", "Oslo", "Bern"])
    expected = offmap.load(files / "table.safetensors").novelty(frame.replace("", None))
    [about] = client.get("/v2/models/table").json()["inputs"]
    assert about == {"name": "rows", "datatype": "BYTES", "shape": [-1, 4]}
    found = client.post("/v2/models/table/infer", json=tensor(frame.astype(str), "BYTES"))
    np.testing.assert_allclose(found.json()["outputs"][0]["data"], expected)
    refused = client.post("/v2/models/table/infer", json=tensor(FRAME))
    assert (refused.status_code, "fitted on 4 columns" in refused.json()["error"]) == (422, True)


def test_metadata_of_entities_says_which_ids_are_read(tmp_path: Path) -> None:
    X, ids = np.random.default_rng(0).normal(size=(200, WIDTH)), np.repeat([3, 5], 100)
    model = SeparateGaussianDetector(calibration=0.2, random_state=0).fit(X, ids)
    model.save(tmp_path / "shops.safetensors")
    with serving(models={"shops": tmp_path / "shops.safetensors"}) as client:
        asked = client.get("/v2/models/shops").json()["inputs"][1]
        assert asked == {"name": "entities", "datatype": "INT64", "shape": [-1]}
        inputs = [*tensor(X[:2])["inputs"], asked | {"shape": [2], "data": [3, 5]}]
        found = client.post("/v2/models/shops/infer", json={"inputs": inputs}).json()
    assert found["outputs"][0]["data"] == model.novelty(X[:2], [3, 5]).tolist()


def test_metadata_says_what_a_model_reads_and_writes(client: TestClient) -> None:
    about = client.get("/v2/models/numbers").json()
    assert about["inputs"] == [{"name": "rows", "datatype": "FP64", "shape": [-1, WIDTH]}]
    assert [each["name"] for each in about["outputs"]] == ["novelty", "p_value", "novel"]
    assert client.get("/v2/models/texts").json()["inputs"][0]["datatype"] == "BYTES"
    assert client.get("/v2").json()["extensions"] == ["binary_tensor_data"]
    assert client.get("/v2/health/ready").json() == {"ready": True}
    assert client.get("/v2/models/numbers/versions/1/ready").json()["ready"] is True


def test_a_row_is_explained_by_what_makes_it_novel(client: TestClient) -> None:
    far = [[0.0, 9.0, 0.1]]
    found = client.post("/v1/models/neighbors/explain", json={"rows": far}).json()["explanations"]
    assert found[0]["reasons"][0]["part"] == "feature 1"
    asked = {"rows": far, "reference": ROWS.tolist()}
    found = client.post("/v1/models/numbers/explain", json=asked).json()["explanations"]
    assert found[0]["reasons"][0]["part"] == "feature 1"
    refused = client.post("/v1/models/numbers/explain", json={"rows": far})
    assert refused.status_code == 422
    assert "reference" in refused.json()["error"]


def test_explanations_are_those_of_the_library(client: TestClient, files: Path) -> None:
    near = np.random.default_rng(2).normal(size=(30, WIDTH))
    reference = pd.DataFrame(near, columns=FRAME.columns)
    expected = offmap.explain.explain(
        offmap.load(files / "named.safetensors"), FRAME[2:3], reference=reference, counterfactual=False
    )[0].to_dict()
    asked = {"rows": FRAME[2:3].to_dict("records"), "reference": reference.to_dict("records")}
    [found] = client.post("/v1/models/named/explain", json=asked).json()["explanations"]
    del found["words"]
    assert found == json.loads(json.dumps(expected))
    assert found["reasons"][0]["part"] in FRAME.columns


def test_a_row_is_explained_for_its_entity(client: TestClient, files: Path) -> None:
    near = np.random.default_rng(2).normal(size=(30, WIDTH))
    of = ["ann", "bob", "eve"] * 10
    expected = offmap.explain.explain(
        offmap.load(files / "entities.safetensors"),
        ROWS[2:3],
        reference=near,
        entities=["bob"],
        reference_entities=of,
        counterfactual=False,
    )[0].to_dict()
    asked = {"rows": ROWS[2:3].tolist(), "entities": ["bob"], "reference": near.tolist(), "reference_entities": of}
    [found] = client.post("/v1/models/entities/explain", json=asked).json()["explanations"]
    del found["words"]
    assert found == json.loads(json.dumps(expected))


def test_metrics_count_what_was_scored(client: TestClient) -> None:
    found = client.post("/v1/models/numbers/score", json={"rows": ROWS.tolist()}).json()
    lines = dict(line.rsplit(" ", 1) for line in client.get("/metrics").text.splitlines() if line[0] != "#")
    of = '{model="numbers"}'
    assert float(lines[f"offmap_rows_scored_total{of}"]) == len(ROWS)
    assert float(lines[f"offmap_rows_rejected_total{of}"]) == sum(found["novel"])
    assert float(lines[f"offmap_p_value_count{of}"]) == len(ROWS)
    small = sum(p_value <= 0.1 for p_value in found["p_value"])
    assert float(lines['offmap_p_value_bucket{le="0.1",model="numbers"}']) == small
    assert float(lines[f"offmap_p_value_sum{of}"]) == pytest.approx(sum(found["p_value"]))
    assert float(lines[f"offmap_score_duration_seconds_count{of}"]) == 1
    assert f"offmap_log_martingale{of}" in lines
    assert 'offmap_model_info{method="mahalanobis",model="numbers",version="1"}' in lines
