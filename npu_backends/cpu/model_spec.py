"""A model's network as the kernels are told of it: the sizes, and where each layer's weights lie."""

from __future__ import annotations

from collections.abc import Mapping

from ...shared_protocol.architecture import Architecture, Rotary
from .library import MATRICES, VECTORS, Layer, ModelSpec, RotaryPointer
from .rotary import RotaryTable
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


def model_spec(
    arch: Architecture, weights: Weights, tables: Mapping[Rotary, RotaryTable], *, num_blocks: int, block_size: int, threads: int
) -> ModelSpec:
    """The kernels read `weights` and `tables`, which must outlive them; a table's rows only when a step comes to their positions."""
    layers = (Layer * arch.num_layers)()
    for number, layer in enumerate(layers):
        rotary = arch.layer_rotary(number)
        address = tables[rotary].array.ctypes.data
        layer.rotary, layer.window = RotaryPointer(address, len(rotary.frequencies), rotary.interleaved), arch.window(number)
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


def _vectors_of(arch: Architecture) -> tuple[str, ...]:
    fields: tuple[str, ...] = ("attention_norm", "ffn_norm")
    if arch.qkv_bias:
        fields += ("query_bias", "key_bias", "value_bias")
    if arch.qk_norm:
        fields += ("query_norm", "key_norm")
    if arch.post_norms:
        fields += ("attention_post_norm", "ffn_post_norm")
    return fields
