"""What of a simulated prompt the API would refuse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxdoc.history import Message

NOT_FROM_USER = "the first message is not the user's"
WITHOUT_CALL = "a tool result stands without its call"
WITHOUT_RESULT = "a tool call stands without its result"
OVER_WINDOW = "the prompt is larger than the model's window"
BOUND_THINKING = "thinking follows a place that the client has changed (refused on this model)"


class Checker:
    """Checks prompts; what is in a message is looked up once."""

    def __init__(self) -> None:
        self._ids: dict[Message, tuple[frozenset[str], frozenset[str]]] = {}

    def faults(self, messages: Sequence[Message]) -> Iterator[str]:
        """Every rule on the order of messages that a prompt breaks.

        A tool_result follows its tool_use at once, and each tool_use has one (tool-use pages); the
        first message is the user's (Messages API reference). The API joins messages of one role.
        """
        if messages and messages[0].role != "user":
            yield NOT_FROM_USER
        rows = [(message.role, *self._of(message)) for message in _joined(messages)]
        called: frozenset[str] = frozenset()
        parted = unanswered = False
        for role, calls, answers in _merged(rows):
            parted |= bool(answers - called)
            unanswered |= bool(called - answers)
            called = calls if role == "assistant" else frozenset()
        if parted:
            yield WITHOUT_CALL
        if unanswered:
            yield WITHOUT_RESULT

    def _of(self, message: Message) -> tuple[frozenset[str], frozenset[str]]:
        found = self._ids.get(message)
        if found is None:
            found = self._ids[message] = (message.calls, message.answers)
        return found


def _joined(messages: Sequence[Message]) -> Iterator[Message]:
    """The messages but those that the API reads as instructions in between."""
    return (message for message in messages if message.role != "system")


def _merged(
    rows: Sequence[tuple[str, frozenset[str], frozenset[str]]],
) -> Iterator[tuple[str, frozenset[str], frozenset[str]]]:
    """Messages of one role in a row are one message."""
    last: tuple[str, frozenset[str], frozenset[str]] | None = None
    for row in rows:
        if last is not None and last[0] == row[0]:
            last = (row[0], last[1] | row[1], last[2] | row[2])
            continue
        if last is not None:
            yield last
        last = row
    if last is not None:
        yield last


def has_thinking(messages: Sequence[Message]) -> bool:
    """Whether any of them holds thinking."""
    return any(message.thinks for message in messages)
