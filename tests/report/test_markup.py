"""Markup: what a file says cannot steer the page, in texts nor in attributes."""

import pytest

from offmap.report.markup import element


@pytest.mark.parametrize("sign", ["\u202e", "\u2066", "\u200f", "\x1b"])
def test_characters_that_reorder_or_steer_are_escaped_everywhere(sign: str) -> None:
    made = element("p", f"a{sign}b", title=f"a{sign}b", alt=f"a{sign}b")
    assert sign not in made
    assert made.count("a\\") == 3


def test_attributes_are_quoted_and_not_cut() -> None:
    assert element("img", alt='"><script>') == '<img alt="&quot;&gt;&lt;script&gt;">'
    assert len(element("img", src="x" * 9_000)) > 9_000
