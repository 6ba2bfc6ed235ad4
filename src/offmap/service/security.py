"""Who may use the service: a token, a sign-in cookie made from it, and proof that a form came from our own page."""

import hashlib
import hmac
import secrets
import time

from fastapi import Request
from starlette.responses import Response

from offmap.service.problems import Problem

COOKIE = "offmap_session"
CSRF_FIELD = "csrf"
CSRF_HEADER = "x-csrf-token"
_SESSION_SECONDS = 12 * 3600
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class Keys:
    """Makes and checks sessions. The key comes from the token, so that sessions outlive a restart.

    Args:
        token: What a client must show; None if nothing is asked for.

    Example:
        >>> keys = Keys("a token of some length")
        >>> session = keys.new_session()
        >>> keys.is_session(session), keys.is_session(session[:-1] + "x"), keys.is_token("guess")
        (True, False, False)
    """

    def __init__(self, token: str | None) -> None:
        self._token = token
        self._key = hashlib.sha256(b"offmap session " + (token or secrets.token_hex()).encode()).digest()

    @property
    def required(self) -> bool:
        """Whether a token is asked for."""
        return self._token is not None

    def is_token(self, given: str) -> bool:
        """Whether it is the token, in a time that does not depend on how much of it is right."""
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())

    def new_session(self) -> str:
        """A session that ends by itself, as a cookie holds it."""
        content = f"{int(time.time()) + _SESSION_SECONDS}.{secrets.token_urlsafe(16)}"
        return f"{content}.{self._signed(content)}"

    def is_session(self, given: str) -> bool:
        """Whether it is a session of ours that has not ended."""
        content, _, signature = given.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signed(content).encode()):
            return False
        return int(content.partition(".")[0]) > time.time()

    def csrf(self, session: str) -> str:
        """What a form must send along, which only a page of this session knows."""
        return self._signed(f"form {session}")

    def _signed(self, content: str) -> str:
        return hmac.new(self._key, content.encode(), "sha256").hexdigest()


def admits(keys: Keys, request: Request) -> bool:
    """Whether a request may be answered: no token is asked for, or it shows the token or a session made from it."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    shown = scheme.lower() == "bearer" and keys.is_token(token.strip())
    return not keys.required or shown or keys.is_session(request.cookies.get(COOKIE, ""))


def session_of(request: Request) -> str:
    """The session of a browser: that of its cookie, or a new one that ``keep_session`` sets.

    Without a token nobody signs in, and the session only ties forms to the page they came from. Where a token is asked
    for, a session opens every address, so a request that was let through without one gets none.
    """
    keys: Keys = request.app.state.keys
    given = request.cookies.get(COOKIE, "")
    if not admits(keys, request):
        raise Problem(401, "sign in first")
    if not keys.is_session(given):
        given = getattr(request.state, "session", None) or keys.new_session()
        request.state.session = given
    return given


def csrf_token(request: Request) -> str:
    """What to put into the field ``csrf`` of a form, or into the header ``X-CSRF-Token``; use ``keep_session`` too."""
    keys: Keys = request.app.state.keys
    return keys.csrf(session_of(request))


def keep_session(request: Request, response: Response) -> None:
    """Sets the cookie of ``session_of`` on an answer, if the browser does not have it yet."""
    session = session_of(request)
    if request.cookies.get(COOKIE) != session:
        set_session(request, response, session)


def set_session(request: Request, response: Response, session: str) -> None:
    """Sets the session's cookie, which scripts cannot read and other sites cannot send."""
    response.set_cookie(
        COOKIE,
        session,
        max_age=_SESSION_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


async def require_csrf(request: Request) -> None:
    """A dependency of every route that a form calls: refuses a form that our own page did not make."""
    given = request.headers.get(CSRF_HEADER)
    if given is None:
        given = str((await request.form()).get(CSRF_FIELD, ""))
    keys: Keys = request.app.state.keys
    session = request.cookies.get(COOKIE, "")
    if not keys.is_session(session) or not hmac.compare_digest(given.encode(), keys.csrf(session).encode()):
        raise Problem(403, "this form is too old or came from another page; reload the page and try again")
