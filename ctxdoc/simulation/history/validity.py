"""What of a simulated prompt the API would refuse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ctxdoc.simulation.history.messages import Message
from ctxdoc.simulation.history.overlap import common_start, moved_run

NOT_FROM_USER = "the first message is not the user's"
WITHOUT_CALL = "a tool result stands without its call"
WITHOUT_RESULT = "a tool call stands without its result"
OVER_WINDOW = "the prompt is larger than the model's window"
BOUND_THINKING = "thinking follows a place that the client has changed (refused on this model)"


class Checker:
    """Checks prompts; what is in a message is looked up once."""

    def __init__(self) -> None:
        self._ids: dict[Message, tuple[frozenset[str], frozenset[str]]] = {}
        self._pairs: set[tuple[Message, Message]] = set()
        """Messages of which the second may follow the first."""
        self._legal: list[Message] = []
        """The last prompt of which every message may follow the one before it."""
        self._lines: dict[int, tuple[list[Message], frozenset[str]]] = {}

    def faults(self, messages: list[Message]) -> Iterator[str]:
        """Every rule on the order of messages that a prompt breaks.

        A tool_result follows its tool_use at once, and each tool_use has one (tool-use pages); the
        first message is the user's (Messages API reference). The API joins messages of one role.
        """
        if messages and messages[0].role != "user":
            yield NOT_FROM_USER
        if messages and not self._of(messages[0])[1] and self._follow(messages):
            return
        parted = unanswered = False
        called: frozenset[str] = frozenset()
        # The last message may call what nobody has answered yet.
        for role, calls, answers in self._joined(messages):
            parted |= not answers <= called
            unanswered |= not called <= answers
            called = calls if role == "assistant" else frozenset()
        if parted:
            yield WITHOUT_CALL
        if unanswered:
            yield WITHOUT_RESULT

    def _joined(
        self, messages: Sequence[Message]
    ) -> Iterator[tuple[str, frozenset[str], frozenset[str]]]:
        """The messages as the API reads them: role, ids that are called, ids that are answered."""
        role, calls, answers = "", frozenset[str](), frozenset[str]()
        for message in messages:
            if message.role == "system":
                # The API reads it as an instruction in between.
                continue
            own_calls, own_answers = self._of(message)
            if message.role == role:
                calls, answers = calls | own_calls, answers | own_answers
                continue
            yield role, calls, answers
            role, calls, answers = message.role, own_calls, own_answers
        yield role, calls, answers

    def _follow(self, messages: list[Message]) -> bool:
        """Whether each message may follow the one before it: what is known of two holds wherever they
        stand, so that a history that has only moved is not gone through again."""
        new = set(self._new_pairs(messages)) - self._pairs
        found = {pair for pair in new if self._is_legal(*pair)}
        self._pairs |= found
        if len(found) < len(new):
            return False
        self._legal = messages
        return True

    def _new_pairs(self, messages: list[Message]) -> Iterator[tuple[Message, Message]]:
        """Messages that follow each other here, and did not in the last prompt that was legal."""
        shared = common_start(self._legal, messages)
        at, run = moved_run(self._legal, messages, shared)
        # Up to the first message of what has moved, and from the last one of it on.
        yield from pairwise(messages[max(0, shared - 1) : at + 1])
        yield from pairwise(messages[max(0, at + len(run) - 1) :])

    def _is_legal(self, one: Message, two: Message) -> bool:
        if {one.role, two.role} != {"user", "assistant"}:
            # What is joined, or an instruction in between, is told by more than two.
            return False
        calls = self._of(one)[0] if one.role == "assistant" else frozenset[str]()
        return calls == self._of(two)[1]

    def own_faults(self, messages: list[Message], line: list[Message]) -> Iterator[str]:
        """What a changed prompt breaks that its thread, as it was recorded, does not."""
        found = tuple(self.faults(messages))
        if found:
            known = self.faults_of_line(line)
            yield from (fault for fault in found if fault not in known)

    def faults_of_line(self, line: list[Message]) -> frozenset[str]:
        """The same of all messages of a thread, looked at once."""
        found = self._lines.get(id(line))
        if found is None:
            found = self._lines[id(line)] = (line, frozenset(self.faults(line)))
        return found[1]

    def _of(self, message: Message) -> tuple[frozenset[str], frozenset[str]]:
        found = self._ids.get(message)
        if found is None:
            found = self._ids[message] = (message.calls, message.answers)
        return found


def has_thinking(messages: Sequence[Message]) -> bool:
    """Whether any of them holds thinking."""
    return any(message.thinks for message in messages)
