"""From a model to an engine on this machine: which kernels, how many blocks, what a block's content depends on."""

from __future__ import annotations

import dataclasses
from hashlib import sha256
from typing import Any, TypedDict, Unpack

from ...npu_backends.cpu.select import Backend, open_executor
from ...quant.at_load import Quantise, quantised
from ...shared_protocol.architecture import Architecture
from ...shared_protocol.errors import ConfigError
from ...shared_protocol.model import Model
from .engine import Engine
from .prefix_cache import Scope
from .scheduler import Limits

KV_TYPE = "f16"
KV_BYTES = 512 << 20
CONTEXTS = 4
BLOCK_SIZE = 16  # tokens
MOST = 2**31 - 2  # of anything that is counted: kernels have 32 bits for it


class EngineOptions(TypedDict, total=False):
    """What may be said about an engine; None is the same as nothing."""

    backend: Backend  # "auto"
    quantise: Quantise | None  # of float weights; None: int8 for a folder, a GGUF file as it is
    threads: int | None  # None: one per CPU that this process may use
    max_model_len: int | None  # tokens of one request; None: the model's context
    kv_blocks: int | None  # None: four whole contexts, or 512 MiB, whichever is less
    block_size: int  # 16 tokens
    max_num_batched_tokens: int  # 128, of one step
    max_num_seqs: int  # 64 requests at once
    long_prefill_token_threshold: int  # 64 tokens of one prompt in one step


def open_engine(model: Model, **options: Unpack[EngineOptions]) -> Engine:
    """Load `model` into an executor and put an engine before it. Raises ConfigError for numbers that cannot work."""
    unknown = options.keys() - EngineOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"unknown option {min(unknown)!r}; known: {', '.join(EngineOptions.__annotations__)}")
    arch = model.architecture
    context, block_size = arch.context_length, options.get("block_size", BLOCK_SIZE)
    limit, blocks = options.get("max_model_len"), options.get("kv_blocks")
    limit = context if limit is None else limit
    if not isinstance(limit, int) or not 1 <= limit <= context:
        raise ConfigError(f"max_model_len must be from 1 to the model's {context}, found {limit}", param="max_model_len")
    if not isinstance(block_size, int) or not 1 <= block_size <= MOST:
        raise ConfigError(f"block_size must be from 1 to {MOST}, found {block_size}", param="block_size")
    blocks = default_blocks(arch, limit, block_size) if blocks is None else blocks
    limits: dict[str, Any] = {name: options.get(name, default) for name, default in dataclasses.asdict(Limits()).items()}
    for name, number in {"kv_blocks": blocks, **limits}.items():
        if not isinstance(number, int) or not 1 <= number <= MOST:
            raise ConfigError(f"{name} must be from 1 to {MOST}, found {number}", param=name)
    model = quantised(model, options.get("quantise")).for_context(limit)
    executor = open_executor(
        model, num_blocks=blocks + 1, block_size=block_size, threads=options.get("threads"), backend=options.get("backend", "auto")
    )
    return Engine(
        executor,
        eos_ids=model.tokenizer.eos_ids,
        max_model_len=limit,
        cache_scope=bytes(scope_of(model, executor.kernel_id, block_size)),
        vocab_size=model.tokenizer.vocab_size,
        limits=Limits(**limits),
    )


def scope_of(model: Model, kernel_id: str, block_size: int) -> Scope:
    """Named by the whole network, since most of it changes K, V or attention; how long a sequence may grow alone does not."""
    network = repr(dataclasses.replace(model.architecture, context_length=0))
    return Scope(model.card.file_hash, KV_TYPE, block_size, kernel_id, sha256(network.encode()).hexdigest())


def default_blocks(architecture: Architecture, context: int, block_size: int) -> int:
    """Blocks for four contexts, unless they take more than 512 MiB; one whole context in any case."""
    one = -(-context // block_size)
    return max(one, min(CONTEXTS * one, KV_BYTES // block_bytes(architecture, block_size)))


def block_bytes(architecture: Architecture, block_size: int = BLOCK_SIZE) -> int:
    """Bytes of one block: K and V of all layers, two bytes a number."""
    return 2 * 2 * architecture.num_layers * architecture.num_kv_heads * architecture.head_dim * block_size
