"""The OpenAPI document as a page that needs no script: what each address takes, answers and refuses."""

from typing import Any

from fastapi import APIRouter, Request
from jinja2 import Environment
from markupsafe import Markup
from starlette.responses import HTMLResponse

from offmap.service.plain_page import plain_page

router = APIRouter(include_in_schema=False)
_CONTENT = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
    """<p>As JSON, for tools: <a href="/openapi.json">/openapi.json</a>. To review: <a href="/review">/review</a>.</p>
{% for tag, operations in tags.items() %}
<h2>{{ tag }}</h2>
{% for one in operations %}
<section>
<h3><code>{{ one.method }} {{ one.path }}</code></h3>
<p>{{ one.about }}</p>
<ul>
{% for kind, names in one.takes.items() %}
<li>takes <code>{{ kind }}</code> {{ names|join(", ") }}</li>
{% endfor %}
{% for status, text in one.answers.items() %}
<li><code>{{ status }}</code> {{ text }}</li>
{% endfor %}
</ul>
</section>
{% endfor %}
{% endfor %}
"""
)


@router.get("/docs")
async def show(request: Request) -> HTMLResponse:
    """The page."""
    document = request.app.openapi()
    content = Markup(_CONTENT.render(tags=operations(document)))
    return HTMLResponse(plain_page(f"Offmap {document['info']['version']}", content))


def operations(document: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """What can be asked for, by tag."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            body = one.get("requestBody", {}).get("content", {})
            found.setdefault(one["tags"][0], []).append(
                {
                    "method": method.upper(),
                    "path": path,
                    "about": one.get("description", ""),
                    "takes": {kind: _names(each.get("schema", {}), document) for kind, each in body.items()},
                    "answers": {status: _told(one["responses"][status], document) for status in one["responses"]},
                }
            )
    return found


def _told(answer: dict[str, Any], document: dict[str, Any]) -> str:
    """What an answer is: its entries if they are all that is known of it, else its description."""
    names = _names(answer.get("content", {}).get("application/json", {}).get("schema", {}), document)
    return ", ".join(names) if names and answer["description"] == "Successful Response" else answer["description"]


def _names(schema: dict[str, Any], document: dict[str, Any]) -> list[str]:
    """Entries of an object, or of the objects in a list."""
    whole = schema.get("items", schema)
    if "$ref" in whole:
        whole = document["components"]["schemas"][whole["$ref"].rpartition("/")[2]]
    return list(whole.get("properties", {}))
