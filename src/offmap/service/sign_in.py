"""The form that turns a token into a session."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse, Response

from offmap.service.plain_page import plain_page
from offmap.service.problems import Problem
from offmap.service.security import COOKIE, Keys, set_session

router = APIRouter(include_in_schema=False)


@router.get("/sign-in")
async def show_form(request: Request) -> HTMLResponse:
    """The form."""
    return _form("")


@router.post("/sign-in")
async def sign_in(request: Request, token: Annotated[str, Form(max_length=1000)]) -> Response:
    """Checks the token and starts a session."""
    keys: Keys = request.app.state.keys
    try:
        request.app.state.guesses.count(request.client.host if request.client else "")
    except Problem as problem:
        return HTMLResponse(_page(str(problem)), 429, problem.headers)
    if not keys.is_token(token):
        return _form("This is not the token.", 401)
    response = RedirectResponse("/review", 303)
    set_session(request, response, keys.new_session())
    return response


@router.post("/sign-out")
async def sign_out() -> Response:
    """Ends the session of this browser."""
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


def _form(message: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(_page(message), status)


_ALERT = Markup('<p role="alert">{}</p>')
_FORM = Markup("""<form method="post" action="/sign-in">
<label for="token">Token of this service</label>
<input id="token" name="token" type="password" required autofocus autocomplete="current-password">
<button type="submit">Sign in</button>
</form>""")


def _page(message: str) -> str:
    alert = _ALERT.format(message) if message else Markup()
    return plain_page("Sign in", alert + _FORM, kind="sign-in")
