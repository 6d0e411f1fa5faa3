"""Recording: a proxy, an SDK's middleware, transports of HTTP clients. Imports reading, images and request.

from ctxdoc.record import recorder
client = anthropic.Anthropic(middleware=[recorder("agent.jsonl")])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxdoc.record.sdk import async_transport, recorder, transport

__all__ = ["async_transport", "recorder", "transport"]


def __getattr__(name: str) -> object:
    """Loads what is asked for: the SDK and the proxy are heavy."""
    if name in __all__:
        from ctxdoc.record import sdk

        return getattr(sdk, name)
    raise AttributeError(f"module 'ctxdoc.record' has no attribute '{name}'")
