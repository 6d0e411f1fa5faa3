"""What a log cannot tell, because its formats do not carry it."""

from __future__ import annotations

from ctxdoc.model import Log, Trait

MISSING = (
    (Trait.TIME, "no times: lifetimes, pauses and parallel starts"),
    (Trait.USAGE, "no counters: what was really read, written and paid"),
    (Trait.HEADERS, "no headers: beta features, account and upstream"),
)


def missing_of(log: Log) -> tuple[str, ...]:
    """What cannot be checked, one line a missing trait."""
    lines = [text for trait, text in MISSING if trait not in log.traits]
    if Trait.EXACT_BYTES not in log.traits:
        if Trait.PARSED_BYTES in log.traits:
            lines.append(
                "bodies as the recorder parsed them: key order and the spelling of numbers"
            )
        else:
            lines.append(
                "no bodies in some of the files: where a prefix changed, and what changed it"
            )
    return tuple(lines)
