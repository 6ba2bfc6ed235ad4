"""What every request passes first: the name it asks for, where it comes from, and whether its sender may ask."""

import time
from collections import OrderedDict
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from offmap.service.problems import Problem, answer, busy
from offmap.service.review.assets import ASSETS, asset_path
from offmap.service.security import HEADERS, Keys, admits
from offmap.service.settings import Settings

# What anyone may ask for: probes of a load balancer, the sign-in form, and the styles that it needs. Whole paths, since
# what begins like one of them may hold the name of a world.
_OPEN = frozenset({"/v2/health/live", "/v2/health/ready", "/sign-in", *map(asset_path, ASSETS)})
_SAFE = ("GET", "HEAD", "OPTIONS")
_ADDRESSES = 10_000


class Guard:
    """Refuses requests that are not to be answered, and puts the headers on all answers that browsers obey.

    Args:
        app: The application behind it.
        settings: The settings.
        keys: Checks tokens and sessions.
        ready: Says whether all is loaded; until then only what is open to everyone is answered.
    """

    def __init__(self, app: ASGIApp, settings: Settings, keys: Keys, ready: Callable[[], bool]) -> None:
        self._app, self._settings, self._keys, self._ready = app, settings, keys, ready
        self._rate = Rate(settings.limits.rate, settings.limits.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or passes it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._refused(scope)
        await (self._app if refused is None else refused)(scope, receive, send_guarded)

    def _refused(self, scope: Scope) -> Response | None:
        headers, request = Headers(scope=scope), Request(scope)
        try:
            self._rate.count(scope["client"][0] if scope.get("client") else "")
            self._require_host(headers)
            self._require_own_page(scope["method"], headers)
            return self._admitted(scope, request) or self._unready(scope, request)
        except Problem as problem:
            return answer(request, problem)

    def _require_host(self, headers: Headers) -> None:
        name = _parsed(f"//{headers.get('host', '')}").hostname
        if not self._keys.required and name not in self._settings.hosts:
            raise Problem(
                421, "this service answers only under the name of its own machine; set OFFMAP_TOKEN for others"
            )

    def _require_own_page(self, method: str, headers: Headers) -> None:
        """Refuses what a page of another site makes a browser send; clients that are no browsers send no origin."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        foreign = origin is not None and _parsed(origin).netloc != headers.get("host")
        if method not in _SAFE and (foreign or site in ("cross-site", "same-site")):
            raise Problem(403, "requests from pages of other sites are refused")

    def _admitted(self, scope: Scope, request: Request) -> Response | None:
        if scope["path"] in _OPEN or admits(self._keys, request):
            return None
        if "text/html" in request.headers.get("accept", ""):
            return RedirectResponse("/sign-in", 303)
        problem = Problem(
            401, "send the token as 'Authorization: Bearer TOKEN'", {"WWW-Authenticate": 'Bearer realm="offmap"'}
        )
        return answer(request, problem)

    def _unready(self, scope: Scope, request: Request) -> Response | None:
        if self._ready() or scope["path"] in _OPEN:
            return None
        return answer(request, Problem(503, "models are being loaded; try again in a moment", {"Retry-After": "1"}))


def _parsed(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:
        raise Problem(400, "the request has a host or an origin that is no address") from None


class Rate:
    """Counts requests by address: each address has a bucket that fills at a rate.

    Args:
        rate: Requests per second over time.
        burst: Requests at once.
    """

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count(self, address: str) -> None:
        """Counts one request, or raises a ``Problem`` with status 429."""
        now = time.monotonic()
        left, before = self._buckets.pop(address, (float(self._burst), now))
        left = min(self._burst, left + (now - before) * self._rate)
        self._buckets[address] = (max(left - 1, 0.0), now)
        if len(self._buckets) > _ADDRESSES:
            self._buckets.popitem(last=False)
        if left < 1:
            raise busy("this address sends too many requests; send fewer, or larger batches", (1 - left) / self._rate)
