"""A model without weights, whose tokens are bytes: enough for a front-end over the scripted engine."""

from pathlib import Path
from typing import Any, cast

from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.model_card import ModelCard
from hybrid.tests.support.byte_tokenizer import ByteTokenizer

# one tag per turn; a user may not speak twice in a row
TEMPLATE = (
    "{% for message in messages %}"
    "{% if message.role == 'user' and loop.previtem is defined and loop.previtem.role == 'user' %}"
    "{{ raise_exception('roles must alternate: user and assistant') }}"
    "{% endif %}"
    "<{{ message.role }}>{{ message.content }}\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def rendered(content: str) -> str:
    """What TEMPLATE makes of one user message."""
    return f"<user>{content}\n<assistant>"


def byte_model(context_length: int = 8192) -> Model:
    tokenizer = ByteTokenizer()
    card = ModelCard(
        name="bytes/test",
        architecture="llama",
        quantisation="F32",
        num_parameters=0,
        context_length=context_length,
        vocab_size=tokenizer.vocab_size,
        fingerprint=tokenizer.fingerprint,
        vocabulary=tokenizer.fingerprint,
        file_hash="0" * 64,
        file_bytes=0,
        licence="Apache-2.0",
    )
    nothing: Any = None
    return Model(card, nothing, {}, cast(Any, tokenizer), TEMPLATE, Path("bytes.gguf"))
