"""Bodies of requests, counted while they arrive and cut off where they get too large, too slow or too many."""

import asyncio
from time import monotonic

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from offmap.service.problems import Problem, answer, busy
from offmap.service.settings import Limits


class BodyLimit:
    """Refuses bodies beyond the limits without ever holding them.

    Args:
        app: The application behind it.
        limits: The limits.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app, self._limits, self._held = app, limits, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, with a body that ends in an error where it goes beyond a limit."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        stated = Headers(scope=scope).get("content-length", "")
        if stated.isdecimal() and int(stated) > self._limits.body_bytes:
            await answer(Request(scope), self._too_large())(scope, receive, send)
            return
        counted = _Counted(self, receive)
        try:
            await self._app(scope, counted, send)
        finally:
            self._held -= counted.size

    def take(self, size: int, total: int) -> None:
        """Counts a piece of a body, or raises a ``Problem``."""
        self._held += size
        if total > self._limits.body_bytes:
            raise self._too_large()
        if self._held > self._limits.held_bytes:
            raise busy("the requests that are being read fill the memory set aside for them; try again later")

    @property
    def seconds(self) -> float:
        """Longest time for a body to arrive."""
        return self._limits.upload_seconds

    def _too_large(self) -> Problem:
        # Whatever of the body is still on its way must not be taken for the next request.
        return Problem(
            413, f"the body has more than {self._limits.body_bytes:,} bytes; send fewer rows", {"Connection": "close"}
        )


class _Counted:
    """``receive`` with a limit on size and time, until the body has ended."""

    def __init__(self, limit: BodyLimit, receive: Receive) -> None:
        self._limit, self._receive = limit, receive
        self._until, self._ended = monotonic() + limit.seconds, False
        self.size = 0

    async def __call__(self) -> Message:
        if self._ended:
            return await self._receive()
        try:
            async with asyncio.timeout(self._until - monotonic()):
                message = await self._receive()
        except TimeoutError:
            raise Problem(
                408, f"the body did not arrive within {self._limit.seconds:g} s", {"Connection": "close"}
            ) from None
        self._ended = not message.get("more_body", False)
        size = len(message.get("body", b""))
        self.size += size
        self._limit.take(size, self.size)
        return message
