"""The token ledger: sizes of prompts, exact where counters say so, shared out in between.

There is no public tokenizer. What the API reported gives the exact size of a whole prompt and of
the prefix at a breakpoint; inside such an interval the blocks share it by weight; without any
counter the weights alone are the estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import TypeAlias

from msgspec import Struct

from ctxdoc.images.size import UNKNOWN_SIZE_TOKENS, image_tokens, read_size
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import Segment
from ctxdoc.providers import ModelRule
from ctxdoc.request.codec import Json
from ctxdoc.request.model import Origin, Usage

CHARACTERS_PER_TOKEN = {"older": 4.1, "newer": 2.8}
"""English prose and tool schemas by tokenizer family, measured on 3,046 recorded requests:
3.6 to 4.8 for models up to 4.6, 2.4 to 3.1 from 4.7 on."""
CHARACTERS_PER_TOKEN_CALL = {"older": 3.0, "newer": 2.1}
"""Arguments of tool calls."""
TOKENS_PER_WIDE_CHARACTER = 0.9
"""Characters outside ASCII weigh more than their number."""
BLOCK_TOKENS = 3.0
"""Fixed cost of one block."""
IMAGE_BLOCK_TOKENS = 2.0
"""The same of an image, beside its patches: the best of whole numbers on 20 recorded prompts."""
IMAGE_FRAME = len('{"type":"image","source":{"type":"base64","media_type":"image/png","data":""}}')
"""Characters around the data of an image, which are no text: of 23 recorded prompts with images the
billed tokens leave 10 to 29 for all but the patches."""
ERROR_SHARE = 0.25
"""Half-width of the band around an estimate without counters. Of 520 recorded prompts of 500 tokens
and more 95 % lie in it, half of them within 5 %; parts that `is_opaque` names are outside of any band."""


HELD_WEIGHTS = 8192
"""Blocks whose weight is looked up."""


Weigh: TypeAlias = Callable[[Segment, ModelRule], float]
"""Estimated tokens of a block for a model."""


class Sizes(Struct, frozen=True):
    """Tokens of a prompt up to and including each segment."""

    upto: tuple[int, ...]
    total: int
    origin: Origin
    """What the whole rests on: reported ends make it calibrated, none make it estimated."""
    ends: tuple[tuple[int, int], ...] = ()
    """Numbers of leading segments whose tokens are exact, with those tokens."""
    ratio: float | None = None
    """Tokens per unit of weight, as the counters of this conversation have shown."""

    def at(self, index: int | None) -> int:
        """Tokens of the prefix that ends with a segment; 0 for None."""
        return 0 if index is None or index < 0 else self.upto[index]


class Ledger:
    """Exact sizes of prefixes that counters have shown, by their chained hash."""

    def __init__(self, weigh: Weigh | None = None) -> None:
        """`weigh` estimates the tokens of a block, before calibration: `weight_of` by default."""
        self.weigh = weigh or weight_of
        self.known: dict[bytes, int] = {}
        self._ratios: dict[str, float] = {}
        self._weights: dict[tuple[str, str], dict[bytes, float]] = {}
        """By tokenizer and image tier, then by block."""

    def note(self, prefix: Prefix, tokens: int, index: int) -> None:
        """Records that the prefix ending with that segment has so many tokens."""
        if tokens > 0:
            self.known[prefix.keys[index]] = tokens

    def measure(
        self,
        prefix: Prefix,
        usage: Usage | None,
        before: tuple[Prefix, Sizes] | None = None,
        counted: int | None = None,
    ) -> Sizes:
        """Sizes of a prompt; the counters of its own request count too.

        `before` is an earlier request whose sizes are taken over up to the last exact one that both
        share. `counted` is the whole prompt as the API counted it, for one without counters.
        """
        own = self._own(prefix, usage)
        if usage is None and counted and prefix.segments:
            own[len(prefix.segments)] = counted
        start, base = self._settled(prefix, before, own)
        weights = self._weigh(prefix, start)
        ends = self._ends(prefix, own, start, base)
        ratio = self._ratio(prefix, weights, ends, start, before[1].ratio if before else None)
        # A measured ratio holds the hidden tokens of the prompts that it was measured on.
        hidden = hidden_tokens(prefix) if ratio is None else 0
        upto = _share_out(weights, ends, 1.0 if ratio is None else ratio, hidden, start, base)
        if start and before is not None:
            upto = before[1].upto[:start] + upto
        exact = bool(start or ends) or ratio is not None
        return Sizes(
            upto=upto,
            total=(usage.input if usage else 0) or (upto[-1] if upto else 0),
            origin=Origin.CALIBRATED if exact else Origin.ESTIMATED,
            ends=(*_ends_upto(start, before), *ends),
            ratio=ratio,
        )

    def _own(self, prefix: Prefix, usage: Usage | None) -> dict[int, int]:
        """Numbers of leading segments whose tokens the request's own counters state, growing: up to
        its last breakpoint, and the whole prompt. They go before what other requests have shown."""
        if usage is None or not prefix.segments:
            return {}
        own = {}
        cached = usage.cache_read + usage.cache_write
        if prefix.breakpoints and cached:
            own[prefix.breakpoints[-1] + 1] = cached
            self.note(prefix, cached, prefix.breakpoints[-1])
        if usage.input:
            own[len(prefix.segments)] = usage.input
        return own

    def _weigh(self, prefix: Prefix, start: int) -> list[float]:
        """Estimated tokens of the segments from the `start`th on, before calibration."""
        kind = (prefix.rule.tokenizer, prefix.rule.image_tier)
        known = self._weights.setdefault(kind, {})
        if len(known) > HELD_WEIGHTS:
            known.clear()
        weights = []
        for segment in prefix.segments[start:]:
            weight = known.get(segment.digest)
            if weight is None:
                weight = known[segment.digest] = self.weigh(segment, prefix.rule)
            weights.append(weight)
        return weights

    def _settled(
        self, prefix: Prefix, before: tuple[Prefix, Sizes] | None, own: dict[int, int]
    ) -> tuple[int, int]:
        """Leading segments whose sizes can be taken over, and the tokens of all of them."""
        if before is None:
            return 0, 0
        for count, tokens in reversed(before[1].ends):
            if count <= len(prefix.keys) and prefix.keys[count - 1] == before[0].keys[count - 1]:
                known = self.known.get(prefix.keys[count - 1])
                return (count, tokens) if known == tokens and _fits(count, tokens, own) else (0, 0)
        return 0, 0

    def _ends(
        self, prefix: Prefix, own: dict[int, int], start: int, base: int
    ) -> list[tuple[int, int]]:
        """Segment counts with their exact tokens, growing; what contradicts is left out."""
        known = self.known
        ends: list[tuple[int, int]] = []
        most = base
        for count, key in enumerate(prefix.keys[start:], start=start + 1):
            if count in own and own[count] >= most:
                # A prompt whose last blocks are not counted ends where it was cached.
                ends.append((count, own[count]))
                most = own[count]
                continue
            if key in known and _fits(count, known[key], own):
                tokens = known[key]
            else:
                continue
            if tokens > most:
                ends.append((count, tokens))
                most = tokens
        return ends

    def _ratio(
        self,
        prefix: Prefix,
        weights: list[float],
        ends: list[tuple[int, int]],
        start: int,
        known: float | None,
    ) -> float | None:
        """Tokens per unit of weight behind the last exact size: of the prompt itself, of the one
        before it, or else of the last measured prompt of the model; None where nothing was measured."""
        if ends and not start:
            count, tokens = ends[-1]
            weight = sum(weights[:count])
            if weight and LEAST_RATIO <= tokens / weight <= _most_ratio(prefix):
                self._ratios[prefix.root] = tokens / weight
                return tokens / weight
        return self._ratios.get(prefix.root) if known is None else known

    def copied(self) -> Ledger:
        """A ledger that knows as much, and learns for itself."""
        copy = Ledger(self.weigh)
        copy.known, copy._ratios = dict(self.known), dict(self._ratios)
        copy._weights = self._weights
        return copy


LEAST_RATIO = 0.2
"""Under so many tokens for an estimated one the counters are those of something else."""


def _most_ratio(prefix: Prefix) -> float:
    """Tokens for an estimated one at a token a byte, which nothing exceeds."""
    return CHARACTERS_PER_TOKEN[prefix.rule.tokenizer]


def _fits(count: int, tokens: int, own: dict[int, int]) -> bool:
    """Whether a size leaves room for what the request's own counters state further on."""
    return all(count > end or tokens < limit or count == end for end, limit in own.items())


def _ends_upto(start: int, before: tuple[Prefix, Sizes] | None) -> tuple[tuple[int, int], ...]:
    return tuple([end for end in before[1].ends if end[0] <= start]) if start and before else ()


def _share_out(
    weights: list[float],
    ends: list[tuple[int, int]],
    ratio: float,
    hidden: int,
    start: int,
    settled: int,
) -> tuple[int, ...]:
    """Tokens up to each segment from the `start`th on."""
    upto: list[float] = []
    done, base = 0, float(settled)
    for end, tokens in ends:
        part = list(accumulate(weights[done : end - start]))
        scale = (tokens - base) / part[-1] if part and part[-1] else 0.0
        upto.extend([base + scale * weight for weight in part])
        done, base = end - start, float(tokens)
    if not ends and not start:
        base = float(hidden)
    upto.extend([base + ratio * weight for weight in accumulate(weights[done:])])
    return tuple([round(value) for value in upto])


def hidden_tokens(prefix: Prefix) -> int:
    """Tokens that tool use adds without standing in the body (pricing page, 2026-10-10)."""
    has_tools = any(segment.kind == "tool" for segment in prefix.segments)
    return prefix.rule.tool_prompt if has_tools else 0


def weight_of(segment: Segment, rule: ModelRule) -> float:
    """Estimated tokens of a segment, before calibration."""
    if segment.kind in ("setting", "empty"):
        return 0.0
    family = rule.tokenizer
    ratio = CHARACTERS_PER_TOKEN[family]
    if segment.kind in ("tool_use", "server_tool_use"):
        ratio = CHARACTERS_PER_TOKEN_CALL[family]
    pictures = list(_iter_images(segment.value)) if segment.pictured else []
    hidden = sum(len(data) + IMAGE_FRAME for data in pictures)
    tokens = sum(_picture_tokens(data, rule.image_tier) for data in pictures)
    text = max(0, segment.narrow - hidden) / ratio + segment.wide * TOKENS_PER_WIDE_CHARACTER
    return (IMAGE_BLOCK_TOKENS if segment.kind == "image" else BLOCK_TOKENS) + tokens + text


def is_opaque(segment: Segment) -> bool:
    """Whether a block brings tokens that its text does not show: a document, something that is only
    referred to, a tool of the provider's, the tools of a server."""
    if segment.kind == "tool":
        return b'"input_schema"' not in segment.data
    if segment.kind == "setting":
        return segment.pointer.startswith("$.mcp_servers")
    return segment.kind in OPAQUE_KINDS or (
        segment.pictured and b'"type":"base64"' not in segment.data
    )


OPAQUE_KINDS = frozenset({"document", "container_upload", "search_result", "server_tool_use"})


def _iter_images(value: Json) -> Iterable[str]:
    match value:
        case {"type": "image", "source": {"data": str(data)}}:
            yield data
        case {"content": list(parts)}:
            for part in parts:
                yield from _iter_images(part)


def _picture_tokens(data: str, tier: str) -> int:
    size = read_size(data)
    return image_tokens(*size, tier) if size else UNKNOWN_SIZE_TOKENS
