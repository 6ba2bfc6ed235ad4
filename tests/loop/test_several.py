"""Several processes on one world in PostgreSQL: they take turns, see each other's acts, and lose none."""

import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from sqlalchemy import text

from offmap.loop import OpenWorld, StaleActError
from offmap.store import JournalInUse, JournalMoved, JournalUnreadable
from offmap.store.postgres_url import engine_of
from tests.loop.worlds import blobs, classifier, fingerprint, taught

ROOT = str(Path(__file__).parents[2])


@pytest.fixture
def name(postgres: str) -> str:
    """The name of a world with two groups."""
    name = f"world-{uuid.uuid4().hex}"
    with taught(Path(name), store=postgres) as world:
        world.observe(blobs([0, 3, 4], 15, seed=1)[0])
        assert len(world.groups()) == 2
    return name


def test_each_sees_what_the_other_did(postgres: str, name: str) -> None:
    with OpenWorld.open(name, store=postgres) as one, OpenWorld.open(name, store=postgres) as other:
        first, second = sorted(group.id for group in one.groups())
        one.name(first, 3)
        other.name(second, 4)
        assert other.state.groups[first].name == 3
        assert one.learn() == 2
        rows, truth = blobs([3, 4], 10, seed=9)
        closest = other.observe(rows).closest
        assert closest is not None
        assert closest.tolist() == truth.tolist()
        assert (
            other.classifier.novelty(blobs([3], 5)[0]).tobytes() == one.classifier.novelty(blobs([3], 5)[0]).tobytes()
        )
        assert one.refresh() == other.revision
        assert one.state.to_bytes() == other.state.to_bytes()
        assert one.undo() == "learnt"
        other.rollback(1)


def test_the_second_of_two_acts_on_a_group_is_refused_with_what_changed(postgres: str, name: str) -> None:
    with OpenWorld.open(name, store=postgres) as one, OpenWorld.open(name, store=postgres) as other:
        group, seen = one.groups()[0].id, other.refresh()
        one.name(group, 3, expected=seen)
        with pytest.raises(StaleActError, match=f"group {group} was named 3"):
            other.discard(group, expected=seen)
        assert other.state.groups[group].name == 3
        other.discard(group, expected=other.revision)


def test_an_entry_that_was_not_seen_is_never_followed(postgres: str, name: str) -> None:
    with OpenWorld.open(name, store=postgres) as one, OpenWorld.open(name, store=postgres) as other:
        one.name(one.groups()[0].id, 3)
        with pytest.raises(JournalMoved, match="nothing was changed"):
            other._ledger.record("undone", {})
        assert other.refresh() == one.revision


def test_a_turn_that_takes_too_long_is_one_clear_error(postgres: str, name: str) -> None:
    with OpenWorld.open(name, store=postgres) as one, OpenWorld.open(name, store=postgres, wait=0.05) as other:
        group = one.groups()[0].id
        with one._ledger.turn():
            with pytest.raises(JournalInUse, match="in use by another process"):
                other.name(group, 3)
            assert other.status().classes == 3
        other.name(group, 3)


def test_worlds_that_cannot_be_opened(postgres: str, name: str) -> None:
    with pytest.raises(FileNotFoundError, match="there is no world nobody"):
        OpenWorld.open("nobody", store=postgres)
    with pytest.raises(FileExistsError, match="exists already"):
        OpenWorld.create(name, classifier=classifier(), store=postgres)
    with pytest.raises(ValueError, match="needs a name"):
        OpenWorld.open(" ", store=postgres)
    with pytest.raises(OSError, match="Can't create a connection"):
        OpenWorld.open(name, store="postgresql://offmap@localhost:1/postgres")
    # What pg8000 says depends on whether the server's answer or the closed connection arrives first.
    with pytest.raises(OSError, match=r"does not exist|check the address"):
        OpenWorld.open(name, store=postgres.replace("/postgres?", "/nowhere?"))
    for url, message in (("mysql://a/b", "only postgresql://"), ("nonsense", "cannot be read"), ("x?", "cannot be")):
        with pytest.raises(ValueError, match=message):
            OpenWorld.open(name, store=url)
    with pytest.raises(ValueError, match="has options; known are"):
        OpenWorld.open(name, store=f"{postgres}&options=x")
    engine = engine_of(postgres)
    with engine.begin() as connection:
        connection.execute(text("UPDATE offmap_worlds SET schema = 99 WHERE name = :name"), {"name": name})
    engine.dispose()
    with pytest.raises(JournalUnreadable, match="newer release"):
        OpenWorld.open(name, store=postgres)


def test_a_password_is_in_no_message() -> None:
    with pytest.raises(OSError, match="eve") as refused:
        OpenWorld.open("w", store="postgresql://eve:secret@localhost:1/worlds")
    assert "secret" not in str(refused.value)


def test_entries_are_never_changed(postgres: str, name: str) -> None:
    engine = engine_of(postgres)
    for statement in ("UPDATE offmap_entries SET kind = 'x'", "DELETE FROM offmap_entries"):
        with pytest.raises(Exception, match="never changed or deleted"), engine.begin() as connection:
            connection.execute(text(statement))
    engine.dispose()
    with OpenWorld.open(name, store=postgres) as world:
        assert world.revision == 4


def test_a_server_that_cuts_the_connection_leaves_the_world_as_it_was(postgres: str, name: str) -> None:
    with OpenWorld.open(name, store=postgres) as world:
        group, before = world.groups()[0].id, world.revision

        def act_while_cut_off() -> None:
            with world._ledger.turn():
                cut_all_connections(postgres)
                world._ledger.record("named", {"group": group, "label": 3})

        with pytest.raises(OSError, match=r"cannot use .* nothing was changed"):
            act_while_cut_off()
        assert world.refresh() == before
        world.name(group, 3)
        assert world.revision == before + 1


def cut_all_connections(store: str) -> None:
    engine = engine_of(store)
    others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
    with engine.begin() as connection:
        connection.execute(text(f"SELECT pg_terminate_backend(pid) {others}"))
    engine.dispose()


WORKER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from offmap.loop import OpenWorld
from tests.loop.worlds import blobs
store, name, me = sys.argv[2], sys.argv[3], int(sys.argv[4])
with OpenWorld.open(name, store=store) as world:
    print("ready", flush=True)
    sys.stdin.readline()
    for step in range(12):
        rows = [f"{me}-{step}-{row}" for row in range(3)]
        world.observe(blobs([3, 4, 5], 1, seed=100 * me + step)[0], ids=rows)
        print(json.dumps({"observed": rows}), flush=True)
        live = [group for group in world.groups() if group.status in ("open", "skipped")]
        if live:
            world.name(live[step % len(live)].id, 3 + step % 3)
            print(json.dumps({"revision": world.revision, "group": live[step % len(live)].id}), flush=True)
        if step == 6:
            world.undo()
"""


def start(store: str, name: str, me: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, ROOT, store, name, str(me)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_two_processes_take_turns_and_a_killed_one_loses_nothing_that_was_acknowledged(
    postgres: str, name: str
) -> None:
    workers = [start(postgres, name, me) for me in (1, 2)]
    for worker in workers:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    killed, whole = workers
    assert killed.stdout is not None
    said = [killed.stdout.readline() for _ in range(9)]
    os.kill(killed.pid, signal.SIGKILL)
    told = [*said, *killed.communicate()[0].splitlines(), *whole.communicate()[0].splitlines()]
    assert whole.returncode == 0
    facts = [json.loads(line) for line in told if line.endswith("}") or line.endswith("}\n")]
    with OpenWorld.open(name, store=postgres) as world:
        state, numbers = world.state, [entry.number for entry in world._ledger.journal.entries()]
        named = {act.number: act.about.content["group"] for act in world._ledger.history.acts if act.kind == "named"}
    assert numbers == list(range(1, len(numbers) + 1))
    observed = [row for fact in facts for row in fact.get("observed", ())]
    assert len(observed) >= 36 + 9
    assert set(observed) <= set(state.numbers)
    assert all(named[fact["revision"]] == fact["group"] for fact in facts if "revision" in fact)


def test_a_journal_in_a_database_says_what_one_in_a_folder_says(postgres: str, tmp_path: Path) -> None:
    name, found = f"world-{uuid.uuid4().hex}", []
    for path, store in ((tmp_path / "w", None), (Path(name), postgres)):
        with taught(path, store=store) as world:
            world.observe(blobs([0, 3, 4], 15, seed=1)[0])
            world.name(world.groups()[0].id, 3)
            world.learn()
            for row in world.audit(5):
                world.label(row.id, 3)
            world.undo()
            found.append(fingerprint(world))
        with OpenWorld.open(path, store=store) as again:
            found.append(fingerprint(again))
    assert len(set(found)) == 1
