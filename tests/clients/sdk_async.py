"""The Anthropic SDK, asynchronous: two turns, one after the other."""

import asyncio

import anthropic

from tests.clients.common import MARK, MODEL, QUESTION, SYSTEM


async def main() -> None:
    async with anthropic.AsyncAnthropic(max_retries=0) as client:
        for text in (QUESTION, QUESTION + " And why?"):
            await client.messages.create(
                model=MODEL,
                max_tokens=100,
                system=[{"type": "text", "text": SYSTEM, "cache_control": MARK}],
                messages=[{"role": "user", "content": text}],
            )


asyncio.run(main())
