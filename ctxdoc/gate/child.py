"""Calls a function in a fresh interpreter and prints the request body that it returns.

It is started by the gate and imports nothing of ctxdoc: what it loads is the user's own.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import inspect
import json
import os
import sys
from collections.abc import Mapping
from typing import Any


def main(target: str) -> None:
    """Prints what `pkg.mod:function` returns: a body, or an iterable of bodies."""
    # What the function prints itself is no part of the body.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.path.insert(0, os.getcwd())  # noqa: PTH109
    module, _, name = target.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    for body in bodies_of(found()):
        out.write(body + "\n")
    out.close()


async def _listed(value: Any) -> list[Any]:
    return [each async for each in value]


async def _awaited(value: Any) -> Any:
    return await value


def bodies_of(value: Any) -> list[str]:
    """What a builder returned as JSON, a text for each body."""
    if inspect.isawaitable(value):
        value = asyncio.run(_awaited(value))
    if isinstance(value, bytes | bytearray):
        return [bytes(value).decode()]
    if isinstance(value, str):
        return [value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, Mapping):
        value = dict(value)
    if isinstance(value, dict) or hasattr(value, "model_dump"):
        return [json.dumps(value, default=_plain, ensure_ascii=False)]
    if hasattr(value, "__aiter__"):
        value = asyncio.run(_listed(value))
    return [text for each in value for text in bodies_of(each)]


def _plain(value: Any) -> Any:
    """Models of pydantic, and other iterables, as JSON has them."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"a {type(value).__name__} is no part of a request body")


if __name__ == "__main__":
    main(sys.argv[1])
