"""Which models are sent images."""

from memory_pipeline.llm.backends.provider import sees
from memory_pipeline.llm.config import ModelConfig
from memory_pipeline_tests.cases import each


@each(
    ("model", "expected"),
    [
        ("openai:gpt-4o-mini", True),
        ("openai:gpt-4.1", True),
        ("openai:gpt-5", True),
        ("openai:o3", True),
        ("openai:o4-mini", True),
        ("anthropic:claude-sonnet-4-5", True),
        ("google:gemini-2.5-flash", True),
        ("ollama:llava:7b", True),
        ("ollama:qwen2.5vl:7b", True),
        ("openai:Qwen/Qwen2-VL-7B", True),
        ("ollama:llama3.2-vision", True),
        ("ollama:gemma3:12b", True),
        ("ollama:llama4", True),
        ("mistral:mistral-small-3.1", True),
        ("ollama:mistral-small3.1", True),
        ("openai:gpt-3.5-turbo", False),
        ("openai:gpt-oss-120b", False),
        ("openai:o3-mini", False),
        ("openai:o1-mini", False),
        ("ollama:qwen3:8b", False),
        ("ollama:gemma2", False),
        ("deepseek:deepseek-chat", False),
        ("ollama:foo3", False),
    ],
)
def test_known_families(model: str, expected: bool) -> None:
    assert sees(ModelConfig(model)) is expected


def test_a_command_is_never_sent_images() -> None:
    assert not sees(ModelConfig("claude -p {prompt}"))
