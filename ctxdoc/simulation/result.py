"""A strategy under a placement: what it sent, cost and hid."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from msgspec import Struct

from ctxdoc.prompt.segments import Segment
from ctxdoc.request.usage import Usage
from ctxdoc.simulation.placements import Placement
from ctxdoc.simulation.strategies import Spec


class Lost(Struct, frozen=True, gc=False):
    """A block that the model no longer sees, from some request on."""

    segment: Segment
    tokens: int
    request: int
    """Number of the request in the log."""


class Result(Struct, frozen=True, kw_only=True):
    """A strategy under a placement."""

    specs: tuple[Spec, ...]
    placement: Placement
    requests: int
    extra_calls: int
    changed: int
    """Requests that are not as they were recorded."""
    usage: Usage
    """All requests and further calls together."""
    cost: Decimal | None
    """USD of the requests that are priced, answers included where they are known; None where none is."""
    cost_without_cache: Decimal | None
    rewrites: int
    """Requests whose prompt does not go on from the one before it."""
    rewrote: tuple[tuple[int, int], ...]
    """Their places from 0, and what each had sent before and sends again behind the change."""
    rewritten_tokens: int
    """What those had sent before, and send again at another place or behind a change."""
    peak: int
    """Tokens of the largest prompt."""
    fits: bool
    lost: tuple[Lost, ...]
    warnings: Mapping[str, int]
    """What the API would refuse, or what is not counted → requests."""
    prompts: tuple[int, ...]
    """Tokens of each request's prompt."""
    costs: tuple[int | None, ...]
    """Of each request with its further calls, as a meter counts."""

    @property
    def unpriced(self) -> int:
        """Requests of models without a price: none of them is in the costs."""
        return sum(cost is None for cost in self.costs)

    @property
    def name(self) -> str:
        """The strategies as they are joined."""
        return "+".join(spec.definition.id for spec in self.specs)

    @property
    def text(self) -> str:
        """The strategies as they are typed."""
        return "+".join(
            spec.definition.id
            + (":" if spec.given else "")
            + ",".join(f"{key}={value}" for key, value in spec.given)
            for spec in self.specs
        )

    @property
    def is_idle(self) -> bool:
        """Whether nothing was taken out, put in or sent again: its mark was never reached."""
        return not (self.lost or self.extra_calls or self.changed)

    @property
    def lost_tokens(self) -> int:
        """Tokens that the model does not see at some request that had them."""
        return sum(item.tokens for item in self.lost)

    def overtaken_at(self, other: Result) -> int | None:
        """The request, from 1, from which on another row has cost more in all than this one, to the
        end; None where it has not."""
        ahead = total = 0
        since: int | None = None
        for number, (own, theirs) in enumerate(zip(self.costs, other.costs, strict=True), start=1):
            if own is None or theirs is None:
                continue
            ahead += theirs - own
            total += abs(theirs - own)
            since = (since or number) if ahead > 0 else None
        return since if total else None
