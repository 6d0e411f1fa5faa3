"""Token counts of images from the API: a message with the image less one without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ctxdoc.images.ask import AskedImage, image_block
from ctxdoc.live.count_tokens import TokenCounter
from ctxdoc.request.codec import Json

TEXT: dict[str, Json] = {"type": "text", "text": "?"}
"""Stands beside the image: the API counts no message without text."""


def with_image_counts(
    asked: Sequence[AskedImage], names: Sequence[str], model: str, counter: TokenCounter
) -> Iterator[AskedImage]:
    """The images with what the API counts for each; as they are where it does not tell.

    `names` are the sizes and files as they were given.
    """
    bare = _count(counter, model, [TEXT])
    for each, name in zip(asked, names, strict=True):
        block = image_block(each, name)
        whole = _count(counter, model, [block, TEXT]) if block and bare is not None else None
        counted = None if whole is None or bare is None else whole - bare
        yield replace(each, counted=counted)


def _count(counter: TokenCounter, model: str, content: list[dict[str, Json]]) -> int | None:
    return counter.count({"model": model, "messages": [{"role": "user", "content": content}]})
