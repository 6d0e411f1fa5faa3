"""Another set of anthropic-beta features was asked for.

What it is
    The `anthropic-beta` header names other features than in the earlier request, the prompts are the same,
    and less was read than the rules allow. The order of the names does not count.
Why it breaks the prefix
    A feature may change what the API renders. Users measured that another set reads nothing, and that single
    names cost nothing; the cache-diagnostics page (2026-09-26) counts the set among what affects a prompt.
Example
    A client adds a beta for one call of a session, and that call reads nothing.
What to do
    Send one set of betas through a whole session.
How sure it can be
    Possible, never more: which features move the prompt, and from where on, is not documented. Where
    everything is read, nothing is reported.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.surroundings import beta_change


def _match(case: Case) -> Match | None:
    found = beta_change(case) if case.parts[Part.PROVIDER] else None
    if found is None:
        return None
    changes = [f"{', '.join(found.came)} came"] if found.came else []
    changes += [f"{', '.join(found.went)} went"] if found.went else []
    return Match(
        explanation=f"The set of anthropic-beta features changed ({' and '.join(changes)}) and the rendered "
        "prompts are the same; which features move the prompt is not documented.",
        confidence=Confidence.POSSIBLE,
    )


CAUSE = Cause(
    id="beta_set_changed",
    title="another set of anthropic-beta features",
    group=Group.SETTINGS,
    parts=frozenset({Part.PROVIDER}),
    fix="Send one set of anthropic-beta features through a whole session.",
    match=_match,
)
