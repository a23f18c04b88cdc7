"""Models of providers through pydantic-ai: `openai:…`, `anthropic:…`, `google:…`, `ollama:…` and others that it
supports.

Every call has its own event loop, HTTP client and connections, closed before it returns: calls come from worker
threads, and a client must not outlive its loop. This module also knows which models accept images (`sees`).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.errors import ModelMisconfiguredError, RequestRefusedError, TransientError, quotable
from memory_pipeline.llm.found import server_at
from memory_pipeline.llm.request import Reply, Request

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelRequest, ModelResponse, UserContent
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.profiles import ModelProfile
    from pydantic_ai.providers import Provider
    from pydantic_ai.settings import ModelSettings

OLLAMA_URL = "http://localhost:11434/v1"
_BUSY = (408, 409, 425, 429)
_TOO_MANY = (429, 529)
"""The second is Anthropic's status for an overloaded model."""
_NOT_FOUND = (404, 405, 410)
_NOT_IMPLEMENTED = 501
"""The status of servers that lack a feature, such as schemas."""


class ProviderBackend:
    """A model named `provider:model`."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self.provider, _, self._name = config.model.strip().partition(":")
        self._instructions: set[str] = set()
        """Instructions that were sent before, which the provider is asked to cache."""

    def send(self, request: Request) -> Reply:
        """Make one call without tools and without the library's own retries, within one time limit."""
        from pydantic_ai.exceptions import AgentRunError, UserError

        try:
            return self._reply(asyncio.run(self._ask(self._model(), request)))
        except (TransientError, RequestRefusedError, ModelMisconfiguredError):
            raise
        except AgentRunError as error:
            raise self._translate_error(error) from None
        except UserError as error:
            raise self._misconfigured(f"rejects the request: {quotable(str(error)).rstrip('.')}") from None
        except Exception as error:  # errors of the libraries on answers in an unknown form
            reason = f"its answer cannot be read ({type(error).__name__}: {error})"
            raise TransientError(self._failed(reason), may_be_billed=True) from None

    async def _ask(self, model: Model, request: Request) -> ModelResponse:
        from pydantic_ai.direct import model_request

        settings: ModelSettings = {"max_tokens": request.max_output_tokens, "timeout": self._config.timeout}
        settings |= {"request_timeout": self._config.timeout, "max_retries": 0}
        if _takes_temperature(model.profile):
            settings["temperature"] = request.temperature
        if request.system in self._instructions:
            # providers with explicit caching charge a quarter more for writes and a tenth for reads, so instructions
            # that are sent once are not cached
            settings["cache"] = {"messages": False}
        self._instructions.add(request.system)
        if server := server_at(self.url):
            settings["extra_body"] = server.against_repetition
        async with model:
            return await model_request(
                model,
                [_message(request)],
                model_settings=settings,
                model_request_parameters=_parameters(model, request),
                instrument=False,
            )

    def _reply(self, response: ModelResponse) -> Reply:
        if response.finish_reason == "content_filter":
            raise RequestRefusedError(f"{self._config.model} filtered its answer out.", may_be_billed=True)
        if response.finish_reason == "error":
            raise TransientError(self._failed("it was cut off"), may_be_billed=True)
        counted = response.usage.input_tokens or response.usage.output_tokens
        if not (counted or response.text or response.finish_reason):
            raise TransientError(self._failed("its answer is empty"), may_be_billed=True)
        return Reply(
            response.text or "",
            response.usage.input_tokens if counted else None,
            response.usage.output_tokens if counted else None,
            response.finish_reason == "length",
            response.model_name or self._name,
            response.usage.cache_read_tokens,
            response.usage.cache_write_tokens,
        )

    def _model(self) -> Model:
        """The model with its own client. Raises `ModelMisconfiguredError`."""
        from openai import OpenAIError
        from pydantic_ai.exceptions import UserError

        if not self._name:
            raise self._misconfigured(
                "is neither `provider:model`, like openai:gpt-4o-mini, nor a command with arguments"
            )
        if (url := self.url) and not url.startswith(("http://", "https://")):
            raise self._misconfigured("has a base URL that does not begin with http:// or https://")
        try:
            return (
                self._compatible(url) if url and self.provider in ("openai", "ollama") else self._known_provider_model()
            )
        except ImportError:
            raise self._misconfigured(
                f'needs a package that is not installed; `pip install "pydantic-ai-slim[{self.provider}]"`'
            ) from None
        except (UserError, ValueError, OpenAIError) as error:
            if variable := re.search(r"[A-Z0-9_]+_API_KEY", str(error)):
                raise self._misconfigured(f"needs a key; set {variable[0]}") from None
            raise self._misconfigured(f"cannot be used: {quotable(str(error)).rstrip('.')}") from None

    @property
    def url(self) -> str | None:
        """The configured server, None for the provider's own."""
        if self._config.base_url or self.provider not in ("openai", "ollama"):
            return self._config.base_url
        return os.environ.get(f"{self.provider.upper()}_BASE_URL") or (
            OLLAMA_URL if self.provider == "ollama" else None
        )

    def _compatible(self, url: str) -> Model:
        """A server with OpenAI's older protocol, which all compatible servers support."""
        from pydantic_ai.models.ollama import OllamaModel
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.ollama import OllamaProvider
        from pydantic_ai.providers.openai import OpenAIProvider

        key = os.environ.get(self._key, "").strip() or "none"  # the library requires one, local servers do not
        if self.provider == "ollama":
            return OllamaModel(self._name, provider=OllamaProvider(url, key), profile=_with_old_limit)
        return OpenAIChatModel(self._name, provider=OpenAIProvider(url, key), profile=_with_old_limit)

    def _known_provider_model(self) -> Model:
        from pydantic_ai.models import infer_model
        from pydantic_ai.providers import infer_provider, infer_provider_class

        def provider_at_url(name: str) -> Provider[Any]:
            try:
                return infer_provider_class(name)(base_url=self._config.base_url)  # type: ignore[call-arg]
            except TypeError:
                raise self._misconfigured(f"takes no {self._config.role}_BASE_URL; unset it") from None

        return infer_model(self._config.model.strip(), provider_at_url if self._config.base_url else infer_provider)

    @property
    def _key(self) -> str:
        """The environment variable with the provider's key."""
        family = self.provider.partition("-")[0] if self.provider.startswith(("openai-", "google-")) else self.provider
        return f"{family.upper().replace('-', '_')}_API_KEY"

    def _translate_error(self, error: Exception) -> TransientError | RequestRefusedError | ModelMisconfiguredError:
        """The error that represents a failure of the call, the request or the settings."""
        from pydantic_ai import exceptions as known

        if isinstance(error, known.ModelAuthenticationError):  # not quoted, as providers quote the key
            return self._misconfigured(f"refuses the key, or does not allow it to use this model; check {self._key}")
        if isinstance(error, known.ModelQuotaExceededError):
            return self._misconfigured(
                f"has no credit or quota left for the key in {self._key} ({_error_text(error)}); "
                "top it up or use another model"
            )
        status = error.status_code if isinstance(error, known.ModelHTTPError) else 0
        if isinstance(error, known.ModelNotFoundError) or status in _NOT_FOUND:
            role = self._config.role
            address = f"{self.provider.upper() if role.endswith('FALLBACK') else role}_BASE_URL"
            return self._misconfigured(
                f"was not found ({_error_text(error)}); check the model's name and {address}, which mostly ends with "
                f"/v1"
            )
        if isinstance(error, known.ContentFilterError):
            return RequestRefusedError(f"{self._config.model} filtered it ({_error_text(error)}).", may_be_billed=True)
        is_refused = status == _NOT_IMPLEMENTED or (400 <= status < 500 and status not in _BUSY)
        if is_refused or isinstance(error, known.ModelRequestRejectedError):
            return RequestRefusedError(f"{self._config.model} does not take the request: {_error_text(error)}")
        if isinstance(error, known.ModelRequestTimeout | known.ModelTimeoutError):
            return TransientError(self._failed(f"no answer within {self._config.timeout:g} s"), may_be_billed=True)
        if isinstance(error, known.ModelConnectionError):
            sent = error.phase not in ("pool", "connect")
            return TransientError(self._failed(_error_text(error)), error.retry_after, may_be_billed=sent)
        retry_after = error.retry_after if isinstance(error, known.ModelAPIError) else None
        too_many = status in _TOO_MANY
        return TransientError(
            self._failed(_error_text(error)), retry_after, may_be_billed=not status, is_too_many=too_many
        )

    def _failed(self, reason: str) -> str:
        return f"{self._config.model}: {quotable(reason)}"

    def _misconfigured(self, what: str) -> ModelMisconfiguredError:
        return ModelMisconfiguredError(
            f"{self._config.role}_MODEL={self._config.model!r} {what}. Then run it again; answers are kept."
        )


def _message(request: Request) -> ModelRequest:
    """The message to a model, with its instructions."""
    from pydantic_ai.messages import BinaryContent, ModelRequest, UserPromptPart

    content: list[UserContent] = [request.said]
    content += [BinaryContent(image.data, media_type=image.media_type) for image in request.images]
    return ModelRequest(
        parts=[UserPromptPart(content if request.images else request.said)], instructions=request.system or None
    )


def _parameters(model: Model, request: Request) -> ModelRequestParameters:
    """The parameters for a text answer, or one that fits the request's schema. Raises `RequestRefusedError` if the
    model does not support schemas."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition

    if not request.schema:
        return ModelRequestParameters()
    if not model.profile.get("supports_json_schema_output"):
        raise RequestRefusedError(f"{request.model} does not accept a schema at this server.")
    form = OutputObjectDefinition(json.loads(request.schema), name="answer", strict=True)
    return ModelRequestParameters(output_mode="native", output_object=form, allow_text_output=False)


def _takes_temperature(profile: ModelProfile) -> bool:
    """Whether the model accepts a temperature: reasoning models refuse such requests."""
    return not (profile.get("openai_supports_reasoning") or profile.get("anthropic_disallows_sampling_settings"))


def _with_old_limit(profile: ModelProfile) -> ModelProfile:
    """The profile with `max_tokens`, which every compatible server supports; some ignore its successor and would write
    without end.

    OpenAI's own models that think refuse the old name.
    """
    from pydantic_ai.profiles import merge_profile
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    thinks = bool(profile.get("openai_supports_reasoning"))
    return merge_profile(profile, OpenAIModelProfile(openai_chat_supports_max_completion_tokens=thinks))


def _error_text(error: Exception) -> str:
    """The message in a provider's error, wherever it is."""
    body: object = getattr(error, "body", None)
    while isinstance(body, dict):
        body = body.get("error") or body.get("message") or body.get("detail")
    status = getattr(error, "status_code", None)
    sentence = quotable(body if isinstance(body, str) and body.strip() else "" if status else str(error))
    return ": ".join(filter(None, [f"HTTP {status}" if status else "", sentence]))


_SEEING = re.compile(
    r"gpt-4o|gpt-4\.1|gpt-[5-9]|\bo3\b(?!-mini)|\bo[4-9]\b|claude|gemini|pixtral|llava|[-\d]vl\b|vision|gemma-?3|llama-?4"
    r"|mistral-(small|medium)-?3",
    re.I,
)
"""Names of model families that accept images. Other models get requests without images."""


def sees(config: ModelConfig) -> bool:
    """Whether requests include images: for known families, never for commands."""
    return not config.is_command and bool(_SEEING.search(config.model))


@cache
def takes_schema(config: ModelConfig) -> bool:
    """Whether the model supports JSON schemas, according to the library's profile; needs no key. Never for commands.
    Servers with OpenAI's protocol may refuse schemas anyway."""
    if config.is_command:
        return False
    try:
        return bool(_profile_of(config).get("supports_json_schema_output"))
    except Exception:  # unknown model or missing package, which a request reports
        return False


def _profile_of(config: ModelConfig) -> ModelProfile:
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.providers import infer_provider_class
    from pydantic_ai.providers.ollama import OllamaProvider

    provider, _, name = config.model.strip().partition(":")
    if provider == "ollama":  # depends on the server
        return OllamaModel(name, provider=OllamaProvider(ProviderBackend(config).url, "none")).profile
    return infer_provider_class(provider).model_profile(name) or {}
