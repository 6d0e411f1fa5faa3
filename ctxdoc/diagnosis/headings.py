"""What the label, the heading or the tag of a place in a text says of it: live state, or recalled text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxdoc.diagnosis.text_values import LABEL_WINDOW, SECTION_WINDOW, WINDOW, Kind, compiled

GIT_WORDS = (
    r"git|branch|commits?|head|staged|unstaged|untracked|uncommitted|working tree|stash|status"
)
ENVIRONMENT_WORDS = (
    rf"(?:{GIT_WORDS}|cwd|pwd|working (?:dir\w*|folder)|current (?:dir\w*|folder|file|branch|page|screen|tab|"
    r"url|state|mode)|workspace|(?:open|recent) (?:files?|tabs?|editors?|documents?|windows?)|active (?:file|"
    r"editor|tab|window)|selection|selected|cursor|viewport|mode|host ?name|platform|environment|env|"
    r"processes|disk|cpu|ram|free memory|battery|network|ip address|device|location|weather|"
    r"(?:project|directory|folder|file|repo\w*) (?:structure|tree|listing|layout|map)|(?:files|tree) (?:in|of|"
    r"under)|screen|resolution|diagnostics|(?:linter|compiler|lint|build|type) errors|online|unread|"
    r"terminal|clipboard|os|shell)"
)
MEMORY_WORDS = (
    r"(?:memor(?:y|ies)|recall\w*|remember\w*|notes?|skills?|(?:project|user|custom|repo\w*|team) "
    r"(?:instructions?|rules|context|guidelines)|instructions? from|preferences?|facts?|"
    r"knowledge|profile|persona|retrieved|relevant|documents?|snippets?|search results|known about|"
    r"what (?:you|we|i) know|learned|context from|few shot|examples?)"
)
DEEPEST = 7
"""A level below the deepest heading that there is."""
INSTRUCTION_FILE = r"(?:claude|agents?|gemini|memory|copilot-instructions|skill)\.md|\.cursorrules"


def enclosing_kind(text: str, at: int) -> Kind | None:
    """What the label of a place says: its own line's, its paragraph's, its section's or its tag's."""
    return next((kind for kind in _kinds_above(text, at) if kind is not None), None)


def _kinds_above(text: str, at: int) -> Iterator[Kind | None]:
    """What each label says that heads a place, the nearest first."""
    lines = text[max(0, at - SECTION_WINDOW) : at].split("\n")[::-1]
    own = lines[0] + text[at : at + WINDOW].split("\n", 1)[0]
    paragraph = _paragraph(lines, own)
    depth, closed = DEEPEST, set[str]()
    # The nearest label says most: lines are read upwards, so that the first that speaks is it.
    for number, line in enumerate(lines):
        words = line.strip()
        # Read from below, a tag that was closed cannot hold the place.
        closed |= set(compiled(r"</([\w:-]+)>").findall(words))
        level = len(words) - len(words.lstrip("#"))
        if level:
            # A heading ends the sections of its own depth and of deeper ones.
            if level < depth:
                depth = level
                yield kind_of_label(words)
        elif compiled(INSTRUCTION_FILE).search(words):
            yield Kind.MEMORY
        elif words:
            yield from (kind_of_label(tag) for tag in _opened_tags(words) if tag not in closed)
            if number < paragraph and (number == 0 or _is_heading_line(words)):
                yield kind_of_label(label_of(compiled(r"^(?:<[^>]*>\s*)+").sub("", words)))


def _paragraph(lines: list[str], own: str) -> int:
    """How many lines, from a place's own line upwards, are one paragraph with it. A sentence is headed by
    nothing, and heads nothing."""
    if _is_prose(own):
        return 1
    ends = (n for n, line in enumerate(lines) if n and (not line.strip() or _is_prose(line)))
    return next(ends, len(lines))


def _is_heading_line(words: str) -> bool:
    """Whether a line is the label of the lines below it."""
    return words.endswith((":", ")")) or _is_title(words)


def _opened_tags(line: str) -> list[str]:
    """Names of the tags that a line opens and does not close."""
    return [m[1] for m in compiled(r"<([\w:-]+)[^>/]*>(?!.*</\1>)").finditer(line)]


def _is_prose(line: str) -> bool:
    """A sentence, which no label above it heads."""
    words = line.strip()
    return len(words) > LABEL_WINDOW and words[-1] in ".!?" and not re.match(r"[-*•]", words)


def _is_title(words: str) -> bool:
    """A short line that opens a list: no list item, no sentence."""
    return (
        len(words) <= LABEL_WINDOW and not re.match(r"[-*•\d]", words) and words[-1] not in ".!?,;"
    )


def label_of(line: str) -> str:
    """The label of a line: `Name: value`, a tag, a heading, a title; empty for prose."""
    words = line.strip()
    if not words or words.startswith("#"):
        return words
    tag = re.match(r"<([\w:-]+)", words)
    if tag:
        return tag[1]
    named = re.match(r"(?:[-*•]\s+|[\"'{(\[]+)?([\w .'/()-]{1,40}?)[\"']?\s*[:=]", words)
    if named:
        return named[1]
    return words if _is_title(words) else ""


def kind_of_label(label: str) -> Kind | None:
    """Live state or recalled text, by the words of a label; None where it says neither."""
    # Names of fields are read as words: workingDirectory, working_directory.
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", label)
    for words, kind in ((ENVIRONMENT_WORDS, Kind.ENVIRONMENT), (MEMORY_WORDS, Kind.MEMORY)):
        if compiled(rf"\b{words}\b").search(spaced):
            return kind
    return Kind.MEMORY if compiled(INSTRUCTION_FILE).search(label) else None
