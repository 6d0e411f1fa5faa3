"""pydantic-ai: an agent that calls a tool twice."""

from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings

from tests.clients.common import MODEL, QUESTION, SYSTEM

agent = Agent(
    AnthropicModel(MODEL),
    instructions=SYSTEM,
    model_settings=AnthropicModelSettings(
        anthropic_cache_instructions=True, anthropic_cache_messages=True, max_tokens=100
    ),
)


@agent.tool_plain
def look_up(city: str) -> str:
    """Looks a city up."""
    return f"{city} lies at berth 7. " * 60


agent.run_sync(QUESTION)
