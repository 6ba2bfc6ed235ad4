"""The page without a browser: forms, refusals, escaping, and what the security policy forbids."""

import hashlib
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from offmap.service import Settings, create_app
from offmap.service.review.group_page import ROWS
from tests.service.browser.worlds import table_world


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return table_world(tmp_path_factory.mktemp("forms") / "table")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    app = create_app(Settings(worlds={"table": folder}))
    with TestClient(app, base_url="http://localhost", headers={"accept": "text/html"}) as made:
        yield made


def fields(page: str) -> dict[str, str]:
    """What every form of a page sends along."""
    return {name: found(rf'name="{name}" value="([^"]*)"', page) for name in ("csrf", "revision")}


def found(pattern: str, page: str) -> str:
    match = re.search(pattern, page)
    assert match, pattern
    return match[1]


def act(client: TestClient, name: str, **more: str) -> tuple[int, str]:
    page = client.get("/review/table").text
    answer = client.post("/review/table/act", data=fields(page) | {"act": name} | more)
    return answer.status_code, answer.text


PATHS = ("", "?show=named", "/groups/1", "/groups/1?page=2", "/groups/99", "/map", "/dashboard", "/history", "/audit")


@pytest.mark.parametrize("path", PATHS)
def test_pages_hold_nothing_that_the_policy_forbids(client: TestClient, path: str) -> None:
    answer = client.get(f"/review/table{path}")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert re.search(r"<[^>]+\sstyle=", answer.text) is None
    assert re.search(r"<[^>]+\son[a-z]+=", answer.text) is None
    assert re.search(r"<style|<script(?![^>]* src=)", answer.text) is None
    assert len(re.findall("<h1", answer.text)) == 1
    identities = re.findall(r'\sid="([^"]+)"', answer.text)
    assert len(identities) == len(set(identities))


def test_an_act_is_followed_by_a_redirect_so_that_a_reload_repeats_nothing(client: TestClient) -> None:
    page = client.get("/review/table").text
    form = fields(page) | {"act": "skip", "group": "1"}
    answer = client.post("/review/table/act", data=form, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/review/table")
    answer = client.post("/review/table/act", data=fields(client.get("/review/table").text) | {"act": "undo"})
    assert answer.status_code == 200
    assert "Group 1 skipped" in client.get("/review/table/history").text


def test_a_form_of_another_page_is_refused(client: TestClient) -> None:
    client.get("/review/table")
    answer = client.post("/review/table/act", data={"act": "discard", "group": "1", "csrf": "guess"})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("name", {"group": "1", "label": " "}, "the name is empty"),
        ("name", {"group": "1", "label": "seven"}, "the classes of this world are numbers"),
        ("name", {"group": "77", "label": "7"}, "there is no group 77; choose one of the list"),
        ("name", {"label": "7"}, "choose a group first"),
        ("name", {"group": "../../etc", "label": "7"}, "group must be a number"),
        ("merge", {"group": "1"}, "say which group to merge with"),
        ("merge", {"group": "1", "other": "1"}, "cannot be merged with itself"),
        ("move", {"group": "1", "other": "2"}, "select rows first"),
        ("label", {"group": "1", "row": "999999", "label": "3"}, "there is no row 999999"),
        ("learn", {}, "there is nothing to learn"),
        ("undo", {}, "there is nothing to undo"),
        ("fly", {}, "there is no act"),
        ("rollback", {"page": "dashboard"}, "choose a version"),
        ("label-audit", {"page": "audit"}, "no row was given a class"),
    ],
)
def test_what_cannot_be_done_is_said_on_the_page(
    client: TestClient, name: str, more: dict[str, str], words: str
) -> None:
    before = client.get("/review/table/history").text
    status, page = act(client, name, **more)
    assert status == 422
    assert words in re.sub(r"&#39;", "'", page)
    assert len(re.findall("<li", client.get("/review/table/history").text)) == len(re.findall("<li", before))


def test_what_was_typed_is_escaped(client: TestClient) -> None:
    _, page = act(client, "name", group="1", label="<i>x</i>\u202e")
    assert "&lt;i&gt;x&lt;/i&gt;" in page
    assert "<i>" not in page
    assert "\u202e" not in page


def test_names_cannot_move_the_numbers_beside_them(client: TestClient) -> None:
    page = client.get("/review/table/groups/1").text
    assert re.search(r"<b>(?:like |near )?(?:<bdi>[^<]*</bdi>|[^<]*)</b><small>group", page)
    suggestions = re.findall(r'<button class="chip"[^>]*>(.*?)<kbd', page)
    assert suggestions
    assert all(re.fullmatch(r"<bdi>[^<]+</bdi> ", each) for each in suggestions)


def test_a_stale_act_shows_what_changed_and_can_be_done_all_the_same(client: TestClient) -> None:
    seen = fields(client.get("/review/table/groups/1").text)
    assert act(client, "name", group="1", label="3")[0] == 200
    stale = seen | {"act": "name", "group": "1", "label": "4"}
    answer = client.post("/review/table/act", data=stale)
    assert answer.status_code == 409
    assert "group 1 was named" in answer.text
    assert "Name group 1 “4” all the same" in answer.text
    assert client.get("/v1/worlds/table/groups?status=named").json()["groups"][0]["name"] == 3
    again = stale | {"revision": fields(answer.text)["revision"]}
    assert client.post("/review/table/act", data=again).status_code == 200
    assert client.get("/v1/worlds/table/groups?status=named").json()["groups"][0]["name"] == 4
    # An act on another group is not stale.
    assert client.post("/review/table/act", data=seen | {"act": "skip", "group": "2"}).status_code == 200


def test_an_act_that_fails_halfway_says_what_was_done(client: TestClient) -> None:
    status, page = act(client, "skip", group="2")
    assert status == 200
    page = client.get("/review/table").text
    form = fields(page) | {"act": "discard", "group": ["2", "77"]}
    answer = client.post("/review/table/act", data=form)
    assert answer.status_code == 422
    assert "Only a part was done:</b> Group 2 discarded. Then: there is no group 77; choose one" in answer.text
    assert act(client, "undo")[0] == 200


def test_the_choice_of_colours_returns_to_its_page_and_to_no_other(client: TestClient) -> None:
    form = {"csrf": fields(client.get("/review/table").text)["csrf"], "theme": "light"}
    for referer, place in (
        ("http://localhost/review/table/map", "/review/table/map"),
        ("http://x//y.example", "/review"),
    ):
        answer = client.post("/review/theme", data=form, headers={"referer": referer}, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, place)
        assert "offmap_theme=light" in answer.headers["set-cookie"]


def test_audit_rows_are_drawn_and_labelled(client: TestClient) -> None:
    status, page = act(client, "audit", count="5", page="audit")
    assert (status, len(re.findall(r'name="label-\d+"', page))) == (200, 5)
    first, second, *_ = re.findall(r'name="(label-\d+)"', page)
    status, page = act(client, "label-audit", page="audit", **{first: "3", second: "0"})
    assert (status, len(re.findall(r'name="label-\d+"', page))) == (200, 3)


def test_labels_that_fit_are_saved_and_the_others_stay_in_their_fields(client: TestClient) -> None:
    _, page = act(client, "audit", count="4", page="audit")
    first, second, third, fourth = re.findall(r'name="(label-\d+)"', page)[:4]
    assert act(client, "label-audit", page="audit", **{first: "1"})[0] == 200
    typed = {first: "1", second: "2", third: "two", fourth: "0"}
    status, page = act(client, "label-audit", page="audit", **typed)
    assert status == 422
    assert "Only a part was done" in page
    assert "the classes of this world are numbers; &#39;two&#39; is none" in page
    left = re.findall(r'name="(label-\d+)"', page)
    assert third in left
    assert not {first, second, fourth} & set(left)
    assert found(rf'name="{third}"[^>]* value="([^"]*)"', page) == "two"
    # An equal label is accepted, and another one is refused without a word on who gave the first.
    assert act(client, "label-audit", page="audit", **{first: "1"})[0] == 200
    status, page = act(client, "label-audit", page="audit", **{first: "2"})
    assert status == 422
    assert re.search(r"row \d+ is labelled 1 already, so &#39;2&#39; was not saved", page)


def test_audit_rows_of_a_table_stand_below_the_names_of_their_columns(client: TestClient) -> None:
    _, page = act(client, "audit", count="3", page="audit")
    heads = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', page)
    assert (heads[0], heads[-1]) == ("row", "class")
    assert heads[1:-1]
    assert all(head.startswith("feature ") for head in heads[1:-1])
    row = found(r'(<tr><th scope="row"><label for="label-.*?</tr>)', page)
    assert row.count("<td") == len(heads) - 1


def test_a_refused_name_stays_in_its_field(client: TestClient) -> None:
    status, page = act(client, "name", group="1", label="seven")
    assert (status, found(r'<input id="name"[^>]* value="([^"]*)"', page)) == (422, "seven")
    assert found(r'aria-label="Name for the ticked groups"[^>]* value="([^"]*)"', page) == ""
    status, page = act(client, "label", group="1", row="0", label="eight")
    assert (status, found(r'<input id="class"[^>]* value="([^"]*)"', page)) == (422, "eight")


def test_the_page_of_a_group_and_its_ticks_outlast_an_act(tmp_path: Path) -> None:
    app = create_app(Settings(worlds={"table": table_world(tmp_path / "table")}))
    with TestClient(app, base_url="http://localhost", headers={"accept": "text/html"}) as client:
        acts_on_the_second_page(client)


def acts_on_the_second_page(client: TestClient) -> None:
    groups = client.get("/v1/worlds/table/groups").json()["groups"]
    group = next(str(group["id"]) for group in groups if group["size"] > ROWS)
    place = f"/review/table/groups/{group}"
    page = client.get(f"{place}?page=2").text
    first = found(r'class="pick" name="row" value="(\d+)"', page)
    hidden = fields(page) | {"rows_page": found(r'name="rows_page" value="(\d+)"', page), "group": group}
    refused = client.post("/review/table/act", data=hidden | {"act": "label", "row": first, "label": "none"})
    assert refused.status_code == 422
    assert f"Rows {ROWS + 1}–" in refused.text
    assert re.findall(r'name="row" value="(\d+)" checked', refused.text) == [first]
    done = client.post(
        "/review/table/act", data=hidden | {"act": "label", "row": first, "label": "4"}, follow_redirects=False
    )
    assert (done.status_code, done.headers["location"]) == (303, f"{place}?page=2")
    assert 'name="rows_page"' not in client.get(place).text


@pytest.mark.parametrize("text", ["1_0", "\u0663", "1 0", "9" * 400])
def test_numbers_are_ascii_digits(client: TestClient, text: str) -> None:
    status, page = act(client, "name", group="1", label=text)
    assert status == 422
    assert "the classes of this world are numbers" in page


def test_unknown_worlds_pages_and_files_are_not_found(client: TestClient) -> None:
    for path in ("/review/other", "/review/table/secrets", "/assets/routes.py", "/assets/..%2froutes.py"):
        assert client.get(path).status_code == 404
    assert client.get("/review/table/rows/1/picture").status_code == 404


def test_htmx_is_the_file_that_its_licence_names(client: TestClient) -> None:
    static = resources.files("offmap.service.review") / "static"
    licence = (static / "htmx-LICENSE.txt").read_text(encoding="utf-8")
    digest = hashlib.sha256((static / "htmx.min.js").read_bytes()).hexdigest()
    assert f"sha256 {digest}" in licence
    assert "Zero-Clause BSD" in licence
    address = found(r'src="(/assets/htmx[^"]+)"', client.get("/review/table").text)
    answer = client.get(address)
    assert hashlib.sha256(answer.content).hexdigest() == digest
    assert "immutable" in answer.headers["cache-control"]
