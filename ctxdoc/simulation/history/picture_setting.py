"""The setting that a prompt has with the first image in it: it comes and goes with what a strategy leaves.

Whether images are in a request is a part of what the cache compares ahead of the messages (prompt-caching page,
2026-10-08): where the last image goes, or the first one comes back, the messages are lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ctxdoc.prompt.segments import AT, Segment
from ctxdoc.simulation.history.edit import with_segment
from ctxdoc.simulation.history.messages import Head, Message, Session


class PictureSetting:
    """The heads of a session with and without the setting, each made once."""

    def __init__(self, session: Session) -> None:
        """A session without images has no such setting, and costs nothing here."""
        self._setting = next(filter(None, map(_setting_of, _heads(session))), None)
        self._made: dict[tuple[Head, bool], Head] = {}

    def fitting(self, head: Head, messages: Sequence[Message]) -> Head:
        """The head that a prompt of these messages has."""
        if self._setting is None:
            return head
        pictured = any(message.pictured for message in messages)
        key = (head, pictured)
        if key not in self._made:
            self._made[key] = self._made_for(head, pictured)
        return self._made[key]

    def _made_for(self, head: Head, pictured: bool) -> Head:
        if (_setting_of(head) is not None) is pictured or self._setting is None:
            return head
        return with_segment(head, *self._setting) if pictured else _without_setting(head)


def _heads(session: Session) -> dict[Head, None]:
    return dict.fromkeys(call.head for call in session.calls)


def _setting_of(head: Head) -> tuple[Segment, int] | None:
    for segment, tokens in zip(head.segments, head.tokens, strict=True):
        if segment.rank[0] == AT["images"]:
            return segment, tokens
    return None


def _without_setting(head: Head) -> Head:
    kept = [i for i, segment in enumerate(head.segments) if segment.rank[0] != AT["images"]]
    tokens = tuple(head.tokens[i] for i in kept)
    return replace(
        head, segments=tuple(head.segments[i] for i in kept), tokens=tokens, size=sum(tokens)
    )
