"""Markup: what a file says cannot steer the page, in texts nor in attributes."""

import pytest

from offmap.report.markup import element, readable


@pytest.mark.parametrize("sign", ["\u202e", "\u2066", "\u200f", "\x1b"])
def test_characters_that_reorder_or_steer_are_escaped_everywhere(sign: str) -> None:
    made = element("p", f"a{sign}b", title=f"a{sign}b", alt=f"a{sign}b")
    assert sign not in made
    assert made.count("a\\") == 3


def test_attributes_are_quoted_and_not_cut() -> None:
    assert element("img", alt='"><script>') == '<img alt="&quot;&gt;&lt;script&gt;">'
    assert len(element("img", src="x" * 9_000)) > 9_000


@pytest.mark.parametrize(
    "text", ["\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\U0001f469\u200d\U0001f4bb", "two\nlines"]
)
def test_joiners_of_letters_and_emoji_stay(text: str) -> None:
    assert readable(text) == text


@pytest.mark.parametrize("mark", ["\u202e", "\u2066", "\u200b", "\x1b"])
def test_marks_that_hide_or_reorder_are_escaped_beside_joiners(mark: str) -> None:
    shown = readable(f"a\u200d{mark}b")
    assert mark not in shown
    assert shown.startswith("a\u200d\\")
