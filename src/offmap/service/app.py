"""The application: its parts, put together."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from starlette.responses import RedirectResponse, Response

from offmap import __version__
from offmap.service import acts, description, inference, problems, reading, scores, sign_in, stream
from offmap.service.bodies import BodyLimit
from offmap.service.guard import Guard, Rate
from offmap.service.metrics import Metrics
from offmap.service.models import Models
from offmap.service.publishing import Publisher
from offmap.service.review import routes
from offmap.service.scorer import Scorer
from offmap.service.security import Keys
from offmap.service.settings import Settings
from offmap.service.worlds import Worlds

# How long what another instance learnt may stay unknown to this one.
_FOLLOW_SECONDS = 1.0


def create_app(settings: Settings, *, background: Callable[[Exception | None], None] | None = None) -> FastAPI:
    """Makes the application that serves models and worlds.

    They are loaded when it starts and closed when it stops. ``app.state`` holds the parts: ``worlds``, ``models``,
    ``scorer``, ``metrics``, ``keys`` and ``settings``.

    Args:
        settings: What to serve, to whom, and within which limits.
        background: If given, loading goes on in a thread while requests are answered with 503, and this is called
            when it is done, with the error if it failed. By default the application starts when all is loaded.

    Example:
        >>> create_app(Settings()).title
        'Offmap'
    """
    app = FastAPI(title="Offmap", version=__version__, docs_url=None, redoc_url=None, lifespan=_lifespan)
    state = app.state
    state.settings, state.keys, state.background = settings, Keys(settings.token), background
    state.ready = False
    # Guesses of a token by one address: five at once, then one every ten seconds.
    state.guesses = Rate(0.1, 5)
    problems.install(app)
    for part in (inference, scores, reading, stream, acts, description, sign_in, routes):
        app.include_router(part.router)
    app.add_api_route("/metrics", _metrics, response_class=Response, tags=["Operation"])
    app.add_api_route("/", _start, include_in_schema=False)
    app.add_middleware(BodyLimit, limits=settings.limits)
    app.add_middleware(Guard, settings=settings, keys=state.keys, ready=lambda: state.ready)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state = app.state
    limits = state.settings.limits
    state.metrics, state.models = Metrics(), Models(state.settings)
    state.scorer = Scorer(limits, state.metrics.scored)
    state.turn = asyncio.Semaphore(1)
    state.worlds = Worlds(state.settings, Publisher(state.models, state.metrics))
    loading = asyncio.create_task(_load(app))
    following = asyncio.create_task(_follow(app, loading))
    try:
        if state.background is None:
            await loading
        yield
        await loading
    finally:
        following.cancel()
        state.scorer.close()
        state.worlds.close()


async def _load(app: FastAPI) -> None:
    state = app.state
    tell = state.background
    try:
        await asyncio.to_thread(state.models.open)
        await asyncio.to_thread(state.worlds.open)
    except Exception as error:
        if tell is None:
            raise
        tell(error)
        return
    for slot in state.models.slots():
        if slot.own:
            state.metrics.used(slot.current)
    state.ready = True
    if tell is not None:
        tell(None)


async def _follow(app: FastAPI, loading: asyncio.Task[None]) -> None:
    """Keeps up with other instances that share the database."""
    await asyncio.wait([loading])
    if app.state.settings.store is not None:
        await app.state.worlds.follow(_FOLLOW_SECONDS)


async def _metrics(request: Request) -> Response:
    """Numbers for Prometheus."""
    text = await asyncio.to_thread(request.app.state.metrics.text)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


async def _start(request: Request) -> Response:
    """To the review page, or to the description if there is nothing to review."""
    return RedirectResponse("/review" if request.app.state.worlds.names() else "/docs")
