"""Requests of the Open Inference Protocol that are wrong in one place are refused with one line."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.conftest import WIDTH, tensor

GOOD = [[0.1] * WIDTH]
INFER = "/v2/models/numbers/infer"


def changed_input(**change: Any) -> dict[str, Any]:
    request = tensor(GOOD)
    request["inputs"][0] |= change
    return request


def twice() -> dict[str, Any]:
    return {"inputs": tensor(GOOD)["inputs"] * 2}


def with_entities() -> dict[str, Any]:
    entities = {"name": "entities", "shape": [1], "datatype": "BYTES", "data": ["ann"]}
    return {"inputs": [*tensor(GOOD)["inputs"], entities]}


@pytest.mark.parametrize(
    ("request_of", "words"),
    [
        (lambda: tensor(GOOD, parameters=[]), "parameters of the request must be an object; got []"),
        (lambda: tensor(GOOD, parameters="binary"), "parameters of the request must be an object; got 'binary'"),
        (lambda: tensor(GOOD, parameters={"binary_data_output": "no"}), "binary_data_output must be true or false"),
        (lambda: changed_input(parameters=5), "parameters of the input 'rows' must be an object; got 5"),
        (lambda: changed_input(parameters={"binary_data_size": True}), "binary_data_size of 'rows' is True"),
        (lambda: changed_input(datatype=[]), "the datatype of 'rows' must be BYTES or one of BOOL"),
        (lambda: changed_input(datatype={}), "the datatype of 'rows' must be BYTES or one of BOOL"),
        (lambda: tensor(GOOD, outputs=[{"name": []}]), "there is no output []"),
        (
            lambda: tensor(GOOD, outputs=[{"name": "novelty", "parameters": "all"}]),
            "parameters of the output 'novelty' must be an object; got 'all'",
        ),
        (
            lambda: tensor(GOOD, outputs=[{"name": "novelty", "parameters": {"binary_data": 1}}]),
            "binary_data must be true or false; got 1",
        ),
        (twice, "two inputs have the name 'rows'"),
        (with_entities, "this model knows none; leave it out"),
        (lambda: tensor(GOOD, id=7), "id must be a text; got 7"),
        (lambda: tensor(GOOD, id=None), "id must be a text; got None"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    client: TestClient, request_of: Callable[[], dict[str, Any]], words: str
) -> None:
    answer = client.post(INFER, json=request_of())
    assert (answer.status_code, set(answer.json())) == (422, {"error"})
    assert words in answer.json()["error"]


def test_an_id_that_is_no_number_is_refused(client: TestClient) -> None:
    content = b'{"id": NaN, "inputs": [{"name": "rows", "shape": [1, 3], "datatype": "FP64", "data": [1, 2, 3]}]}'
    answer = client.post(INFER, content=content)
    assert (answer.status_code, answer.json()["error"]) == (422, "id must be a text; got nan")


def test_parameters_that_are_null_count_as_left_out(client: TestClient) -> None:
    request = changed_input(parameters=None) | {"parameters": None, "id": "mine"}
    answer = client.post(INFER, json=request)
    assert (answer.status_code, answer.json()["id"]) == (200, "mine")
