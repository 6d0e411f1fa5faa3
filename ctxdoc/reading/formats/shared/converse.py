"""Bodies of Bedrock's Converse operation as the Messages API bodies that they stand for.

A cachePoint is a block of its own behind what it caches (botocore 1.44.8; the names of the other
blocks as in aws-sdk-js-v3, client-bedrock-runtime, ConverseCommand). Whatever has no exact
counterpart is refused: half a body would be compared as if it were whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from ctxdoc.reading.formats.base import text_of
from ctxdoc.reading.formats.shared.members import required
from ctxdoc.request.request import Body
from ctxdoc.request.response import NULL

Block = dict[str, Any]
SETTINGS = frozenset({"thinking", "output_config", "output_format", "anthropic_beta", "top_k"})
"""Members of additionalModelRequestFields that are passed to the Messages API as they are."""
FIELDS = frozenset(
    {
        "modelId",
        "messages",
        "system",
        "toolConfig",
        "inferenceConfig",
        "additionalModelRequestFields",
        "additionalModelResponseFieldPaths",
        "guardrailConfig",
        "performanceConfig",
        "requestMetadata",
        "serviceTier",
    }
)
"""Members that are converted, or that do not reach the prompt."""
CHOICES = {"auto": "auto", "any": "any", "tool": "tool"}
IMAGES = frozenset({"png", "jpeg", "gif", "webp"})


_ABSENT = Raw(b"")
"""A member that is not there; a null that stands there is kept."""


class _Message(Struct):
    role: str
    content: list[dict[str, Raw]]


class _Tools(Struct):
    tools: list[dict[str, Raw]] = []
    toolChoice: dict[str, Raw] | None = None  # noqa: N815


class _Schema(Struct, forbid_unknown_fields=True):
    json: Raw


class _ToolSpec(Struct, forbid_unknown_fields=True):
    name: Raw
    inputSchema: _Schema  # noqa: N815
    description: Raw = _ABSENT


class _ToolUse(Struct):
    toolUseId: Raw  # noqa: N815
    name: Raw
    input: Raw


class _ToolResult(Struct):
    toolUseId: Raw  # noqa: N815
    content: list[dict[str, Raw]]
    status: Raw = NULL


class _Reasoning(Struct):
    text: Raw
    signature: Raw = _ABSENT


class _Image(Struct):
    format: str
    source: dict[str, Any]


class _Converse(Struct):
    messages: list[_Message]
    system: list[dict[str, Raw]] | None = None
    toolConfig: _Tools | None = None  # noqa: N815
    inferenceConfig: dict[str, Any] | None = None  # noqa: N815
    additionalModelRequestFields: dict[str, Raw] | None = None  # noqa: N815


def read_body(raw: Raw, model: str) -> Body:
    """The Messages API body of a Converse body.

    Raises ValueError for what has no exact counterpart there, and for another model than Claude.
    """
    # Other models have prompts of other forms, which the Messages API does not show.
    if "claude" not in model.lower():
        raise ValueError("a Converse body of no Claude model")
    sent = msgspec.json.decode(raw, type=_Converse)
    extra = sent.additionalModelRequestFields or {}
    _refuse_unknown(extra.keys() - SETTINGS)
    _refuse_unknown(msgspec.json.decode(raw, type=dict[str, Raw]).keys() - FIELDS)
    config = sent.toolConfig
    limit = (sent.inferenceConfig or {}).get("maxTokens")
    return Body(
        messages=tuple(_message(message) for message in sent.messages),
        system=_encoded(_blocks(sent.system, _system)) if sent.system is not None else NULL,
        tools=tuple(_encoded(tool) for tool in _blocks(config.tools, _tool)) if config else None,
        tool_choice=_choice(config.toolChoice) if config and config.toolChoice else NULL,
        thinking=extra.get("thinking", NULL),
        output_config=extra.get("output_config", NULL),
        output_format=extra.get("output_format", NULL),
        max_tokens=limit if isinstance(limit, int) else None,
    )


def _refuse_unknown(fields: Iterable[str]) -> None:
    for field in sorted(fields):
        raise ValueError(f"the field '{field[:40]}' has no counterpart")


def _encoded(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))


def _message(message: _Message) -> Raw:
    return _encoded({"role": message.role, "content": _blocks(message.content, _content)})


def _blocks(blocks: list[dict[str, Raw]], convert: Any) -> list[Block]:
    """Blocks, each cachePoint as a mark on the block before it."""
    found: list[Block] = []
    for block in blocks:
        kind, inner = _only(block)
        # A cachePoint caches what stands before it: the Messages API marks that block instead.
        if kind != "cachePoint":
            found.append(convert(kind, inner))
        elif not found:
            raise ValueError("a cachePoint without a block before it")
        else:
            found[-1] = {**found[-1], "cache_control": _mark(inner)}
    return found


def _only(block: Mapping[str, Raw]) -> tuple[str, Raw]:
    """A Converse block is an object of one member, named by its kind."""
    # Serializers write the other members of the union as null.
    stated = [(kind, inner) for kind, inner in block.items() if bytes(inner) != b"null"]
    if len(stated) != 1:
        raise ValueError("a block that is not of one kind")
    return stated[0]


def _mark(inner: Raw) -> Block:
    ttl = text_of(msgspec.json.decode(inner, type=dict[str, Any]).get("ttl"))
    return {"type": "ephemeral", **({"ttl": ttl} if ttl else {})}


def _system(kind: str, inner: Raw) -> Block:
    if kind != "text":
        raise ValueError(f"a block '{kind[:40]}' has no counterpart")
    return {"type": "text", "text": inner}


def _tool(kind: str, inner: Raw) -> Block:
    if kind != "toolSpec":
        raise ValueError(f"a tool '{kind[:40]}' has no counterpart")
    try:
        spec = msgspec.json.decode(inner, type=_ToolSpec)
    except msgspec.ValidationError as error:
        raise ValueError("a tool with fields that have no counterpart") from error
    described = {} if spec.description is _ABSENT else {"description": spec.description}
    return {"name": spec.name, **described, "input_schema": spec.inputSchema.json}


def _content(kind: str, inner: Raw) -> Block:
    match kind:
        case "text":
            return {"type": "text", "text": inner}
        case "toolUse":
            use = msgspec.json.decode(inner, type=_ToolUse)
            return {"type": "tool_use", "id": use.toolUseId, "name": use.name, "input": use.input}
        case "toolResult":
            return _result(msgspec.json.decode(inner, type=_ToolResult))
        case "reasoningContent":
            return _reasoning(*_only(msgspec.json.decode(inner, type=dict[str, Raw])))
        case "image":
            return _image(msgspec.json.decode(inner, type=_Image))
        case _:
            raise ValueError(f"a block '{kind[:40]}' has no counterpart")


def _result(result: _ToolResult) -> Block:
    content: list[Block] = []
    for block in result.content:
        kind, inner = _only(block)
        if kind not in ("text", "image"):
            raise ValueError(f"a tool result of '{kind[:40]}' has no counterpart")
        content.append(_content(kind, inner))
    error = {"is_error": True} if bytes(result.status) == b'"error"' else {}
    return {"type": "tool_result", "tool_use_id": result.toolUseId, "content": content, **error}


def _reasoning(kind: str, inner: Raw) -> Block:
    if kind == "redactedContent":
        return {"type": "redacted_thinking", "data": inner}
    if kind != "reasoningText":
        raise ValueError(f"reasoning '{kind[:40]}' has no counterpart")
    said = msgspec.json.decode(inner, type=_Reasoning)
    signed = {} if said.signature is _ABSENT else {"signature": said.signature}
    return {"type": "thinking", "thinking": said.text, **signed}


def _image(image: _Image) -> Block:
    data = text_of(image.source.get("bytes"))
    if image.format not in IMAGES or not data:
        raise ValueError("an image whose bytes are not in the log")
    source = {"type": "base64", "media_type": f"image/{image.format}", "data": data}
    return {"type": "image", "source": source}


def _choice(choice: Mapping[str, Raw]) -> Raw:
    kind, inner = _only(choice)
    if kind not in CHOICES:
        raise ValueError(f"the tool choice '{kind[:40]}' has no counterpart")
    named = msgspec.json.decode(inner, type=dict[str, Any])
    name = {"name": required(named, "name")} if kind == "tool" else {}
    return _encoded({"type": CHOICES[kind], **name})
