"""What counters, times and models prove of a miss where the log has no bodies.

A request of a session reads what the one before it read and wrote: so it was in 1,132 of 1,214
recorded steps. What was in the earlier prompt and is written again is a rewrite, and the log says of
it as much as its model, its time and its own marks tell.
"""

from __future__ import annotations

from msgspec import Struct

from ctxdoc.causes.base import TOLERANCE_TOKENS, Confidence
from ctxdoc.model import Event, Request, Usage
from ctxdoc.providers.rules import short_model_id
from ctxdoc.render import RULES

SHORTER = 0.97
"""A prompt under this share of the one before it has lost a part of its history."""
FEW = 0.7
"""Under this share the history gave way to something else."""


class Rewrite(Struct, frozen=True, kw_only=True):
    """Tokens that were in the earlier prompt and were written again."""

    tokens: int
    cause: str
    """Id of a cause."""
    confidence: Confidence
    explanation: str


class Counted:
    """The requests of one session, compared one after the other."""

    def __init__(self) -> None:
        self._last: Request | None = None
        self._of_model: dict[str, Request] = {}
        self._long = False
        """Whether the session writes for an hour."""

    def next(self, request: Request) -> Rewrite | None:
        """What was written again, or None where nothing was."""
        usage = request.usage
        if usage is None or request.refused or not usage.input:
            return None
        model = short_model_id(request.model)
        last, same = self._last, self._of_model.get(model)
        self._last = self._of_model[model] = request
        found = _rewrite(request, usage, same or last, switched=same is None, long=self._long)
        self._long = bool(usage.cache_write_1h) or (self._long and not usage.cache_write_5m)
        return found


def _rewrite(
    request: Request, usage: Usage, before: Request | None, *, switched: bool, long: bool
) -> Rewrite | None:
    earlier = before.usage if before else None
    if before is None or earlier is None or not (earlier.cache_read or earlier.cache_write):
        return None
    again = min(earlier.input - usage.cache_read, usage.cache_write)
    if again <= TOLERANCE_TOKENS:
        return None
    gap = None
    if request.at and before.at:
        gap = (request.at - before.at).total_seconds()
    life = RULES.ttl_seconds["1h" if long else "5m"]
    expired = gap is not None and gap >= life
    rewritten = f"{again:,} of {earlier.input:,} tokens of the earlier prompt were written again"

    def found(cause: str, confidence: Confidence, why: str) -> Rewrite:
        return Rewrite(
            tokens=again,
            cause=cause,
            confidence=confidence,
            explanation=f"{rewritten}: {why}.",
        )

    if switched:
        why = f"the model went from {before.model} to {request.model}, and entries belong to one model"
        return found("model_changed", Confidence.CERTAIN, why)
    if request.event is Event.COMPACTION:
        why = "the log notes a compaction, which replaces the history"
        return found("history_compacted", Confidence.CERTAIN, why)
    if usage.input < FEW * earlier.input:
        why = f"the prompt fell to {usage.input:,} tokens: a compaction, a clearing or a rewind"
        return found("history_compacted", Confidence.LIKELY, why)
    if expired and gap is not None:
        why = f"{gap / 60:.1f} min passed since the request before, more than the {life // 60} min"
        why += " that entries live"
        return found("ttl_expired", Confidence.LIKELY, why)
    if usage.input < SHORTER * earlier.input:
        why = f"the prompt fell to {usage.input:,} tokens, so a part of the history was taken out"
        return found("history_rewritten", Confidence.LIKELY, why)
    if request.event is Event.THINKING:
        why = "the log notes another thinking level, which is a part of the prompt"
        return found("thinking_settings_changed", Confidence.LIKELY, why)
    said = request.response.miss_reason if request.response else ""
    why = (
        f"the API says {said}"
        if said
        else "same model, in time; only bodies could say what changed"
    )
    return found("prefix_changed", Confidence.LIKELY if said else Confidence.POSSIBLE, why)
