"""Records that use the rarer members of each format, beside the samples: what a damaged log may hold."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import yaml

URL = "https://api.anthropic.com/v1/messages"
BODY: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 64,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "tools": [
        {"type": "mcp", "name": "m", "authorization": "t", "headers": {"x": "y"}},
        {"name": "t", "input_schema": {"type": "object"}},
    ],
    "mcp_servers": [{"type": "url", "url": "https://mcp", "authorization_token": "t"}],
    "metadata": {"user_id": '{"session_id": "s"}'},
    "thread": {"type": "create"},
    "context_management": {"edits": []},
    "unheard_of": {"x": 1},
    "messages": [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "i", "name": "t", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i", "content": "x"}]},
    ],
}  # fmt: skip
USAGE: dict[str, Any] = {
    "input_tokens": 3,
    "cache_read_input_tokens": 5,
    "cache_creation_input_tokens": 7,
    "cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 2},
    "output_tokens": 4,
    "server_tool_use": {"web_search_requests": 1},
    "service_tier": "batch",
    "iterations": [
        {"type": "message", "input_tokens": 1, "output_tokens": 1},
        {"type": "compaction", "input_tokens": 2, "output_tokens": 3, "model": "claude-haiku-4-5"},
    ],
}
ANSWER: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "model": "claude-sonnet-4-5",
    "content": [
        {"type": "compaction", "content": "so far"},
        {"type": "server_tool_use", "id": "a", "name": "web_search", "input": {}},
        {"type": "tool_use", "id": "i", "name": "t", "input": {"a": 1}},
    ],
    "usage": USAGE,
    "diagnostics": {"cache_miss_reason": {"type": "system_changed"}},
    "context_management": {
        "applied_edits": [
            {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 2, "cleared_input_tokens": 9}
        ]
    },
    "input_transformations": [{"type": "thinking_dropped", "path": "messages.1.content.0"}],
}
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {**ANSWER, "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "citations_delta", "citation": {}},
    },
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "input": {}}},
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": "{}"},
    },
    {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 9}},
    {"choices": [{"delta": {}, "usage": {"prompt_tokens": 5, "completion_tokens": 1}}]},
    {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 4}},
]
STREAM = "".join(f"event: {e.get('type')}\ndata: {json.dumps(e)}\n\n" for e in EVENTS)
CHAT: dict[str, Any] = {
    "model": "gpt-5",
    "messages": [
        {"role": "system", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "y"},
    ],
    "tools": [{"type": "function", "function": {"name": "f"}}],
}  # fmt: skip
CHAT_ANSWER: dict[str, Any] = {
    "id": "chatcmpl-1",
    "model": "gpt-5",
    "choices": [{"message": {"role": "assistant", "content": "z"}}],
    "usage": {
        "prompt_tokens": 9,
        "completion_tokens": 2,
        "total_tokens": 11,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_creation_token_details": {}},
    },
}
CONVERSE: dict[str, Any] = {
    "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default", "ttl": "1h"}}],
    "toolConfig": {
        "tools": [{"toolSpec": {"name": "t", "description": "d", "inputSchema": {"json": {}}}}],
        "toolChoice": {"tool": {"name": "t"}},
    },
    "inferenceConfig": {"maxTokens": 9},
    "additionalModelRequestFields": {"thinking": {"type": "enabled"}},
    "messages": [
        {"role": "user", "content": [{"text": "go"}]},
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "x"}}},
                {"toolUse": {"toolUseId": "i", "name": "t", "input": {"n": 2}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "i", "status": "error", "content": [{"text": "2"}]}},
                {"image": {"format": "png", "source": {"bytes": "AAAA"}}},
            ],
        },
    ],
}
BEDROCK: dict[str, Any] = {
    "schemaType": "ModelInvocationLog",
    "modelId": "anthropic.claude-sonnet-4-5",
    "timestamp": "2026-11-01T10:00:00Z",
    "operation": "Converse",
    "accountId": "1",
    "region": "eu",
    "input": {"inputBodyJson": CONVERSE, "inputTokenCount": 4},
    "output": {
        "outputBodyJson": {
            "usage": {"inputTokens": 4, "outputTokens": 1, "cacheDetails": [{"ttl": "1h"}]},
            "metrics": {"latencyMs": 5},
        },
        "outputTokenCount": 1,
    },
}
TIME = "2026-11-02T09:00:00Z"
DATE = {"date": "Mon, 02 Nov 2026 09:00:00 GMT", "request-id": ["r"]}


def _b64(value: Any) -> str:
    return b64encode((value if isinstance(value, str) else json.dumps(value)).encode()).decode()


def _otlp(**attributes: Any) -> list[dict[str, Any]]:
    return [
        {
            "key": name.replace("__", "."),
            "value": {"intValue": str(v)} if isinstance(v, int) else {"stringValue": v},
        }
        for name, v in attributes.items()
    ]


def _event(name: str, **attributes: Any) -> dict[str, Any]:
    return {
        "timeUnixNano": "1793527200000000000",
        "body": {"stringValue": f"claude_code.{name}"},
        "attributes": _otlp(event__name=name, session__id="s", model="claude-sonnet-5", **attributes),
    }  # fmt: skip


_CLAUDE = {"isSidechain": False, "sessionId": "s", "uuid": "u", "parentUuid": None}
_SDK = {"session_id": "s", "parent_tool_use_id": None}
_SPAN = {
    "traceId": "t",
    "spanId": "a",
    "parentSpanId": "b",
    "name": "chat",
    "startTimeUnixNano": "1795165200000000000",
    "endTimeUnixNano": 1795165202000000000,
    "status": {"code": 2, "message": "broken"},
    "attributes": _otlp(
        gen_ai__operation__name="chat", gen_ai__usage__input_tokens=9, input__value=json.dumps(BODY)
    ),
    "events": [{"name": "e", "attributes": _otlp(gen_ai__usage__output_tokens=2)}],
}
_COMPACT = {
    "__claude_tap_compact_trace__": 1,
    "records": [
        {
            "__claude_tap_compact_record__": 1,
            "record": {
                "request": {
                    "method": "POST",
                    "path": "/v1/messages",
                    "headers": {"Host": "x"},
                    "body": {"__claude_tap_blob_ref__": {"hash": "h"}},
                },
                "response": {"status": 200, "sse_events": [{"data": e} for e in EVENTS]},
                "timestamp": TIME,
                "duration_ms": 5,
            },
        }
    ],
    "blobs": {"h": {"payload": BODY}},
}
_PAIR = {"request": {"url": URL, "method": "POST", "headers": {}, "body": json.dumps(BODY)}}
_CASSETTE = {
    "request": {"body": json.dumps(BODY), "headers": {"host": ["h"]}, "method": "POST", "uri": URL},
    "response": {"body": {"string": STREAM}, "headers": {"date": [DATE["date"]]}, "status": {"code": 200}},
}  # fmt: skip
_PARSED = {
    "request": {"parsed_body": BODY, "headers": {}, "method": "POST", "uri": URL},
    "response": {"parsed_body": ANSWER, "headers": {}, "status": {"code": 200}},
}
_SAMPLE = {
    "id": 1,
    "epoch": 1,
    "input": "x",
    "target": "y",
    "attachments": {"a": "text"},
    "events_data": {"calls": BODY["messages"]},
    "events": [
        {
            "event": "model",
            "model": "m",
            "timestamp": TIME,
            "completed": TIME,
            "output": {"usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}},
            "call": {
                "request": {**BODY, "system": "attachment://a"},
                "call_refs": [[0, 1], [1, 3]],
                "call_key": "messages",
                "response": ANSWER,
            },
        }
    ],
}

DOCUMENTS: dict[str, tuple[tuple[Any, ...], ...]] = {
    "native": (
        (
            {
                "timestamp": TIME,
                "headers": {"X-Upstream": "a"},
                "request": BODY,
                "response": ANSWER,
                "status": 200,
                "duration_ms": 5,
                "cost_usd": "0.1",
            },
            {"request": {**BODY, "thread": {"type": "continue", "previous_message_id": "msg_1"}}},
            {"request": BODY, "simulated": ANSWER},
        ),
    ),
    "claude_code": (
        (
            {**_CLAUDE, "type": "system", "subtype": "compact_boundary", "content": "x"},
            {
                **_CLAUDE,
                "type": "attachment",
                "attachment": {"type": "deferred_tools_delta", "addedNames": ["a"]},
            },
            {**_CLAUDE, "type": "user", "message": {"role": "user", "content": "hi"}},
            {
                **_CLAUDE,
                "type": "assistant",
                "requestId": "r",
                "timestamp": TIME,
                "effort": "low",
                "costUSD": 0.1,
                "message": {**ANSWER, "role": "assistant"},
            },
            {
                **_CLAUDE,
                "type": "progress",
                "data": {
                    "type": "agent_progress",
                    "agentId": "g",
                    "message": {"type": "assistant", "message": {**ANSWER, "id": "msg_2"}},
                },
            },
        ),
    ),
    "agent_sdk": (
        (
            {**_SDK, "type": "system", "subtype": "init", "tools": ["a"], "mcp_servers": [{"name": "b"}],
             "permissionMode": "x"},
            {**_SDK, "type": "user", "message": {"role": "user", "content": "hi"}},
            {**_SDK, "type": "assistant", "message": ANSWER},
            {**_SDK, "type": "stream_event", "event": {"type": "message_start", "message": ANSWER}},
            {**_SDK, "type": "stream_event",
             "event": {"type": "message_delta", "usage": {"output_tokens": 7}}},
            {**_SDK, "type": "result", "subtype": "success", "total_cost_usd": 1},
        ),
    ),
    "pi_session": (
        (
            {"type": "session", "id": "s", "timestamp": TIME, "cwd": "/", "thinkingLevel": "high"},
            {"type": "thinking_level_change", "thinkingLevel": "low"},
            {"type": "compaction"},
            {
                "type": "message",
                "timestamp": TIME,
                "message": {
                    "role": "assistant",
                    "model": "m",
                    "usage": {"input": 1, "cacheRead": 2, "cacheWrite": 3, "cost": {"total": 1}},
                    "stopReason": "error",
                    "timestamp": 1793610000000,
                },
            },
        ),
    ),
    "claude_code_otel": (
        (
            {
                "resourceLogs": [
                    {
                        "scopeLogs": [
                            {
                                "logRecords": [
                                    _event("api_request_body", body=json.dumps(BODY)),
                                    _event("api_response_body", body=json.dumps(ANSWER)),
                                    _event("api_request", input_tokens=3, cost_usd="0.1", duration_ms=5),
                                    _event("api_error", error="x"),
                                ]
                            }
                        ]
                    }
                ]
            },
            {"event.name": "api_request", "timestamp": TIME, "input_tokens": "3", "speed": "fast"},
            {"body": "claude_code.api_request_body", "attributes": {"body_ref": "a.request.json"}},
        ),
        ({"request_file": "a.request.json", "response_file": "b", "request_id": "r", "timestamp": TIME},),
    ),
    "bedrock_log": ((BEDROCK, {"events": [{"message": json.dumps(BEDROCK)}]}),),
    "claude_trace": (
        (
            {
                "request": {"timestamp": 1793610000, "url": URL, "headers": {}, "body": BODY},
                "response": {"timestamp": 1793610002.5, "status_code": 200, "body_raw": STREAM},
            },
        ),
    ),
    "claude_tap": ((_COMPACT,),),
    "har": (
        (
            {
                "log": {
                    "version": "1.2",
                    "entries": [
                        {
                            "request": {
                                "url": URL,
                                "headers": [{"name": "host", "value": "h"}],
                                "postData": {"text": json.dumps(BODY)},
                            },
                            "response": {
                                "status": 200,
                                "content": {"text": _b64(STREAM), "encoding": "base64"},
                            },
                            "startedDateTime": TIME,
                            "time": 5,
                        },
                        {
                            "request": {"url": "https://b/model/anthropic.claude-x/converse",
                                        "postData": {"text": json.dumps(CONVERSE)}},
                            "response": {"content": {
                                "text": _b64([_b64(ANSWER)]), "encoding": "base64"}},
                        },
                    ],
                }
            },
        ),
    ),
    "http_recorder": (
        (
            {
                "version": 1,
                "metadata": {"recordedAt": TIME},
                "interactions": [
                    {
                        **_PAIR,
                        "transport": "http",
                        "response": {"status": 200, "body": _b64(ANSWER), "bodyEncoding": "base64"},
                    }
                ],
            },
        ),
    ),
    "req_llm": (
        (
            {
                "captured_at": TIME,
                "request": {"url": URL, "body": {"b64": _b64(BODY)}},
                "response": {"status": 200, "headers": DATE},
                "chunks": [{"b64": _b64(STREAM[:50])}, {"b64": _b64(STREAM[50:])}],
            },
        ),
    ),
    "test_agent": (
        ({**_PAIR, "response": {"status": {"code": 200}, "headers": DATE, "body": STREAM}},),
    ),
    "inspect_ai": (
        (_SAMPLE,),
        ({"eval": {"task": "t", "model": "m"}, "samples": [{**_SAMPLE, "events": None, "transcript": {
            "events": _SAMPLE["events"], "content": {"a": "b"}}}]},),
    ),
    "otlp": (
        (
            {
                "resourceSpans": [
                    {
                        "scopeSpans": [{"spans": [_SPAN]}],
                    },
                    {"instrumentationLibrarySpans": [{"spans": [{**_SPAN, "spanId": "b"}]}]},
                ]
            },
        ),
    ),
    "langfuse": (
        (
            {
                "id": "t",
                "observations": [
                    {
                        "id": "o",
                        "type": "GENERATION",
                        "traceId": "t",
                        "startTime": TIME,
                        "endTime": TIME,
                        "level": "ERROR",
                        "input": json.dumps(BODY),
                        "usage": {"unit": "TOKENS", "input": 3, "output": 1, "total": 4},
                        "costDetails": '{"total": 0.1}',
                        "totalCost": 1,
                    }
                ],
            },
        ),
    ),
    "litellm": (
        (
            {
                "standard_logging_object": {
                    "call_type": "acompletion",
                    "startTime": 1793610000.5,
                    "endTime": 1793610002.5,
                    "response": CHAT_ANSWER,
                    "messages": CHAT["messages"],
                    "metadata": {"usage_object": USAGE, "session_id": "s"},
                    "error_information": {"error_message": "x"},
                    "response_cost": 0.1,
                }
            },
            {"messages": CHAT["messages"], "kwargs": {}, "response": CHAT_ANSWER, "latency_sec": 2.5,
             "timestamp": 1793610002.5, "cost": 1},
        ),
    ),
    "flat": (({**BODY, "usage": USAGE, "ts": TIME, "session": "s", "cost": 1, "latency_ms": 5},),),
    "openai_chat": (
        ({"request": CHAT, "response": CHAT_ANSWER, "timestamp": TIME, "cost_usd": 1}, CHAT),
        ({"model": "gpt-5", "input": "hi", "messages": [{"role": "developer", "content": "x"}]},),
    ),
    "body": ((BODY, BODY),),
}  # fmt: skip
"""Files by format: each the documents of one file, a line each."""

CASSETTES: dict[str, Any] = {
    "vcrpy": {"requests": [_CASSETTE["request"]], "responses": [_CASSETTE["response"]], "version": 1},
    "vcrpy_parsed": {"interactions": [_PARSED, _CASSETTE], "version": 1},
    "ruby_vcr": {"http_interactions": [{**_CASSETTE, "recorded_at": DATE["date"]}]},
    "r_vcr": {"http_interactions": [{**_CASSETTE, "recorded_at": TIME}], "recorded_with": "VCR-vcr/2"},
    "go_vcr": {
        "version": 2,
        "interactions": [
            {
                "request": {"body": json.dumps(BODY), "url": URL, "headers": {}},
                "response": {"body": STREAM, "code": 200, "duration": "1m2.5s", "headers": {}},
            }
        ],
    },
    "httpmock": {
        "when": {"path": "/v1/messages", "body": json.dumps(BODY), "header": [{"name": "a", "value": "b"}]},
        "then": {"status": 200, "body_base64": _b64(STREAM), "header": [{"name": "date", "value": "x"}]},
    },
}  # fmt: skip
"""One YAML document by format."""


def rich_files() -> list[tuple[str, bytes]]:
    """Format and content of a file for each of them."""
    files = [
        (name, "\n".join(map(json.dumps, documents)).encode())
        for name, every in DOCUMENTS.items()
        for documents in every
    ]
    return files + [
        (name, str(yaml.safe_dump(value, sort_keys=False)).encode())
        for name, value in CASSETTES.items()
    ]
