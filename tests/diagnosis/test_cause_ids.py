"""Where ids of causes stand: in their own files, and in the few that are left."""

from __future__ import annotations

import re
from pathlib import Path

import ctxdoc
from ctxdoc.diagnosis.causes import CAUSES, Part, can_explain

PACKAGE = Path(ctxdoc.__file__).parent
LEFT = {
    "pytest_plugin.py",
    "reports/miscounts.py",
    # The same words with another meaning: what the API says, a state, a member of a document.
    "diagnosis/api_word.py",
    "diagnosis/diagnose.py",
    "reports/json/request.py",
}


def test_ids_of_causes_stand_nowhere_else() -> None:
    """Of the ids that are no plain word: `none` and `unexplained` aside, each has an underscore."""
    names = "|".join(name for name in CAUSES.names if "_" in name)
    quoted = re.compile(rf"[\"']({names})[\"']")
    files = {p.relative_to(PACKAGE).as_posix(): p for p in PACKAGE.rglob("*.py")}
    found = {
        name
        for name, path in files.items()
        if not name.startswith("diagnosis/causes/") and quoted.search(path.read_text("utf-8"))
    }
    assert found == LEFT


def test_what_a_cause_can_explain_is_known_without_loading_it() -> None:
    for name in CAUSES.names:
        known = {part for part in Part if can_explain(name, frozenset({part}))}
        assert known == CAUSES[name].parts, name
