"""JUnit XML, as test reports of CI systems read it."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

from ctxdoc.outputs.base import Output, Style
from ctxdoc.outputs.printable import harmless
from ctxdoc.outputs.report import CheckResult, Report

UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not have."""


def _write(report: Report, style: Style) -> str:
    del style
    checks = report.checks
    broken = sum(each.verdict == "broken" for each in checks.tested)
    unchecked = sum(each.verdict == "unchecked" for each in checks.tested)
    totals = {
        "name": "ctxdoc gate",
        "tests": str(len(checks.tested)),
        "failures": str(broken),
        "errors": str(unchecked),
    }
    suites = Xml.Element("testsuites", totals)
    suite = Xml.SubElement(suites, "testsuite", {**totals, "skipped": "0", "time": "0"})
    for each in checks.tested:
        _add(suite, each)
    Xml.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(suites, "unicode") + "\n"


def _add(suite: Xml.Element, each: CheckResult) -> None:
    case = Xml.SubElement(
        suite, "testcase", {"name": each.name, "classname": "ctxdoc.gate", "time": "0"}
    )
    if each.verdict == "held":
        return
    text = UNWRITABLE.sub("?", harmless(each.text))
    sort = "failure" if each.verdict == "broken" else "error"
    found = Xml.SubElement(case, sort, {"message": text.splitlines()[0], "type": each.verdict})
    found.text = text


OUTPUT = Output(id="junit", title="JUnit XML, for test reports", write=_write)
