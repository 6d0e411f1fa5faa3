"""The answer of a request, as the next prompt gives it back."""

from __future__ import annotations

from ctxdoc.prompt.messages_form import THINKING_KINDS
from ctxdoc.prompt.prefix import Prefix

LEAST, MOST = 0.6, 1.7
"""Counted tokens of an answer for an estimated one, between which it is the one that the prompt gives back."""


def end_of_answer(before: Prefix, after: Prefix) -> int | None:
    """How many leading blocks of a prompt end with the earlier one's answer.

    None where it does not give it back as it was, where nothing stands behind it, or where thinking is in it,
    of which the API may leave some out.
    """
    start = len(before.segments)
    if start >= len(after.segments) or before.root != after.root:
        return None
    if after.keys[start - 1 : start] != before.keys[-1:]:
        return None
    end = start
    while end < len(after.segments) and after.segments[end].role == "assistant":
        if after.segments[end].kind in THINKING_KINDS:
            return None
        end += 1
    return end if start < end < len(after.segments) else None


def is_near(tokens: int, weight: float) -> bool:
    """Whether counted tokens are those of a text that is estimated so.

    Thinking that is not given back, and blocks that the log lost, set them apart.
    """
    return tokens > 0 and LEAST * weight <= tokens <= MOST * weight
