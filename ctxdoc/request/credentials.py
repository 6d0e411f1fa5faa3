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
    entries = [_without(entry) for entry in _entries(servers)]
    if not any(changed for _, changed in entries):
        return servers
    return Raw(msgspec.json.encode([entry for entry, _ in entries]))


def without_tool_secrets(tool: Raw) -> Raw:
    """A tool without what opens the server that it stands for."""
    # Nearly every tool is a function, which has no credentials.
    if b'"mcp"' not in bytes(tool):
        return tool
    return _without(tool)[0] if _is_server(_members(tool)) else tool


def without_credentials(body: bytes) -> bytes:
    """A body of which every credential is replaced, the other values to the byte; what holds none, or
    is no body, stays as it is."""
    # Most bodies hold none, and a search in bytes is far cheaper than decoding them.
    if not any(sign in body for sign in _SIGNS):
        return body
    try:
        members = msgspec.json.decode(body, type=dict[str, Raw])
    except (msgspec.MsgspecError, RecursionError):
        return body
    found = {name: _replaced(name, value) for name, value in members.items()}
    # The very same bytes: an encoder would change the spelling of what it writes anew.
    if all(found[name] is value for name, value in members.items()):
        return body
    return msgspec.json.encode(found)


def _replaced(name: str, value: Raw) -> Raw:
    """A member of a body, the same one where it has no credential."""
    if name in BODY_SECRETS:
        return value if bytes(value) in _NOTHING else _REMOVED
    if name not in ("mcp_servers", "tools"):
        return value
    found = [_replaced_in(entry, is_server=name == "mcp_servers") for entry in _entries(value)]
    if not any(changed for _, changed in found):
        return value
    return Raw(msgspec.json.encode([entry for entry, _ in found]))


def _replaced_in(entry: Raw, *, is_server: bool) -> tuple[Raw, bool]:
    """An entry of a list with its credentials replaced, and whether it had any."""
    members = _members(entry)
    if not is_server and not _is_server(members):
        return entry, False
    secrets = [k for k in SERVER_SECRETS & members.keys() if bytes(members[k]) not in _NOTHING]
    if not secrets:
        return entry, False
    return Raw(msgspec.json.encode({**members, **dict.fromkeys(secrets, _REMOVED)})), True


_REMOVED = Raw(b'"[removed]"')
"""Stands for a credential in what is written."""
_NOTHING = frozenset({b"null", b'""', b"{}", b"[]"})


def _entries(value: Raw) -> list[Raw]:
    """The entries of a list; none for anything else."""
    try:
        return msgspec.json.decode(value, type=list[Raw])
    except (msgspec.MsgspecError, RecursionError):
        return []


def _members(entry: Raw) -> dict[str, Raw]:
    """The members of an object; none for anything else."""
    try:
        return msgspec.json.decode(entry, type=dict[str, Raw])
    except (msgspec.MsgspecError, RecursionError):
        return {}


def _is_server(tool: Mapping[str, Raw]) -> bool:
    return bytes(tool.get("type", b"")) == b'"mcp"'


def _without(entry: Raw) -> tuple[Raw, bool]:
    """An entry without the members that are credentials, and whether it had any."""
    members = _members(entry)
    if SERVER_SECRETS.isdisjoint(members):
        return entry, False
    kept = {name: value for name, value in members.items() if name not in SERVER_SECRETS}
    return Raw(msgspec.json.encode(kept)), True
