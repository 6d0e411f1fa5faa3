"""The token ledger: sizes of prompts, exact where counters say so, shared out in between.

There is no public tokenizer. What the API reported gives the exact size of a whole prompt and of
the prefix at a breakpoint; inside such an interval the blocks share it by weight; without any
counter the weights alone are the estimate.
"""

from __future__ import annotations

from itertools import accumulate

from msgspec import Struct

from ctxdoc.prompt.prefix import Prefix
from ctxdoc.request.usage import Origin, Usage
from ctxdoc.tokens.estimate import CHARACTERS_PER_TOKEN, Weigh, hidden_tokens, weight_of

HELD_WEIGHTS = 8192
"""Blocks whose weight is looked up."""


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


class TokenLedger:
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
        # What both prompts share up to an exact size was shared out before: work grows with what is new.
        start, base = self._settled(prefix, before, own)
        weights = self._weigh(prefix, start)
        ends = self._ends(prefix, own, start, base)
        ratio = self._ratio(prefix, weights, ends, start, before[1].ratio if before else None)
        # A measured ratio holds the hidden tokens of the prompts that it was measured on.
        hidden = hidden_tokens(prefix) if ratio is None else 0
        upto = _share_out(weights, ends, 1.0 if ratio is None else ratio, hidden, start, base)
        if start and before is not None:
            upto = before[1].upto[:start] + upto
        exact = start or ends or ratio is not None
        return Sizes(
            upto=upto,
            total=_total(usage, upto),
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
            if prefix.rule.rules.automatic:
                # All of it is cached, so its end is where a later prompt can go on.
                self.note(prefix, usage.input, len(prefix.segments) - 1)
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
            # The longest exact beginning that both have; it holds only while no counter contradicts it.
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
            # Its own counters go before what others have shown: a logger may have lost a part of those.
            if count in own and own[count] >= most:
                # A prompt whose last blocks are not counted ends where it was cached.
                ends.append((count, own[count]))
                most = own[count]
                continue
            if key in known and _fits(count, known[key], own):
                tokens = known[key]
            else:
                continue
            # Sizes grow: an end below the one before it is that of another tokenizer or a wrong counter.
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

    def copied(self) -> TokenLedger:
        """A ledger that knows as much, and learns for itself."""
        copy = TokenLedger(self.weigh)
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


def _total(usage: Usage | None, upto: tuple[int, ...]) -> int:
    """Tokens of the whole prompt: as stated, else up to its last segment."""
    if usage is not None and usage.input:
        return usage.input
    return upto[-1] if upto else 0


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
        # Between two exact sizes the weights only say how the blocks share the difference.
        part = list(accumulate(weights[done : end - start]))
        scale = (tokens - base) / part[-1] if part and part[-1] else 0.0
        upto.extend([base + scale * weight for weight in part])
        done, base = end - start, float(tokens)
    if not ends and not start:
        # A counter holds what tool use adds; an estimate has to add it itself.
        base = float(hidden)
    # Behind the last exact size nothing binds the weights but the ratio.
    upto.extend([base + ratio * weight for weight in accumulate(weights[done:])])
    # Rounded once, from the start: single blocks rounded each would not add up.
    return tuple([round(value) for value in upto])
