"""The description of the service is true: its addresses exist, its schemas fit the answers, its page shows it all."""

import re
from typing import Any

from fastapi.testclient import TestClient

from tests.service.conftest import WIDTH, tensor

ROWS = {"rows": [[0.5] * WIDTH]}


def fits(schema: dict[str, Any], value: Any, document: dict[str, Any]) -> bool:
    """Whether a value fits a schema: types, required entries and items."""
    if "$ref" in schema:
        return fits(document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], value, document)
    if "anyOf" in schema:
        return any(fits(each, value, document) for each in schema["anyOf"])
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": (int, float),
    }
    kind = schema.get("type")
    if kind == "null" or kind is None:
        return kind is None or value is None
    if not isinstance(value, kinds[kind]):
        return False
    if kind == "object":
        known = schema.get("properties", {})
        whole = set(schema.get("required", ())) <= set(value)
        return whole and all(fits(known[name], item, document) for name, item in value.items() if name in known)
    return kind != "array" or all(fits(schema.get("items", {}), item, document) for item in value)


def test_answers_fit_the_description(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    asked: list[tuple[str, str, dict[str, str], Any]] = [
        ("get", "/v2/health/live", {}, None),
        ("get", "/v2/health/ready", {}, None),
        ("get", "/v2", {}, None),
        ("get", "/v2/models/{name}", {"name": "texts"}, None),
        ("get", "/v2/models/{name}/versions/{version}/ready", {"name": "numbers", "version": "1"}, None),
        ("post", "/v2/models/{name}/infer", {"name": "numbers"}, tensor(ROWS["rows"])),
        ("get", "/v1/models", {}, None),
        ("get", "/v1/models/{name}", {"name": "numbers"}, None),
        ("post", "/v1/models/{name}/score", {"name": "numbers"}, ROWS),
        ("post", "/v1/models/{name}/score", {"name": "numbers"}, {}),
        ("post", "/v1/models/{name}/score", {"name": "nothing"}, ROWS),
        ("post", "/v1/models/{name}/use", {"name": "versions"}, {"version": "2"}),
        ("post", "/v1/models/{name}/rollback", {"name": "versions"}, None),
    ]
    for method, path, names, body in asked:
        answer = client.request(method, path.format(**names), json=body)
        described = document["paths"][path][method]["responses"][str(answer.status_code)]
        schema = described["content"]["application/json"]["schema"]
        assert fits(schema, answer.json(), document), (path, answer.text)
    assert not fits({"type": "object", "required": ["novel"]}, {"novelty": []}, document)


def test_every_address_is_on_the_page(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    page = client.get("/docs").text
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in page
    assert "<script" not in page
    assert "style=" not in page
    for act in ("teach", "observe", "name", "merge", "split", "move", "skip", "discard", "audit", "label", "learn"):
        assert f"/v1/worlds/{{world}}/{act}" in document["paths"]


def test_refusals_are_described(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    assert "HTTPValidationError" not in str(document)
    score = document["paths"]["/v1/models/{name}/score"]["post"]
    assert {"200", "401", "404", "413", "415", "422", "429"} <= set(score["responses"])
    assert {"application/json", "text/csv", "multipart/form-data"} <= set(score["requestBody"]["content"])
    act = document["paths"]["/v1/worlds/{world}/name"]["post"]
    assert {"200", "401", "409", "422", "429"} <= set(act["responses"])
    assert re.search("revision", str(document["components"]["schemas"]["Name"]))
