"""A model's network as the kernels are told of it: the sizes, and where each layer's weights lie."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...shared_protocol.architecture import Architecture, Rotary
from .library import MATRICES, VECTORS, Layer, ModelSpec, RotaryTable
from .rotary import rotary_table
from .weights import Weights

ACTIVATIONS = ("silu", "gelu_tanh")  # HybridActivation in kernels/api.h
# fields of Layer -> GGUF's names
NAMES = dict(
    zip(
        (*VECTORS, *MATRICES),
        (
            *("attn_norm.weight", "ffn_norm.weight", "attn_q.bias", "attn_k.bias", "attn_v.bias"),
            *("attn_q_norm.weight", "attn_k_norm.weight", "post_attention_norm.weight", "post_ffw_norm.weight"),
            *("attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_output.weight"),
            *("ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"),
        ),
        strict=True,
    )
)


def model_spec(arch: Architecture, weights: Weights, *, num_blocks: int, block_size: int, max_positions: int, threads: int) -> ModelSpec:
    """`weights` keeps alive all that the kernels will read."""
    tables: dict[Rotary, RotaryTable] = {}
    layers = (Layer * arch.num_layers)()
    for number, layer in enumerate(layers):
        rotary = arch.layer_rotary(number)
        if rotary not in tables:
            table = weights.keep(laid_out(rotary_table(max_positions, rotary), rotary.interleaved))
            tables[rotary] = RotaryTable(table, len(rotary.frequencies), rotary.interleaved)
        layer.rotary, layer.window = tables[rotary], arch.window(number)
        for field in MATRICES:
            setattr(layer, field, weights.matrix(f"blk.{number}.{NAMES[field]}"))
        for field in _vectors_of(arch):
            setattr(layer, field, weights.vector(f"blk.{number}.{NAMES[field]}"))
    return ModelSpec(
        num_layers=arch.num_layers,
        hidden=arch.hidden_size,
        heads=arch.num_heads,
        kv_heads=arch.num_kv_heads,
        head_dim=arch.head_dim,
        ffn=arch.ffn_size,
        vocab=arch.vocab_size,
        num_blocks=num_blocks,
        block_size=block_size,
        max_positions=max_positions,
        threads=threads,
        activation=ACTIVATIONS.index(arch.activation),
        norm_eps=arch.norm_eps,
        attention_scale=arch.attention_scale,
        embedding_scale=arch.embedding_scale,
        attention_softcap=arch.attention_softcap,
        logit_softcap=arch.logit_softcap,
        layers=layers,
        final_norm=weights.vector("output_norm.weight"),
        embedding=weights.matrix("token_embd.weight"),
        head=weights.matrix("token_embd.weight" if arch.tied_embeddings else "output.weight"),
    )


def laid_out(table: NDArray[np.float32], interleaved: bool) -> NDArray[np.float32]:
    """(cos, sin) [positions, pairs, 2] in the order of HybridRotary: as it is, or all cosines of a position before its sines."""
    return table if interleaved else np.ascontiguousarray(table.transpose(0, 2, 1))


def _vectors_of(arch: Architecture) -> tuple[str, ...]:
    fields: tuple[str, ...] = ("attention_norm", "ffn_norm")
    if arch.qkv_bias:
        fields += ("query_bias", "key_bias", "value_bias")
    if arch.qk_norm:
        fields += ("query_norm", "key_norm")
    if arch.post_norms:
        fields += ("attention_post_norm", "ffn_post_norm")
    return fields
