"""The OpenAPI document as a page that needs no script: what each address takes, answers and refuses."""

from typing import Any

from fastapi import APIRouter, Request
from jinja2 import Environment
from starlette.responses import HTMLResponse

from offmap.service.review.rendering import asset

router = APIRouter(include_in_schema=False)
_PAGE = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
    """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }} {{ version }}</title>
<link rel="stylesheet" href="{{ sheet }}">
</head>
<body>
<main>
<h1>{{ title }} {{ version }}</h1>
<p>As JSON, for tools: <a href="/openapi.json">/openapi.json</a>. To review: <a href="/review">/review</a>.</p>
{% for tag, operations in tags.items() %}
<h2>{{ tag }}</h2>
{% for one in operations %}
<section>
<h3><code>{{ one.method }} {{ one.path }}</code></h3>
<p>{{ one.about }}</p>
{% if one.takes %}
<p>Takes {{ one.takes|join(", ") }}.</p>
{% endif %}
<ul>
{% for status, text in one.answers.items() %}
<li><code>{{ status }}</code> {{ text }}</li>
{% endfor %}
</ul>
</section>
{% endfor %}
{% endfor %}
</main>
</body>
</html>
"""
)


@router.get("/docs")
async def show(request: Request) -> HTMLResponse:
    """The page."""
    document = request.app.openapi()
    about = document["info"]
    return HTMLResponse(
        _PAGE.render(
            title=about["title"], version=about["version"], tags=operations(document), sheet=asset("review.css")
        )
    )


def operations(document: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """What can be asked for, by tag."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            found.setdefault(one["tags"][0], []).append(
                {
                    "method": method.upper(),
                    "path": path,
                    "about": one.get("description", ""),
                    "takes": list(one.get("requestBody", {}).get("content", {})),
                    "answers": {status: answer["description"] for status, answer in one["responses"].items()},
                }
            )
    return found
