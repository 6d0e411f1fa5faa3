"""Forms of times are tried where one of their signs stands: a sign stands in all that a form matches."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxdoc.diagnosis import clocks
from ctxdoc.diagnosis.clocks import TIMES, find_signs

SIGNED = [(pattern, signs) for pattern, signs in clocks.FORMS + clocks.LABELLED if signs]
ASCII = "".join(map(chr, range(32, 127)))


@pytest.mark.parametrize(("pattern", "signs"), SIGNED)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_sign_stands_in_all_that_a_form_matches_in_ascii(
    data: st.DataObject, pattern: str, signs: tuple[str, ...]
) -> None:
    if signs == clocks.NOT_ASCII:
        text = data.draw(st.text(ASCII))
        assert not re.search(pattern, text, re.IGNORECASE)
        return
    found = st.from_regex(re.compile(pattern, re.IGNORECASE | re.ASCII), alphabet=ASCII)
    match = re.search(pattern, data.draw(found), re.IGNORECASE)
    assert match is None or find_signs(signs, match[0].lower())


NAMES = (
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec januar februar marz juni juli oktober dezember "
    "janvier mars avril mai juin juillet septembre octobre enero febrero marzo abril mayo junio julio "
    "agosto septiembre octubre noviembre diciembre gennaio febbraio aprile maggio giugno luglio "
    "settembre ottobre novembre dicembre janeiro fevereiro maio junho julho setembro outubro novembro "
    "dezembro maart mei augustus"
)
DAYS = (
    "monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thurs fri sat sun "
    "montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag lundi mardi mercredi jeudi "
    "vendredi samedi dimanche lunes martes jueves viernes domingo sabato domenica segunda quarta quinta "
    "sexta maandag dinsdag woensdag donderdag vrijdag zaterdag zondag"
)


@pytest.mark.parametrize(
    "text",
    [f"3 {name} 2026" for name in NAMES.split()] + [f"{name} 09:07" for name in DAYS.split()],
)
def test_every_name_of_a_month_and_of_a_day_has_a_sign(text: str) -> None:
    forms = clocks.possible(clocks.FORMS, text, text, 0)
    known = {form for form in TIMES if re.search(form, text, re.IGNORECASE)}
    assert known
    assert known <= set(forms)


def test_forms_of_names_are_not_tried_where_no_name_stands() -> None:
    tried = clocks.possible(clocks.FORMS, "It is 09:06.", "It is 09:07.", 9)
    assert len(tried) < len(TIMES) / 2


def test_every_form_is_tried_where_a_text_is_not_ascii() -> None:
    # The long s is an s for a pattern that ignores case, and no s for `lower`.
    assert clocks.possible(clocks.FORMS, "3 \u017feptember 2026", "", 0) == TIMES
