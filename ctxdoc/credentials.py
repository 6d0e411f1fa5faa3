"""Credentials inside of a body: what opens a tool server is no part of the prompt, and no one's to read.

The connector takes `authorization_token` in each entry of `mcp_servers` (SDK 2.14.0); a tool of the type
`mcp` takes `authorization` and `headers` (openai 3.57.0). A dump of a client's arguments may hold headers
of the whole request as well.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

SERVER_SECRETS = frozenset({"authorization_token", "authorization", "headers"})
"""Members of a tool server, or of a tool that stands for one."""
BODY_SECRETS = frozenset(
    {"extra_headers", "default_headers", "headers", "authorization", "api_key", "auth_token"}
)
"""Members that clients take beside those of a body."""
_SIGNS = (b"mcp", b"header", b"authorization", b"api_key", b"auth_token", b"\\u00")
"""Of which one is in every body that has a credential."""


def without_servers_secrets(servers: Raw) -> Raw:
    """The servers of a body without what opens them; the same bytes where there is nothing of it."""
    entries = _entries(servers)
    if all(map(SERVER_SECRETS.isdisjoint, entries)):
        return servers
    return Raw(msgspec.json.encode([_stripped(entry) for entry in entries]))


def without_tool_secrets(tool: Raw) -> Raw:
    """A tool without what opens the server that it stands for."""
    data = bytes(tool)
    if b'"mcp"' not in data:
        return tool
    members = msgspec.json.decode(data, type=dict[str, Raw])
    if not _is_server(members) or SERVER_SECRETS.isdisjoint(members):
        return tool
    return Raw(msgspec.json.encode(_stripped(members)))


def without_credentials(body: bytes) -> bytes:
    """A body of which every credential is replaced, the other values to the byte; what holds none, or
    is no body, stays as it is."""
    if not any(sign in body for sign in _SIGNS):
        return body
    try:
        members = msgspec.json.decode(body, type=dict[str, Raw])
    except (msgspec.MsgspecError, RecursionError):
        return body
    found = {name: _replaced(name, value) for name, value in members.items()}
    if all(found[name] is value for name, value in members.items()):
        return body
    return msgspec.json.encode(found)


def _replaced(name: str, value: Raw) -> Raw:
    """A member of a body, the same one where it has no credential."""
    if name in BODY_SECRETS:
        return value if bytes(value) in _NOTHING else _REMOVED
    if name not in ("mcp_servers", "tools"):
        return value
    entries = _entries(value)
    servers = entries if name == "mcp_servers" else [tool for tool in entries if _is_server(tool)]
    if all(map(SERVER_SECRETS.isdisjoint, servers)):
        return value
    for server in servers:
        for secret in SERVER_SECRETS & server.keys():
            server[secret] = server[secret] if bytes(server[secret]) in _NOTHING else _REMOVED
    return Raw(msgspec.json.encode(entries))


_REMOVED = Raw(b'"[removed]"')
"""Stands for a credential in what is written."""
_NOTHING = frozenset({b"null", b'""', b"{}", b"[]"})


def _entries(value: Raw) -> list[dict[str, Raw]]:
    """The objects of a list, each by its members; none for anything else."""
    try:
        return msgspec.json.decode(value, type=list[dict[str, Raw]])
    except (msgspec.MsgspecError, RecursionError):
        return []


def _is_server(tool: Mapping[str, Raw]) -> bool:
    return bytes(tool.get("type", b"")) == b'"mcp"'


def _stripped(entry: Mapping[str, Raw]) -> dict[str, Raw]:
    return {name: value for name, value in entry.items() if name not in SERVER_SECRETS}
