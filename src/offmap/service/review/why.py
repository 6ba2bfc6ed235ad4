"""Why one row is unusual, in words."""

import asyncio
from typing import Any

from offmap.explain import explain
from offmap.explain.explanation import Reason
from offmap.explain.wording import reason_in_words
from offmap.loop import OpenWorld
from offmap.loop.access import model_in_use, taught_rows
from offmap.service.problems import Problem
from offmap.service.rows import named

# Known rows to compare with; more take longer and say the same.
_COMPARED = 500
_REASONS = 5


async def reasons_of(state: Any, world: str, number: int) -> list[tuple[str, Reason]]:
    """The parts of a row that make it unusual, the strongest first, in words and in numbers.

    Args:
        state: The state of the application.
        world: Name of the world.
        number: Number of the row.
    """

    def gathered(opened: OpenWorld) -> tuple[Any, Any, Any]:
        if number not in opened.state.rows:
            raise Problem(404, "there is no such row")
        model, rows = model_in_use(opened), opened.rows([opened.state.rows[number].id])
        return model, named(model, rows), named(model, taught_rows(opened, _COMPARED))

    model, rows, known = await state.worlds.get(world).read(gathered)
    # Outside the thread of the world, which others wait for, and one at a time.
    async with state.turn:
        [found] = await asyncio.to_thread(explain, model, rows, reference=known, counterfactual=False)
    return [(reason_in_words(reason), reason) for reason in found.reasons(_REASONS)]
