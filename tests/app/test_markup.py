"""Text from data is shown literally."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.widgets import markup
from core.sentences import Span


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(max_size=80))
def test_html_holds_no_element_and_reads_as_the_text(text: str) -> None:
    reader = _Reader()
    reader.feed(markup.html(text))
    reader.close()
    assert reader.tags == []
    assert reader.text == markup.visible(text)


def test_a_sentence_has_only_the_elements_of_its_tones() -> None:
    reader = _Reader()
    reader.feed(markup.spans([Span("<b>a</b> & ", "strong"), Span("<i>", "slower"), Span("x", "no such tone")]))
    assert reader.tags == ["b", "span"]
    assert reader.text == "<b>a</b> & <i>x"


@pytest.mark.parametrize(
    "text",
    ["**b**", "[x](http://h)", "![p](http://h/p.png)", "$x^2$", ":material/bug:", ":red[x]", "`c`", "<b>", "# h"],
)
def test_markdown_contexts_get_every_special_character_escaped(text: str) -> None:
    shown = markup.plain(text)
    assert shown.replace("\\", "") == text
    for i, c in enumerate(shown):
        assert c not in "*[]()$:`<>#!" or shown[i - 1] == "\\"


def test_hidden_characters_are_made_visible() -> None:
    assert markup.visible("a\u202eb\x00c\x1b[31m") == "a\\u202eb\\x00c\\x1b[31m"
    assert markup.plain("two\nlines") == "two lines"
