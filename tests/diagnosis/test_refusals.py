"""Rules for which the API refuses a request, and the cause that each one is."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ctxdoc.cache.breakpoint_rules import Refusal, RefusalCode
from ctxdoc.diagnosis.attribution import case_of_pair
from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.find import find_causes
from tests.diagnosis.test_comparison import said
from tests.prompt.test_server_edits import body, line, requests_of

CAUSE_OF = {
    RefusalCode.INVALID_TARGET: "breakpoint_invalid_target",
    RefusalCode.OVER_LIMIT: "breakpoint_over_limit",
    RefusalCode.LIFETIMES: "ttl_order_invalid",
    RefusalCode.MESSAGE_SHAPE: "message_shape_invalid",
}


@pytest.mark.parametrize("code", RefusalCode)
def test_each_code_of_a_refusal_is_one_cause(tmp_path: Path, code: RefusalCode) -> None:
    """It is told with the place and the words of the rule, and with no other cause of a refusal."""
    case = refused(tmp_path, Refusal(code, "$.messages[0]", "the rule's own words"))
    finding, also = find_causes(case)
    assert finding.cause.id == CAUSE_OF[code]
    assert finding.match.pointer == "$.messages[0]"
    assert "the rule's own words" in finding.match.explanation
    assert not {each.cause.id for each in also} & set(CAUSE_OF.values())


def refused(folder: Path, refusal: Refusal) -> Case:
    sent = line(body(said("Look at the meters.")), 0, None)
    case = case_of_pair(*requests_of(folder, sent, sent))
    return replace(case, refusal=refusal, part=Part.REFUSAL)
