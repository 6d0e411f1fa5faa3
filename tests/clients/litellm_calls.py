"""litellm: two calls, one of them streamed."""

import litellm

from tests.clients.common import MARK, MODEL, QUESTION, SYSTEM

messages = [
    {"role": "system", "content": [{"type": "text", "text": SYSTEM, "cache_control": MARK}]},
    {"role": "user", "content": QUESTION},
]
litellm.completion(model=f"anthropic/{MODEL}", messages=messages, max_tokens=100, num_retries=0)
chunks = litellm.completion(
    model=f"anthropic/{MODEL}", messages=messages, max_tokens=100, stream=True, num_retries=0
)
for _ in chunks:
    pass
