"""The application: its parts, put together."""

import importlib.util
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from offmap import __version__
from offmap.service import problems, sign_in
from offmap.service.guard import Guard, Rate
from offmap.service.security import Keys
from offmap.service.settings import Settings
from offmap.service.worlds import Worlds


def create_app(settings: Settings) -> FastAPI:
    """Makes the application that serves models and worlds.

    Worlds are opened when it starts and closed when it stops; ``app.state`` has ``worlds`` and ``keys``.

    Args:
        settings: What to serve, to whom, and within which limits.

    Example:
        >>> create_app(Settings()).title
        'Offmap'
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.worlds = Worlds(settings)
        try:
            yield
        finally:
            app.state.worlds.close()

    app = FastAPI(title="Offmap", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.settings, app.state.keys = settings, Keys(settings.token)
    # Guesses of a token by one address: five at once, then one every ten seconds.
    app.state.guesses = Rate(0.1, 5)
    problems.install(app)
    app.include_router(sign_in.router)
    if importlib.util.find_spec("offmap.service.review.routes") is not None:
        from offmap.service.review.routes import router as review

        app.include_router(review)
    app.add_middleware(Guard, settings=settings, keys=app.state.keys)
    return app
