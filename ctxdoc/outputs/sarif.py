"""SARIF 2.1.0, for code scanning (OASIS standard, 2020-03-27)."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import PurePath
from urllib.parse import quote

import msgspec

from ctxdoc import __version__
from ctxdoc.outputs.base import Output, Style
from ctxdoc.outputs.printable import harmless
from ctxdoc.outputs.report import Annotation, Report, Rule

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "%SRCROOT%"


def _write(report: Report, style: Style) -> str:
    del style
    checks = report.checks
    rules = {annotation.rule.id: annotation.rule for annotation in checks.annotations}
    document = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "ctxdoc",
                        "version": __version__,
                        "semanticVersion": __version__,
                        "rules": [_rule(rule) for rule in rules.values()],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(each, list(rules)) for each in checks.annotations],
            }
        ],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _rule(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.id,
        "name": "".join(part.title() for part in rule.id.split("_")),
        "shortDescription": {"text": harmless(rule.title)},
        "fullDescription": {"text": harmless(rule.title)},
        "help": {"text": harmless(rule.help)},
        "defaultConfiguration": {"level": "error"},
    }


def _result(annotation: Annotation, rules: list[str]) -> dict[str, object]:
    found: dict[str, object] = {
        "ruleId": annotation.rule.id,
        "ruleIndex": rules.index(annotation.rule.id),
        "level": annotation.level,
        "message": {"text": harmless(annotation.message)},
    }
    if annotation.file:
        found["locations"] = [
            {
                "physicalLocation": {
                    "artifactLocation": _location(annotation.file),
                    "region": {"startLine": max(1, annotation.line)},
                }
            }
        ]
    # What a finding is known again by, though its line may move.
    key = f"{annotation.rule.id}\0{annotation.file}"
    found["partialFingerprints"] = {
        "ctxdoc/v1": blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    }
    return found


def _location(file: str) -> dict[str, object]:
    path = PurePath(file)
    uri = quote(path.as_posix().encode("utf-8", "surrogatepass"))
    if path.is_absolute():
        return {"uri": f"file://{uri}"}
    return {"uri": uri, "uriBaseId": ROOT}


OUTPUT = Output(id="sarif", title="SARIF 2.1.0, for code scanning", write=_write)
