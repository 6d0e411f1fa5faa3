"""Images are sent smaller, from their first sending on.

What it does
    Every image whose size is known is sent at the largest size of the same aspect that `max_edge` and
    `max_tokens` allow. Nothing changes later, so that nothing is rewritten.
Parameters
    max_edge=1000   pixels of the long side; 0 is no limit
    max_tokens=0    patches of 28 by 28 pixels; 0 is no limit
Rewrites the prefix
    no
What the model no longer sees
    detail: it is not counted as unseen
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Annotated

import msgspec
from msgspec import Struct

from ctxdoc.images.file import blank_picture, picture_of, shrunk
from ctxdoc.images.size import image_tokens
from ctxdoc.request.codec import Json
from ctxdoc.simulation.history.edit import Edit
from ctxdoc.simulation.history.mapped import Mapped
from ctxdoc.simulation.history.messages import Message, pictured
from ctxdoc.simulation.recipe import Recipe
from ctxdoc.simulation.strategies.base import PAYLOAD, PIXELS, Definition, History, Outgoing


class ShrinkImages(Struct, frozen=True):
    """Sends images at a lower resolution."""

    max_edge: Annotated[int, PIXELS] = 1_000
    max_tokens: Annotated[int, PAYLOAD] = 0

    def send(self, history: History, memory: object) -> Outgoing:
        """The history with smaller images; those made before are taken over."""
        known = memory if isinstance(memory, Mapped) else Mapped()
        now = known.next(history.messages, lambda fresh: self._all_smaller(fresh, history))
        return Outgoing(messages=now.sent if now.differs else history.messages, memory=now)

    def _all_smaller(self, messages: list[Message], history: History) -> list[Message]:
        return [self._smaller(each, history) if each.pictured else each for each in messages]

    def _smaller(self, message: Message, history: History) -> Message:
        edits: dict[int, Edit] = {}
        for place, segment in enumerate(message.segments):
            if segment.pictured:
                value, saved = self._shrunk(segment.value, history.call.rule.image_tier)
                if saved > 0:
                    text = msgspec.json.encode(value).decode()
                    edits[place] = Edit("", text, max(0, message.tokens[place] - saved))
        return history.maker.replaced(message, edits, history.call) if edits else message

    def _shrunk(self, value: Json, tier: str) -> tuple[Json, int]:
        """A block with smaller images, and the tokens that it saves."""
        if not isinstance(value, dict):
            return value, 0
        match value:
            case {"type": "image", "source": {"type": "base64", "data": str(data)}}:
                return self._image(value, data, tier)
            case {"type": "tool_result", "content": list(parts)}:
                rows = [self._shrunk(part, tier) for part in parts]
                content: list[Json] = [part for part, _ in rows]
                return {**value, "content": content}, sum(n for _, n in rows)
            case _:
                return value, 0

    def _image(self, value: dict[str, Json], data: str, tier: str) -> tuple[Json, int]:
        picture = picture_of(data)
        if picture is None:
            return value, 0
        width, height = shrunk(picture.width, picture.height, self.max_edge, self.max_tokens)
        saved = image_tokens(picture.width, picture.height, tier) - image_tokens(
            width, height, tier
        )
        if saved <= 0:
            return value, 0
        blank = blank_picture(width, height, blake2b(data.encode(), digest_size=8).hexdigest())
        source: Json = {"type": "base64", "media_type": "image/png", "data": blank}
        return {**value, "source": source}, saved


def _recipe(strategy: ShrinkImages) -> Recipe:
    return Recipe(
        do=f"scale images to at most {strategy.max_edge:,} pixels of the long side before they are sent",
        proof="ctxdoc image LOG lists no larger one",
    )


STRATEGY = Definition(
    recipe=_recipe,
    id="shrink_images",
    title="images are sent smaller from the start",
    make=ShrinkImages,
    edits=False,
    coarsens=True,
    applies=pictured,
)
