"""Who may do what: tokens, sessions, forms, hosts, rates; and headers that keep a page in bounds."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from starlette.responses import Response

from offmap.service import Limits, Settings, problems
from offmap.service.security import COOKIE, Keys, csrf_token, keep_session
from offmap.service.server import require_safe
from tests.command_line import Run
from tests.service.conftest import WIDTH, serving

TOKEN = "a-token-of-some-length"
BEARER = {"authorization": f"Bearer {TOKEN}"}
GOOD = {"rows": [[0.1] * WIDTH]}


@pytest.fixture
def guarded(files: Path) -> Iterator[TestClient]:
    with serving(models={"numbers": files / "numbers.safetensors"}, token=TOKEN) as made:
        yield made


def test_without_the_token_only_health_is_answered(guarded: TestClient) -> None:
    assert guarded.get("/v2/health/live").status_code == 200
    for path in ("/v1/models", "/metrics", "/openapi.json", "/v2/models/numbers", "/review", "/nothing"):
        answer = guarded.get(path)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert guarded.post("/v1/models/numbers/score", json=GOOD).status_code == 401
    for wrong in ("Bearer nonsense", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer", "Bearer ü"):
        assert guarded.get("/v1/models", headers=[(b"authorization", wrong.encode("latin-1"))]).status_code == 401
    assert guarded.get("/v1/models", headers=BEARER).status_code == 200
    assert guarded.post("/v1/models/numbers/score", json=GOOD, headers=BEARER).status_code == 200


@pytest.mark.parametrize("name", ["static", "theme", "assets", "sign-in"])
def test_a_world_with_the_name_of_a_fixed_path_is_guarded_too(name: str, world: Path) -> None:
    other = shutil.copytree(world, world.parent / "other.world")
    with serving(worlds={name: world, "other": other}, token=TOKEN) as client:
        paths = ("", "/groups/1", "/rows/1", "/rows/1/picture", "/history", "/review.css", "/nothing")
        for path in (*(f"/review/{name}{path}" for path in paths), f"/v1/worlds/{name}"):
            answer = client.get(path)
            assert answer.status_code == 401, path
            assert "set-cookie" not in answer.headers
            assert "other" not in answer.text
        assert client.get(f"/review/{name}/groups/1", headers=BEARER).status_code == 200


def test_only_whole_paths_are_open(guarded: TestClient) -> None:
    for path in ("/assets/review.css", "/assets/icon.svg", "/sign-in", "/v2/health/ready"):
        answer = guarded.get(path)
        assert (answer.status_code, "set-cookie" in answer.headers) == (200, False)
    for path in ("/assets/nothing.css", "/assets/", "/sign-in/more", "/sign-inside", "/v2/health/other", "/sign-out"):
        assert guarded.get(path).status_code == 401


def test_no_session_is_made_for_a_request_without_the_token() -> None:
    app = FastAPI()
    app.state.keys = Keys(TOKEN)
    problems.install(app)

    @app.get("/page")
    async def page(request: Request) -> Response:
        keep_session(request, answer := Response(csrf_token(request)))
        return answer

    with TestClient(app) as client:
        refused = client.get("/page")
        assert (refused.status_code, "set-cookie" in refused.headers) == (401, False)
        assert COOKIE in client.get("/page", headers=BEARER).cookies


def test_a_browser_signs_in_with_the_token_and_out_again(guarded: TestClient) -> None:
    page = {"accept": "text/html"}
    assert guarded.get("/review", headers=page, follow_redirects=False).headers["location"] == "/sign-in"
    refused = guarded.post("/sign-in", data={"token": "guess"})
    assert refused.status_code == 401
    assert COOKIE not in guarded.cookies
    answer = guarded.post("/sign-in", data={"token": TOKEN}, follow_redirects=False)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    assert guarded.get("/v1/models").status_code == 200
    guarded.post("/sign-out")
    guarded.cookies.clear()
    assert guarded.get("/v1/models").status_code == 401


def test_a_token_is_guessed_slowly(guarded: TestClient) -> None:
    statuses = [guarded.post("/sign-in", data={"token": "guess"}).status_code for _ in range(7)]
    assert statuses == [401] * 5 + [429] * 2
    assert guarded.post("/sign-in", data={"token": TOKEN}).status_code == 429


def test_sessions_end_and_cannot_be_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys(TOKEN)
    session = keys.new_session()
    assert keys.is_session(session)
    assert Keys(TOKEN).is_session(session)
    assert not Keys(TOKEN + "x").is_session(session)
    assert not Keys(None).is_session(session)
    later, rest = session.split(".", 1)
    assert not keys.is_session(f"{int(later) + 9}.{rest}")
    for wrong in ("", ".", "..", "9" * 400, "ü.ü", session.upper()):
        assert not keys.is_session(wrong)
    monkeypatch.setattr("offmap.service.security.time.time", lambda: int(later) + 1)
    assert not keys.is_session(session)
    assert keys.csrf(session) != keys.csrf(keys.new_session())


def test_pages_of_other_sites_are_refused(files: Path) -> None:
    with serving(models={"numbers": files / "numbers.safetensors"}) as client:
        foreign = {"host": "evil.example"}
        assert client.get("/v1/models", headers=foreign).status_code == 421
        for headers in (
            {"origin": "http://evil.example"},
            {"sec-fetch-site": "cross-site"},
            {"origin": "http://localhost:9999"},
            {"origin": "null"},
        ):
            assert client.post("/v1/models/numbers/score", json=GOOD, headers=headers).status_code == 403
        own = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
        assert client.post("/v1/models/numbers/score", json=GOOD, headers=own).status_code == 200


def test_hosts_and_origins_that_are_no_addresses(files: Path) -> None:
    with serving(models={"numbers": files / "numbers.safetensors"}) as client:
        assert client.get("/v1/models", headers={"host": "[::1"}).status_code == 400
        answer = client.post("/v1/models/numbers/score", json=GOOD, headers={"origin": "http://[::1"})
        assert (answer.status_code, set(answer.json())) == (400, {"error"})


def test_every_answer_has_the_headers_that_browsers_obey(guarded: TestClient) -> None:
    for path, headers in (("/sign-in", {}), ("/v1/models", {}), ("/nothing", BEARER), ("/v1/models", BEARER)):
        found = guarded.get(path, headers=headers).headers
        policy = found["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert found["x-content-type-options"] == "nosniff"
        assert "server" not in found


def test_one_address_cannot_send_without_end(files: Path) -> None:
    limits = Limits(rate=0.001, burst=5)
    with serving(models={"numbers": files / "numbers.safetensors"}, limits=limits) as client:
        answers = [client.get("/v1/models") for _ in range(8)]
        assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 3
        assert int(answers[-1].headers["retry-after"]) >= 1


def test_errors_nobody_foresaw_show_no_traceback(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    from offmap.service import create_app

    app = create_app(Settings(models={"numbers": files / "numbers.safetensors"}))

    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("a secret <script>")

    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        answer = client.get("/broken")
        assert (answer.status_code, answer.json()) == (500, {"error": "the service failed; its log says why"})
        page = client.get("/v1/worlds/<script>", headers={"accept": "text/html"})
        assert "<script>" not in page.text
        assert "&lt;script&gt;" in page.text
    assert "a secret" in caplog.text


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org"])
def test_other_hosts_need_a_token(host: str, files: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OFFMAP_TOKEN", raising=False)
    refused = run("serve", files / "numbers.safetensors", "--host", host, "--port", 0)
    assert refused.code == 2
    assert "OFFMAP_TOKEN" in refused.err
    require_safe(host, TOKEN)
    for local in ("127.0.0.1", "127.0.0.9", "::1", "localhost"):
        require_safe(local, None)


def test_a_short_token_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 16 characters"):
        Settings(token="short")


def test_bad_usage_is_one_line(run: Run, tmp_path: Path, files: Path) -> None:
    for arguments, words in (
        ((), "name a world or a model"),
        ((tmp_path / "nothing",), "there is no file or folder"),
        ((files / "numbers.safetensors", "--limit", "rows=0"), "rows must be an integer at least 1"),
        ((files / "numbers.safetensors", "--limit", "mood=1"), "has no parameter 'mood'"),
        ((files / "numbers.safetensors", f"numbers={files / 'named.safetensors'}"), "stands for two things"),
        ((tmp_path,), "holds neither a world nor a model file"),
        ((f"a b={files / 'numbers.safetensors'}",), "does not fit into an address"),
    ):
        found = run("serve", *arguments, "--port", 0)
        assert found.code == 2
        assert words in found.err
        assert len(found.err.strip().splitlines()) == 1
