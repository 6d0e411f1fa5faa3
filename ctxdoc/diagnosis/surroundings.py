"""What stands beside two prompts: beta features, the places that they were sent to, and what a log does not
show of either."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ctxdoc.cache.simulator import scopes_differ
from ctxdoc.diagnosis.case import Case
from ctxdoc.request import codec
from ctxdoc.request.request import Request


class Betas(Struct, frozen=True):
    """Beta features of the API that were asked for on one side only."""

    came: tuple[str, ...]
    went: tuple[str, ...]


def beta_change(case: Case) -> Betas | None:
    """The beta features that came and went; None where they are the same, or one side's are unknown."""
    before, after = (_betas(e.request) for e in (case.before, case.after))
    if before is None or after is None or before == after:
        return None
    return Betas(came=tuple(sorted(after - before)), went=tuple(sorted(before - after)))


def _betas(request: Request) -> frozenset[str] | None:
    """The betas of a request, from its header or its body (Bedrock and Google Cloud); None where
    neither was logged."""
    found = [*_betas_of_header(request), *_betas_of_body(request)]
    return frozenset().union(*found) - {""} if found else None


def _betas_of_header(request: Request) -> Iterator[frozenset[str]]:
    header = request.headers.get("anthropic-beta", "")
    # The API asks every request for its version: with that header logged, the others would be there too.
    if "anthropic-beta" in request.headers or "anthropic-version" in request.headers:
        yield frozenset(name.strip() for name in header.split(","))


def _betas_of_body(request: Request) -> Iterator[frozenset[str]]:
    for member, raw in request.body.others if request.body else ():
        if member in ("anthropic_beta", "betas"):
            value = codec.decode(raw)
            yield frozenset(map(str, value) if isinstance(value, list) else (str(value),))


def place_change(case: Case) -> str | None:
    """What the log says of the two places, where they differ."""
    before, after = case.before.request.scope, case.after.request.scope
    if not scopes_differ(before, after):
        return None
    known = dict(before)
    return ", ".join(
        f"{name} went from {known[name]} to {value}"
        for name, value in after
        if name in known and known[name] != value
    )


def unseen(case: Case) -> str:
    """What the log does not show and could explain a miss; empty when it shows everything."""
    hidden = []
    if case.gap is None:
        hidden.append("when the requests were sent")
    usage = case.before.usage
    if usage is not None and usage.cache_read and not case.whole_log:
        hidden.append("when the entries that the earlier request read were last used")
    one, two = case.before.request, case.after.request
    alone = sorted(dict(one.scope).keys() ^ dict(two.scope).keys())
    if alone:
        hidden.append(f"which {alone[0]} one of the requests had")
    if one.headers.get("anthropic-beta") != two.headers.get("anthropic-beta"):
        hidden.append("what the changed anthropic-beta header does to the prompt")
    return " and ".join(hidden)
