"""Bad input gets the right status and one clear sentence, and the service goes on."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from offmap.service import Limits
from tests.service.conftest import WIDTH, binary, serving, tensor

GOOD = [[0.1] * WIDTH]


def refusal(answer: Any) -> tuple[int, str]:
    content = answer.json()
    assert set(content) == {"error"}
    assert "Traceback" not in content["error"]
    return answer.status_code, content["error"]


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("numbers", {"rows": [[1.0, 2.0]]}, "rows have the shape 2, but the model was fitted on 3"),
        ("numbers", {"rows": [[1.0, 2.0, 3.0], [1.0, 2.0]]}, "row 1 has 2 values, but row 0 has 3"),
        ("numbers", {"rows": [[1, 2, 3], [4, None, 6]]}, "row 1, column 1 is missing (NaN)"),
        ("numbers", {"rows": [[1, 2, "tall"]]}, "row 0, column 2 is 'tall', not a number"),
        ("numbers", {"rows": [[1, 2, 1e999]]}, "row 0, column 2 is infinite"),
        ("numbers", {"rows": [1, 2, 3]}, "row 0 is 1, not a list of numbers"),
        ("numbers", {"rows": []}, "rows must be a list with at least one entry"),
        ("numbers", {}, "either rows or texts"),
        ("numbers", {"texts": ["pay"]}, "texts holds texts, but this model was fitted on numbers"),
        ("numbers", {"rows": [{"height": 1}]}, "the model knows no names of columns"),
        ("numbers", {"rows": GOOD, "alpha": 0.01}, "the body has 'alpha', which is none of rows, texts, entities"),
        ("texts", {"rows": GOOD}, "this model was fitted on texts"),
        ("texts", {"texts": ["pay", 7]}, "row 1 of texts is 7, not a text"),
        ("named", {"rows": [{"height": 1, "weight": 2}]}, "row 0 has no 'age'"),
        ("named", {"rows": [{"height": 1, "weight": 2, "age": 3, "mood": 4}]}, "row 0 has 'mood'"),
        ("named", {"rows": [{"height": 1, "weight": 2, "age": None}]}, "row 0, column 'age' is missing (NaN)"),
        ("named", {"rows": [{"height": 1, "weight": "1_000", "age": 3}]}, "row 0, column 'weight' is '1_000', not a"),
        ("numbers", {"rows": [[1, 2, 3], [1, 10**400, 3]]}, "row 1, column 1 is 1000"),
        ("named", {"rows": [{"height": 1, "weight": -(10**400), "age": 3}]}, "row 0, column 'weight' is -1000"),
        ("table", {"rows": [[1, 2, 3, "Bern"], [1, 10**400, 3, "Bern"]]}, "row 1, column 'weight' is 1000"),
        ("numbers", {"rows": [["5", None, 6]]}, "row 0, column 0 is '5', not a number"),
        ("table", {"rows": [[1, "tall", 3, "Bern"]]}, "row 0 holds 'tall' (mend the cell, or leave it empty)"),
        ("entities", {"rows": GOOD * 2, "entities": [7, "ann"]}, "a mix of int and str"),
        ("entities", {"rows": GOOD, "entities": ["ann\0"]}, "must not end in a NUL character"),
        ("entities", {"rows": GOOD, "entities": [["ann"]]}, "must be all integers or all strings"),
        ("table", {"rows": [[1, 2, 3, ["Bern"]]]}, "row 0, column 'city' is ['Bern']; a cell is one value"),
        ("table", {"rows": [{"height": 1, "weight": 2, "age": 3, "city": {"name": "Bern"}}]}, "a cell is one value"),
        ("table", {"rows": [[1, 2]]}, "row 0 is 2 values, but the model was fitted on 4 columns"),
    ],
)
def test_rows_that_do_not_fit_are_named(client: TestClient, name: str, body: Any, words: str) -> None:
    status, error = refusal(
        client.post(f"/v1/models/{name}/score", content=json.dumps(body), headers={"content-type": "application/json"})
    )
    assert status == 422
    assert words in error
    assert client.get("/v2/health/ready").status_code == 200


@pytest.mark.parametrize(
    ("kind", "body", "status", "words"),
    [
        ("application/json", b"", 422, "the body is empty"),
        ("application/json", b'{"rows": [[1, 2', 422, "line 1 column 15"),
        ("application/json", b"[1]", 422, "must be a JSON object"),
        ("application/json", b"\xff\xfe", 422, "not JSON"),
        ("application/json", b"[" * 100_000, 422, "not JSON"),
        ("text/csv", b"", 422, "the body is empty"),
        ("text/csv", b"a,b,c\n1,2,3\n4,5,6,7\n", 422, "line 3"),
        ("text/csv", b"a,b,c\n1,2,3\n4,,6\n", 422, "row 1, column 'b' is missing (NaN)"),
        ("text/csv", b"a,b,c\n1,2,3\n4,tall,6\n", 422, "row 1, column 'b' is 'tall'"),
        ("text/csv", b"a,b\n1,2\n", 422, "the shape 2, but the model was fitted on 3"),
        ("text/csv", b"a,b,c\n", 422, "the upload must have at least one row"),
        ("application/x-ndjson", b'{"a": 1}\n{"a": \n', 422, "line 2 is not JSON"),
        ("application/vnd.apache.parquet", b"PAR1nonsense", 422, "cannot be read as a Parquet file"),
        ("application/x-pickle", b"x", 415, "'application/x-pickle'"),
    ],
)
def test_bodies_that_cannot_be_read(client: TestClient, kind: str, body: bytes, status: int, words: str) -> None:
    answer = client.post("/v1/models/numbers/score", content=body, headers={"content-type": kind})
    found, error = refusal(answer)
    assert (found, words in error) == (status, True), error
    assert "/tmp" not in error
    assert "offmap-upload" not in error


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"datatype": "FP7"}, "datatype"),
        ({"shape": [2, WIDTH]}, "its shape needs 6"),
        ({"shape": "1"}, "shape"),
        ({"data": ["a", "b", "c"]}, "cannot be read as FP64"),
        ({"data": ["1", "2", "3"]}, "cannot be read as FP64"),
        ({"data": [1, 2, 3.5], "datatype": "INT64"}, "cannot be read as INT64"),
        ({"data": [1, 2, 300], "datatype": "UINT8"}, "cannot be read as UINT8"),
        ({"data": [0, 1, 2], "datatype": "BOOL"}, "cannot be read as BOOL"),
        ({"data": None}, "must be a list"),
        ({"parameters": {"binary_data_size": 24}}, "0 bytes are left"),
        ({"name": 3}, "must have a name"),
        ({"datatype": "BYTES", "data": ["a", "b", "c"]}, "fitted on numbers"),
    ],
)
def test_tensors_that_do_not_fit(client: TestClient, change: dict[str, Any], words: str) -> None:
    body = tensor(GOOD)
    body["inputs"][0] |= change
    status, error = refusal(client.post("/v2/models/numbers/infer", json=body))
    assert (status, words in error) == (422, True), error


@pytest.mark.parametrize("name", ["numbers", "named", "table"])
@pytest.mark.parametrize("act", ["explain", "suggest-alpha"])
def test_numbers_beyond_floats_are_refused_by_other_acts_too(client: TestClient, name: str, act: str) -> None:
    row = [1, 10**400, 3, "Bern"] if name == "table" else [1, 10**400, 3]
    status, error = refusal(client.post(f"/v1/models/{name}/{act}", json={"rows": [row]}))
    assert status == 422
    assert error.startswith("row 0, column")
    assert error.endswith("too large a number")


def test_one_text_per_row(client: TestClient) -> None:
    body = tensor([["pay", "book"], ["the", "bill"]], "BYTES")
    status, error = refusal(client.post("/v2/models/texts/infer", json=body))
    assert (status, error) == (422, "rows has 4 texts in 2 rows; send one text per row")


def test_broken_binary_requests(client: TestClient) -> None:
    for length, words in (("99", "from 0 to 2"), ("x", "from 0 to 2"), ("1", "not JSON")):
        headers = {"Inference-Header-Content-Length": length}
        status, error = refusal(client.post("/v2/models/numbers/infer", content=b"{}", headers=headers))
        assert (status, words in error) == (422, True), error
    status, error = refusal(client.post("/v2/models/numbers/infer", json=tensor(GOOD, outputs=[{"name": "mood"}])))
    assert (status, "no output 'mood'" in error) == (422, True)
    status, error = refusal(client.post("/v2/models/numbers/infer", json=tensor(GOOD, outputs="novelty")))
    assert status == 422


def test_tensors_of_bytes_that_do_not_fit(client: TestClient) -> None:
    given = binary(GOOD)
    for old, new, words in (
        (b'"shape": [1, 3]', b'"shape": [2, 3]', "has 12 bytes; its shape and datatype need 24"),
        (b'"FP32"', b'"FP64"', "need 24"),
        (b'"FP32"', b'"BYTE"', "datatype"),
        (b'"binary_data_size": 12', b'"binary_data_size": 11', "need 12"),
        (b'"binary_data_size": 12', b'"binary_data_size": 99', "12 bytes are left"),
        (b'"FP32"', b'"BYTES"', "ends within a text"),
    ):
        content = given["content"].replace(old, new)
        length = int(given["headers"]["Inference-Header-Content-Length"]) + len(new) - len(old)
        headers = {"Inference-Header-Content-Length": str(length)}
        status, error = refusal(client.post("/v2/models/numbers/infer", content=content, headers=headers))
        assert (status, words in error) == (422, True), error


def test_what_is_not_there(client: TestClient) -> None:
    answer = client.post("/v1/models/nothing/score", json={"rows": GOOD})
    assert refusal(answer)[0] == 404
    assert "numbers" in answer.json()["error"]
    assert refusal(client.post("/v2/models/numbers/versions/7/infer", json=tensor(GOOD)))[0] == 404
    assert refusal(client.get("/v1/worlds/nothing"))[0] == 404
    assert refusal(client.get("/nothing"))[0] == 404
    assert refusal(client.get("/v1/models/numbers/score"))[0] == 405
    for name in ("..%2f..%2fetc%2fpasswd", "%00"):
        assert client.get(f"/v2/models/{name}").status_code == 404


@pytest.fixture
def small(files: Path) -> Iterator[TestClient]:
    """A client of a service with low limits."""
    limits = Limits(body_bytes=6000, rows=10, cells=25, explained_rows=2)
    with serving(models={"numbers": files / "numbers.safetensors"}, limits=limits) as made:
        yield made


def test_large_bodies_are_cut_off(small: TestClient) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        yield b'{"rows": ['
        for _ in range(10_000):
            sent += 100
            yield b"[1, 2, 3]," * 10

    stated = small.post("/v1/models/numbers/score", content=b" " * 7000)
    assert refusal(stated) == (413, "the body has more than 6,000 bytes; send fewer rows")
    streamed = small.post("/v1/models/numbers/score", content=endless())
    assert refusal(streamed)[0] == 413
    many = small.post("/v1/models/numbers/score", json={"rows": GOOD * 11})
    assert refusal(many) == (413, "the request has 11 rows, more than 10; send them in several requests")
    table = small.post(
        "/v1/models/numbers/score", content="a,b,c\n" + "1,2,3\n" * 11, headers={"content-type": "text/csv"}
    )
    assert refusal(table)[0] == 413
    explained = small.post("/v1/models/numbers/explain", json={"rows": GOOD * 3})
    assert refusal(explained)[0] == 413
    assert small.post("/v1/models/numbers/score", json={"rows": GOOD}).status_code == 200


def _parquet(columns: dict[str, Any], **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream, **options)
    return stream.getvalue()


def test_parquet_bombs_are_refused(small: TestClient) -> None:
    kind = {"content-type": "application/vnd.apache.parquet"}
    many = _parquet({"a": pa.array([0.0] * 1_000_000)}, compression="zstd")
    wide = _parquet({name: pa.array([0] * 10, pa.int8()) for name in "abc"}, compression="zstd")
    # One text of 4,000 letters that stands in every row: the file holds it once.
    long = _parquet({"a": pa.array(["x" * 4000] * 10)}, compression="zstd", write_statistics=False)
    for bomb, words in ((many, "1,000,000 rows"), (wide, "cells"), (long, "grows beyond")):
        assert len(bomb) < 6000
        status, error = refusal(small.post("/v1/models/numbers/score", content=bomb, headers=kind))
        assert (status, words in error) == (413, True), error
