"""LangChain with its caching middleware: an agent that calls a tool twice."""

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.tools import tool

from tests.clients.common import MODEL, QUESTION, SYSTEM


@tool
def look_up(city: str) -> str:
    """Looks a city up."""
    return f"{city} lies at berth 7. " * 60


agent = create_agent(
    ChatAnthropic(model=MODEL, max_tokens=100, max_retries=0),
    [look_up],
    system_prompt=SYSTEM,
    middleware=[AnthropicPromptCachingMiddleware()],
)
agent.invoke({"messages": [{"role": "user", "content": QUESTION}]})
