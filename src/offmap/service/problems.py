"""What a client is told when a request cannot be answered: a status and one sentence, never a traceback."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response

from offmap.errors import reason_of
from offmap.service.plain_page import plain_page

_LOG = logging.getLogger("offmap.service")


class Problem(Exception):
    """A request that is answered with an error.

    Args:
        status: The HTTP status.
        message: One sentence for the client: what was wrong, and what to do.
        headers: Headers of the answer, such as ``Retry-After``.
        details: Further entries of the answer, beside ``error``.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None, **details: Any) -> None:
        super().__init__(message)
        self.status, self.headers, self.details = status, dict(headers or {}), details


def busy(message: str, seconds: float = 1.0) -> Problem:
    """The answer to a client that must wait and try again."""
    return Problem(429, message, {"Retry-After": str(max(1, round(seconds)))})


def answer(request: Request, problem: Problem) -> Response:
    """The problem as JSON, or as a page for a browser."""
    if "text/html" in request.headers.get("accept", ""):
        return HTMLResponse(_page(problem), problem.status, problem.headers)
    return JSONResponse({"error": str(problem), **problem.details}, problem.status, problem.headers)


def install(app: FastAPI) -> None:
    """Makes every error of the app an answer of this form."""

    async def as_answer(request: Request, error: Exception) -> Response:
        return answer(request, problem_of(error))

    for kind in (Problem, ValueError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, as_answer)


def problem_of(error: Exception) -> Problem:
    """What a client is told of an error; of one that nobody foresaw, only that it is in the log."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, RequestValidationError):
        return Problem(422, "; ".join(map(_in_words, error.errors())))
    if isinstance(error, HTTPException):
        return Problem(error.status_code, str(error.detail), error.headers)
    if isinstance(error, ValueError):
        return Problem(422, reason_of(error))
    _LOG.error("a request failed", exc_info=error)
    return Problem(500, "the service failed; its log says why")


def _in_words(error: Mapping[str, Any]) -> str:
    where: Sequence[Any] = error["loc"]
    return f"{'.'.join(str(part) for part in where[1:]) or where[0]}: {error['msg']}"


def _page(problem: Problem) -> str:
    content = Markup('<p role="alert">{}</p><p><a class="button" href="/">Back</a></p>').format(problem)
    return plain_page(str(problem.status), content, kind="sign-in")
