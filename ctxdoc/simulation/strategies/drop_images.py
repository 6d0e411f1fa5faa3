"""Old images are dropped: only the newest stay.

What it does
    When more than `keep` images, and a batch more, are in the prompt, the oldest are replaced by a note
    until `keep` are left. What is dropped stays dropped.
Parameters
    keep=1          images that stay; 0 drops all, and with the last one what the API adds for images
    batch=1         images that are dropped together: 1 drops on every request with a new image
    note=true       whether a note stands in their place; without one a message of images alone keeps it
Rewrites the prefix
    from the first place that is dropped. Where each request ends with an image, every entry ends with one:
    dropping it makes all of them unreadable, and the whole history is written again.
What the model no longer sees
    the dropped images
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
from msgspec import Struct

from ctxdoc.images.file import iter_images, read_size
from ctxdoc.images.size import UNKNOWN_SIZE_TOKENS, image_tokens
from ctxdoc.prompt.segments import Segment
from ctxdoc.request.codec import Json
from ctxdoc.simulation.history.edit import LEFT_OUT, Edit, text_block
from ctxdoc.simulation.history.messages import Message, member_of, pictured
from ctxdoc.simulation.recipe import Recipe
from ctxdoc.simulation.strategies.base import COUNT, Definition, History, Outgoing

NOTE = "[image dropped]"
NOTE_TOKENS = 8


class DropImages(Struct, frozen=True):
    """Drops the oldest images."""

    keep: Annotated[int, COUNT] = 1
    batch: Annotated[int, COUNT] = 1
    note: bool = True

    def send(self, history: History, memory: object) -> Outgoing:
        """The history without the images that are dropped by now."""
        counts = {
            message: len(_images(message, history))
            for message in history.messages
            if message.pictured
        }
        total = sum(counts.values())
        dropped = self._dropped(total, memory if isinstance(memory, int) else 0)
        if not dropped:
            return Outgoing(messages=history.messages, memory=0)
        left = dropped
        put = {}
        for message, count in counts.items():
            gone = min(left, count)
            if gone:
                put[message] = self._without(message, gone, history)
            left -= gone
        sent = [put.get(message, message) for message in history.messages]
        return Outgoing(messages=sent, memory=dropped)

    def _dropped(self, total: int, before: int) -> int:
        """How many of all images are gone: what was dropped stays so, and more goes in whole batches."""
        dropped = min(before, total)
        most = max(0, self.keep) + max(1, self.batch) - 1
        return total - max(0, self.keep) if total - dropped > most else dropped

    def _without(self, message: Message, gone: int, history: History) -> Message:
        """A message without its first images."""
        edits: dict[int, Edit] = {}
        alone = len(message.segments)
        for index, own in _by_block(_images(message, history)[:gone]).items():
            segment, tokens = message.segments[index], message.tokens[index]
            if segment.kind == "image":
                alone -= 1
                # The API takes no message without a block.
                noted = self.note or not alone
                edits[index] = _note(tokens, sum(own)) if noted else LEFT_OUT
            else:
                edits[index] = self._shortened(segment, tokens, own)
        return history.maker.replaced(message, edits, history.call)

    def _shortened(self, segment: Segment, tokens: int, own: list[int]) -> Edit:
        """A tool result without its first images, whose tokens are given."""
        content = list(_noted(member_of(segment, "content"), len(own), self.note))
        # One without content says so, whether notes are asked for or not.
        extra = NOTE_TOKENS * len(own) if self.note or not content else 0
        text = msgspec.json.encode(content or [text_block(NOTE)]).decode()
        return Edit("content", text, max(0, tokens - sum(own)) + extra)


def _by_block(images: Sequence[tuple[int, int]]) -> dict[int, list[int]]:
    """The tokens of images by the index of their block."""
    found: dict[int, list[int]] = {}
    for index, tokens in images:
        found.setdefault(index, []).append(tokens)
    return found


def _images(message: Message, history: History) -> tuple[tuple[int, int], ...]:
    """The images of a message in order: the index of the block, and their tokens."""
    tier = history.call.rule.image_tier
    return history.maker.once(("images", message, tier), lambda: tuple(_sized(message, tier)))


def _sized(message: Message, tier: str) -> Iterator[tuple[int, int]]:
    for index, segment in enumerate(message.segments):
        if segment.pictured:
            for _, data in iter_images(segment.value):
                size = read_size(data) if data is not None else None
                yield index, image_tokens(*size, tier) if size else UNKNOWN_SIZE_TOKENS


def _note(tokens: int, freed: int) -> Edit:
    block = msgspec.json.encode(text_block(NOTE)).decode()
    return Edit("", block, max(0, tokens - freed) + NOTE_TOKENS)


def _noted(content: Json, gone: int, note: bool) -> list[Json]:
    """The parts of a tool result without its first images."""
    found: list[Json] = []
    for part in content if isinstance(content, list) else []:
        if gone and isinstance(part, dict) and part.get("type") == "image":
            gone -= 1
            if note:
                found.append(text_block(NOTE))
        else:
            found.append(part)
    return found


def _recipe(strategy: DropImages) -> Recipe:
    return Recipe(
        do=f"put a note in the place of all images but the last {strategy.keep}, {strategy.batch} at a time",
        proof="ctxdoc image LOG counts fewer sendings of each image",
    )


STRATEGY = Definition(
    recipe=_recipe,
    id="drop_images",
    title="only the newest images stay",
    make=DropImages,
    applies=pictured,
)
