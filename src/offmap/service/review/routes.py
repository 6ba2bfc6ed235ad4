"""Addresses of the review page. Pages are whole documents: with scripts on, htmx takes the part that changed."""

from collections.abc import Callable
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from offmap.loop import OpenWorld
from offmap.loop.timeline import decisions
from offmap.service.problems import Problem
from offmap.service.review import pages
from offmap.service.review.acts import ACTS, Act
from offmap.service.review.assets import ASSETS, asset_path
from offmap.service.review.cards import picture_of
from offmap.service.review.desk import Desk
from offmap.service.review.form import Form, read_form
from offmap.service.review.pages import Notice, Shell
from offmap.service.review.rendering import address, render
from offmap.service.review.sentences import in_page_words
from offmap.service.review.why import reasons_of
from offmap.service.security import csrf_token, keep_session, require_csrf
from offmap.service.worlds import StaleAct, Worlds

router = APIRouter(include_in_schema=False)
_THEME = "offmap_theme"
_YEAR = 365 * 24 * 3600
Render = Callable[[Desk, Shell, Notice], str]


@router.get("/review")
async def worlds(request: Request) -> Response:
    """The list of worlds, or the world if there is one."""
    names = _worlds(request).names()
    if len(names) == 1:
        return RedirectResponse(address(names[0]), 303)
    return _answer(request, render("worlds.html", shell=_shell(request, "")))


@router.get(asset_path("{name}"))
async def static(name: str) -> Response:
    """A file of the page; its address changes with its content."""
    if name not in ASSETS:
        raise Problem(404, "there is no such file")
    content, kind = ASSETS[name]
    return Response(content, media_type=kind, headers={"cache-control": f"public, max-age={_YEAR}, immutable"})


@router.post("/review/theme", dependencies=[Depends(require_csrf)])
async def theme(request: Request) -> Response:
    """Keeps the choice of dark or light in a cookie."""
    chosen = str((await request.form()).get("theme", ""))
    # Only the path of the page that the form was on, so that this leads nowhere else.
    page = urlsplit(request.headers.get("referer", "")).path
    response = RedirectResponse(page if page.startswith("/review/") else "/review", 303)
    if chosen in ("dark", "light"):
        response.set_cookie(_THEME, chosen, max_age=_YEAR, samesite="strict", httponly=True)
    return response


@router.get("/review/{world}")
async def queue(request: Request, world: str, show: str = "open") -> Response:
    """The queue with its first group."""
    return await _show(request, world, lambda desk, shell, notice: pages.queue_page(desk, shell, notice, None, show))


@router.get("/review/{world}/groups/{group}")
async def group(request: Request, world: str, group: int, page: int = 1) -> Response:
    """One group."""

    def shown(desk: Desk, shell: Shell, notice: Notice) -> str:
        return pages.queue_page(desk, shell, notice, group, page=page)

    return await _show(request, world, shown)


@router.get("/review/{world}/rows/{number}")
async def row(request: Request, world: str, number: int) -> Response:
    """One row, and why it is unusual."""
    reasons = await reasons_of(request.app.state, world, number)

    def shown(desk: Desk, shell: Shell, notice: Notice) -> str:
        return pages.row_page(desk, shell, notice, number, reasons)

    return await _show(request, world, shown)


@router.get("/review/{world}/rows/{number}/picture")
async def picture(request: Request, world: str, number: int) -> Response:
    """One image of the stream. A row never changes, so a browser may keep it."""
    desks = _desks(request)
    found = await _worlds(request).get(world).read(lambda opened: picture_of(_desk(desks, world, opened), number))
    if found is None:
        raise Problem(404, "there is no such image")
    return Response(found, media_type="image/png", headers={"cache-control": "private, max-age=86400"})


@router.get("/review/{world}/{page}")
async def other(request: Request, world: str, page: str) -> Response:
    """Map, dashboard, history, audit rows or help."""
    if page not in _PAGES:
        raise Problem(404, "there is no such page")
    return await _show(request, world, _PAGES[page])


@router.post("/review/{world}/act", dependencies=[Depends(require_csrf)])
async def act(request: Request, world: str) -> Response:
    """Does what a form asks for, and shows the page that follows."""
    handle, shell, desks = _worlds(request).get(world), _shell(request, world), _desks(request)
    form = Form(act="")
    try:
        form = read_form(await request.form())
        about = _act(form).about
        page, place = await handle.act(
            lambda opened: _done(_desk(desks, world, opened), shell, form),
            revision=None if about == "nothing" else form.revision,
            groups=(*form.groups, *form.others) if about == "groups" else (),
        )
        return _answer(request, page, place)
    except StaleAct as stale:
        notice, status = Notice(changes=stale.changes, refused=form), 409
    except NotDone as failed:
        notice, status = Notice(error=in_page_words(str(failed)), done=failed.done, refused=form), 422
    except ValueError as error:
        notice, status = Notice(error=in_page_words(str(error)), refused=form), 422
    return await _show(request, world, lambda desk, shell, _: _same(desk, shell, notice, form), status)


_PAGES: dict[str, Render] = {
    "map": pages.map_page,
    "dashboard": pages.dashboard_page,
    "history": pages.history_page,
    "audit": pages.audit_page,
    "help": pages.help_page,
}


class NotDone(Exception):
    """An act of several steps that failed after the first; ``done`` says what was done until then."""

    def __init__(self, error: ValueError, done: tuple[str, ...]) -> None:
        super().__init__(str(error))
        self.done = done


def _act(form: Form) -> Act:
    if form.act not in ACTS:
        raise ValueError(f"there is no act {form.act[:50]!r}")
    return ACTS[form.act]


def _done(desk: Desk, shell: Shell, form: Form) -> tuple[str, str]:
    """Acts, and returns the page that follows and its address."""
    before = {decision.number: decision for decision in decisions(desk.world)}
    try:
        follows = _act(form).run(desk.world, form)
    except ValueError as error:
        if done := pages.done_since(desk, before):
            raise NotDone(error, done) from error
        raise
    notice = Notice(done=pages.done_since(desk, before))
    if form.page in _PAGES:
        return _PAGES[form.page](desk, shell, notice), address(shell.world, form.page)
    shown = follows if follows is not None and desk.group(follows) is not None else None
    place = address(shell.world) if shown is None else address(shell.world, "groups", shown)
    rows_page = form.rows_page if shown is not None and form.groups == (shown,) else 1
    place += f"?page={rows_page}" if rows_page > 1 else ""
    return pages.queue_page(desk, shell, notice, shown, page=rows_page), place


def _same(desk: Desk, shell: Shell, notice: Notice, form: Form) -> str:
    """The page that a form came from, with why it was refused."""
    if form.page in _PAGES:
        return _PAGES[form.page](desk, shell, notice)
    return pages.queue_page(desk, shell, notice, form.groups[0] if form.groups else None, page=form.rows_page)


async def _show(request: Request, world: str, page: Render, status: int = 200) -> Response:
    handle, shell, desks = _worlds(request).get(world), _shell(request, world), _desks(request)
    shown = await handle.read(lambda opened: page(_desk(desks, world, opened), shell, Notice()))
    return _answer(request, shown, status=status)


def _answer(request: Request, page: str, place: str | None = None, status: int = 200) -> Response:
    """A page; after an act, its address for scripts, and a redirect for browsers without them."""
    scripted = "hx-request" in request.headers
    if place is not None and not scripted:
        response: Response = RedirectResponse(place, 303)
    else:
        response = HTMLResponse(page, status)
        if scripted and request.method == "POST":
            response.headers["HX-Push-Url"] = place or "false"
    keep_session(request, response)
    return response


def _worlds(request: Request) -> Worlds:
    found: Worlds = request.app.state.worlds
    return found


def _desks(request: Request) -> dict[str, Desk]:
    """What the page remembers, by world; nothing at first."""
    state = request.app.state
    if not hasattr(state, "desks"):
        state.desks = {}
    found: dict[str, Desk] = state.desks
    return found


def _desk(desks: dict[str, Desk], name: str, world: OpenWorld) -> Desk:
    if name not in desks:
        desks[name] = Desk(world)
    # Other instances may have acted, if the world is in a database.
    world.refresh()
    return desks[name]


def _shell(request: Request, world: str) -> Shell:
    chosen = request.cookies.get(_THEME, "")
    return Shell(
        world=world,
        worlds=tuple(_worlds(request).names()),
        csrf=csrf_token(request),
        theme=chosen if chosen in ("dark", "light") else "",
        signed_in=request.app.state.keys.required,
    )
