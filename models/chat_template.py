"""A page's prompt as the checkpoint's own chat template writes it.

The template is a Jinja program that came with the weights: it runs sandboxed, as `transformers`
runs it, and sees nothing but the messages.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ocria.errors import WeightsError

TEMPLATE_FILES = ("chat_template.jinja", "chat_template.json", "tokenizer_config.json")


def read_chat_template(folder: Path) -> str | None:
    """The template of a checkpoint folder, or None if it has none.

    Newer checkpoints keep it in a file of its own, older ones in one of two JSON files, there
    perhaps as a list of named templates, of which `default` is meant.

    Raises:
        WeightsError: a file that is no JSON.
    """
    own = folder / TEMPLATE_FILES[0]
    try:
        if own.is_file():
            return own.read_text(encoding="utf-8")
        for name in TEMPLATE_FILES[1:]:
            path = folder / name
            found = json.loads(path.read_text("utf-8")) if path.is_file() else {}
            template = _default(found.get("chat_template") if isinstance(found, dict) else None)
            if template:
                return template
    except (OSError, ValueError) as error:
        raise WeightsError(f"cannot read the chat template in {folder}: {error}") from error
    return None


def render_turn(template: str, instruction: str, arguments: Mapping[str, Any]) -> str:
    """The conversation up to where the model answers: one user turn, image before text.

    Args:
        template: Jinja source.
        instruction: the text of the turn.
        arguments: further variables, such as `enable_thinking`.

    Raises:
        WeightsError: the template fails, or refuses the conversation.
    """
    content = [{"type": "image"}, {"type": "text", "text": instruction}]
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    try:
        return environment.from_string(template).render(
            messages=[{"role": "user", "content": content}],
            add_generation_prompt=True,
            tools=None,
            **arguments,
        )
    except (TemplateError, TypeError, ValueError) as error:
        raise WeightsError(
            f"the checkpoint's chat template does not take a page: {error}",
            hint="the template must accept a user turn of one image and a text",
        ) from error


def _default(found: Any) -> str | None:
    if isinstance(found, list):
        named = {entry.get("name"): entry.get("template") for entry in found}
        found = named.get("default")
    return found if isinstance(found, str) else None


def _to_json(value: Any, **options: Any) -> str:
    # Jinja's own filter escapes for HTML, which no template means.
    return json.dumps(value, ensure_ascii=False, **options)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
