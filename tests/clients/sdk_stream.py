"""The Anthropic SDK, streaming: two turns."""

import anthropic

from tests.clients.common import MARK, MODEL, QUESTION, SYSTEM

client = anthropic.Anthropic(max_retries=0)
messages = [{"role": "user", "content": QUESTION}]
for _ in range(2):
    with client.messages.stream(
        model=MODEL,
        max_tokens=100,
        system=[{"type": "text", "text": SYSTEM, "cache_control": MARK}],
        messages=messages,
    ) as stream:
        text = "".join(stream.text_stream)
    assert text.startswith("Answer number")
    messages += [{"role": "assistant", "content": text}, {"role": "user", "content": QUESTION}]
