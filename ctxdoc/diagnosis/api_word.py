"""The API's own word on a miss, beside the differences of the two requests."""

from __future__ import annotations

from msgspec import Struct

from ctxdoc.diagnosis.causes import Case
from ctxdoc.request.request import Section


class ApiWord(Struct, frozen=True, kw_only=True):
    """What the API itself says of a miss (cache-diagnostics page, 2026-09-26)."""

    reason: str
    agrees: bool | None
    """Whether a difference stands where it says; None where it names no place, or the bodies are not
    there to tell."""
    text: str


SAID_OF = {
    "model_changed": (Section.MODEL, Section.SETTINGS),
    "system_changed": (Section.SYSTEM,),
    "tools_changed": (Section.TOOLS,),
    "messages_changed": (Section.MESSAGES,),
}
"""Where each reason of the API points."""
SAYS_NOTHING = {
    "previous_message_not_found": "it has no fingerprint of the request before; this says nothing of a change",
    "unavailable": "tools, system and messages match, and it does not compare the rest",
}


def api_word(case: Case) -> ApiWord | None:
    """The reason in a recorded answer beside the differences that were found; None where it gave none."""
    response = case.after.request.response
    return word_of(response.miss_reason, case) if response and response.miss_reason else None


def word_of(reason: str, case: Case) -> ApiWord:
    """A reason that the API gave beside the differences that were found."""
    if reason in SAYS_NOTHING:
        return ApiWord(reason=reason, agrees=None, text=SAYS_NOTHING[reason])
    places = SAID_OF.get(reason)
    if places is None or case.alone:
        return ApiWord(reason=reason, agrees=None, text="there is nothing here to hold beside it")
    found = [change.difference for change in case.changes if change.difference.section in places]
    if found:
        byte = f", byte {found[0].byte:,}" if found[0].byte is not None else ""
        return ApiWord(reason=reason, agrees=True, text=f"that is {found[0].pointer}{byte}")
    other = f"the first difference is {case.where}" if case.where else "nothing differs"
    return ApiWord(
        reason=reason,
        agrees=False,
        text=f"{other}; the API compares with the request that `diagnostics` names, which may be another",
    )
