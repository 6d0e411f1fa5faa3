"""The log formats, one file each: a record becomes a request here. Imports reading and request."""

from __future__ import annotations

from ctxdoc.reading.formats.base import Format
from ctxdoc.registry import Registry

FORMATS: Registry[Format] = Registry(
    "ctxdoc.reading.formats",
    "FORMAT",
    (
        "native",
        "claude_code",
        "pi_session",
        "agent_sdk",
        "claude_code_otel",
        "bedrock_log",
        "vcrpy_parsed",
        "vcrpy",
        "r_vcr",
        "ruby_vcr",
        "go_vcr",
        "httpmock",
        "claude_trace",
        "claude_tap",
        "har",
        "httprr",
        "http_recorder",
        "req_llm",
        "test_agent",
        "inspect_ai",
        "otlp",
        "langfuse",
        "litellm",
        "flat",
        "openai_chat",
        "body",
    ),
    # pytest would take a file of that name for tests.
    files={"test_agent": "dd_test_agent"},
)

__all__ = ["FORMATS", "Format"]
