"""The bill of a strategy: what its prompts read, write and pay in full under a placement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.cache.prefix_tree import PrefixTree
from ctxdoc.cache.simulator import Cache, Lookup
from ctxdoc.pricing.cost import Meter, meter_of
from ctxdoc.replay.bound import BoundOfTree, warm_of
from ctxdoc.request.usage import Usage
from ctxdoc.simulation.history.assemble import Prompt
from ctxdoc.simulation.history.messages import Call
from ctxdoc.simulation.placements import Placement


class Sending(Struct, frozen=True, eq=False, gc=False):
    """A prompt that is sent, with its answer's size."""

    prompt: Prompt
    output: int
    cached: bool
    """Whether it carries breakpoints at all."""
    order: int
    """0 for the request itself, -1 for what is sent ahead of it, 1, 2 … for what follows it."""
    at: datetime | None = None
    began: datetime | None = None
    """When its response began; None where that is assumed."""


def uncached_usage(sending: Sending) -> Usage:
    """The usage of a prompt without a cache."""
    return Usage(
        uncached=sending.prompt.sizes.total,
        cache_read=0,
        cache_write_5m=0,
        cache_write_1h=0,
        output=sending.output,
    )


def sum_of_known(costs: Sequence[int | None]) -> int | None:
    """The sum of what is priced; None where nothing is."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


def total_cost(costs: Sequence[int | None]) -> int | None:
    """The sum of all of them; None where one is not priced."""
    total = 0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


class Bill:
    """What the prompts of a strategy cost under one placement."""

    def __init__(self, placement: Placement, *, renews_shorter: bool = False) -> None:
        self.placement = placement
        self._cache = Cache(renews_shorter=renews_shorter)
        self._bound = BoundOfTree(PrefixTree())
        self._billed: list[list[tuple[Meter, Usage, int | None]]] = []
        """By request: each prompt's rates and usage, and its number in the tree of the bound."""

    def add(self, call: Call, sendings: Sequence[Sending]) -> None:
        """Sends the prompts of one request."""
        del call
        self._billed.append(
            [
                (meter_of(each.prompt.call.tariff), *self.bill(each.prompt.call, each))
                for each in sendings
            ]
        )

    def pass_by(self, call: Call, sending: Sending) -> None:
        """Sends a prompt that is billed to somebody else."""
        self.bill(call, sending)

    def bill(self, call: Call, sending: Sending) -> tuple[Usage, int | None]:
        """What one prompt reads, writes and pays; its number in the tree where the end decides it."""
        if not sending.cached:
            return uncached_usage(sending), None
        if self.placement.bound:
            return uncached_usage(sending), self._add(call, sending.prompt)
        usage = self._cache.bill(_step(call, sending, self.placement))
        return (replace(usage, output=sending.output) if sending.output else usage), None

    def _add(self, call: Call, prompt: Prompt) -> int:
        upto = prompt.sizes.upto
        warm = warm_of(call.reported, call.request)
        if warm and (prompt.head is not call.head or prompt.messages != call.messages):
            # What was read is known of the recorded prompt only.
            warm = 0
        return self._bound.add(
            prompt.prefix.keys, call.rule.minimum, lambda known, _: upto[known:], warm
        )

    def usages(self) -> Iterator[list[tuple[Meter, Usage]]]:
        """What is billed, request by request; of the bound it is known at the end only."""
        for row in self._billed:
            yield [
                (meter, usage if number is None else _bounded(usage, self._bound.parts(number)))
                for meter, usage, number in row
            ]

    def usage(self) -> Usage:
        """All of it together."""
        every = [usage for row in self.usages() for _, usage in row]
        return Usage(
            uncached=sum(usage.uncached for usage in every),
            cache_read=sum(usage.cache_read for usage in every),
            cache_write_5m=sum(usage.cache_write_5m for usage in every),
            cache_write_1h=sum(usage.cache_write_1h for usage in every),
            output=sum(usage.output for usage in every),
        )

    def costs(self) -> list[int | None]:
        """Of each request with its further calls."""
        return [total_cost([meter.cost(usage) for meter, usage in row]) for row in self.usages()]


def _bounded(usage: Usage, parts: tuple[int, int, int]) -> Usage:
    read, written, uncached = parts
    return replace(usage, uncached=uncached, cache_read=read, cache_write_5m=written)


def _step(call: Call, sending: Sending, placement: Placement) -> Lookup:
    prompt = sending.prompt
    return Lookup(
        prefix=prompt.prefix,
        sizes=prompt.sizes,
        marks=placement.place(prompt),
        at=sending.at,
        began=sending.began,
        scope=call.scope,
    )
