"""The Anthropic SDK, synchronous: a conversation of three turns."""

import anthropic

from tests.clients.common import MARK, MODEL, QUESTION, SYSTEM

client = anthropic.Anthropic(max_retries=0)
messages = [{"role": "user", "content": QUESTION}]
for _ in range(3):
    answer = client.messages.create(
        model=MODEL,
        max_tokens=100,
        system=[{"type": "text", "text": SYSTEM, "cache_control": MARK}],
        messages=messages,
    )
    messages += [
        {"role": "assistant", "content": answer.content[0].text},
        {"role": "user", "content": QUESTION},
    ]
