"""Messages with blocks taken out, replaced or put in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from hashlib import blake2b

import msgspec
from msgspec import Raw, Struct

from ctxdoc.prompt.segments import Segment, read_message
from ctxdoc.request import codec
from ctxdoc.request.codec import Json
from ctxdoc.simulation.history.messages import Call, Head, Message, T, message_of
from ctxdoc.tokens.estimate import Weigh, weight_of

SUMMARY_TOLD = "[summary of "
"""How a block begins that stands for a summary."""


class Maker:
    """Makes the messages that a strategy puts in the place of recorded ones, each once."""

    def __init__(self, weigh: Weigh = weight_of, made: dict[object, Message] | None = None) -> None:
        """`made` are messages that other runs over the same session have made: they are the same here."""
        self._weigh = weigh
        self._made = {} if made is None else made
        self._kept: dict[object, object] = {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, made once for a key and held as long as the strategy runs."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]  # type: ignore[return-value]

    def replaced(self, message: Message, edits: Mapping[int, Edit], call: Call) -> Message:
        """A message with some of its blocks, counted as in `segments`, changed or left out.

        Everything else stays as it is to the byte.
        """
        key = (message, tuple(sorted(edits.items())))
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._edited(message, edits, call)
        return found

    def pair(
        self, key: Hashable, make: Callable[[], tuple[Message, Message]]
    ) -> tuple[Message, Message]:
        """Two messages that stand for a call and its result, made once for a key over all runs."""
        keys = (key, "call"), (key, "result")
        if keys[0] not in self._made:
            self._made[keys[0]], self._made[keys[1]] = make()
        return self._made[keys[0]], self._made[keys[1]]

    def message(self, role: str, block: dict[str, Json], tokens: int) -> Message:
        """A message of one block, with a given size."""
        raw = codec.encode(block)
        key = (role, raw, tokens)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = made_message({"role": role, "content": [block]}, [tokens])
        return found

    def with_block(
        self, message: Message, block: dict[str, Json], tokens: int, *, last: bool = False
    ) -> Message:
        """A message with one more block, ahead of its own or behind them."""
        raw = codec.encode(block)
        key = (message, raw, tokens, last)
        found = self._made.get(key)
        if found is None:
            members = _members(message.raw)
            blocks = _blocks(members)
            blocks = [*blocks, Raw(raw)] if last else [Raw(raw), *blocks]
            sizes = [*message.tokens, tokens] if last else [tokens, *message.tokens]
            found = self._made[key] = _message(_joined(members, blocks), sizes)
        return found

    def _edited(self, message: Message, edits: Mapping[int, Edit], call: Call) -> Message:
        members = _members(message.raw)
        blocks = _blocks(members)
        kept: list[Raw] = []
        sizes: list[int | None] = []
        for index, segment in enumerate(message.segments):
            if segment.rank[2] >= len(blocks):
                # The prompt has a block that the body does not spell.
                continue
            block, edit = blocks[segment.rank[2]], edits.get(index)
            if edit is None:
                kept.append(block)
                sizes.append(message.tokens[index])
            elif edit.content is not None:
                kept.append(edit.applied(block, edit.content))
                sizes.append(edit.tokens)
        raw = _joined(members, kept)
        segments = read_message(raw, message.segments[0].rank[1], lean=True).segments
        # A size that nobody states is estimated, on the scale that the counters have shown.
        tokens = [
            round(call.scale * self._weigh(segment, call.rule)) if size is None else size
            for segment, size in zip(segments, sizes, strict=True)
        ]
        return message_of(segments, tokens, raw)


class Edit(Struct, frozen=True, order=True, gc=False):
    """What becomes of a block: a member with another value, another block, or nothing at all."""

    member: str = ""
    """Empty: the content is the whole block."""
    content: str | None = None
    """The new value, as JSON; None leaves the block out."""
    tokens: int | None = None
    """Of the block afterwards; None estimates it."""

    def applied(self, block: Raw, content: str) -> Raw:
        """The block with the new value."""
        return _with(block, self.member, content) if self.member else Raw(content.encode())


LEFT_OUT = Edit()


def made_message(value: dict[str, Json], tokens: Sequence[int], index: int = 0) -> Message:
    """A message with given sizes of its blocks."""
    return _message(codec.encode(value), tokens, index)


def _message(raw: bytes, tokens: Sequence[int], index: int = 0) -> Message:
    return message_of(read_message(raw, index, lean=True).segments, tokens, raw)


def _members(raw: bytes) -> dict[str, Raw]:
    return msgspec.json.decode(raw, type=dict[str, Raw])


def _blocks(members: dict[str, Raw]) -> list[Raw]:
    """The blocks of a message; a string is short for one text block."""
    content = bytes(members.get("content", b"[]"))
    if content.startswith(b'"'):
        return [Raw(b'{"type":"text","text":%b}' % content)]
    return msgspec.json.decode(content, type=list[Raw])


def _joined(members: dict[str, Raw], blocks: list[Raw]) -> bytes:
    return msgspec.json.encode({**members, "content": blocks})


def _with(block: Raw, member: str, content: str) -> Raw:
    members = msgspec.json.decode(block, type=dict[str, Raw])
    return Raw(msgspec.json.encode({**members, member: Raw(content.encode())}))


def with_segment(head: Head, segment: Segment, tokens: int) -> Head:
    """A head with one more block, at its place in render order."""
    at = sum(other.rank <= segment.rank for other in head.segments)
    return Head(
        segments=(*head.segments[:at], segment, *head.segments[at:]),
        tokens=(*head.tokens[:at], tokens, *head.tokens[at:]),
        size=head.size + tokens,
    )


def told(messages: Sequence[Message], count: int) -> str:
    """What names a summary of the first messages: others have another."""
    ends = [messages[index].segments for index in {0, count - 1} if 0 <= index < len(messages)]
    name = blake2b(b"".join(s.digest for segments in ends for s in segments), digest_size=4)
    return f"{SUMMARY_TOLD}{count} messages, {name.hexdigest()}]"


def text_block(text: str) -> dict[str, Json]:
    """A text block."""
    return {"type": "text", "text": text}
