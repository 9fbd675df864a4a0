"""A Llama-family network as a graph: what npu_backends/cpu/reference.py computes, in its order, so that both have the same bits.

    ids ── embed ── (scale) ─┬─ norm ─ q,k,v ─ (bias) ─ (head norms) ─ rotary ─ cache ─ scores ─ softmax ─ mix ─ output ─ (norm) ─ add ─┐
                             └──────────────────────────────────────────────────────────────────────────────────────────────────────────┤
    logits ── (softcap) ── head ── norm ── gather ── ... next layer ... ── add ── (norm) ── down ── act(gate) * up ── norm ─────────────┘

A chunk of a prompt and a step of decoding are two calls with other rows: the same names, so the same constants.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...npu_backends.ir.graph import Graph
from ...npu_backends.ir.kinds import infer
from ...npu_backends.ir.op import Attribute, Op
from ...npu_backends.ir.value import Value
from ...shared_protocol.architecture import Architecture, Rotary
from ...shared_protocol.architecture.tensor_shapes import expected_shapes
from ...shared_protocol.compile_errors import CompileError
from .constants import SCALE, rotary_names

ACTIVATIONS = {"silu": "silu", "gelu_tanh": "gelu"}  # the network's name -> the operation's


def capture(architecture: Architecture, *, rows: int, logit_rows: int, context: int, name: str) -> Graph:
    """The network for `rows` tokens a run, logits for `logit_rows` of them, and a cache of `context` positions.

    Inputs: ids i32 [rows], position i32 [1] (of the first row), logit_index i32 [logit_rows] (rows that get logits). Rows beyond the
    tokens given are padding, with any id: what they write to the cache is overwritten before it is seen. So position + rows is at most
    `context`, padding included.

    Raises CompileError for a context that the network does not have, or that is shorter than the rows.
    """
    if not 0 < context <= architecture.context_length:
        raise CompileError(f"a context of {context} was asked for; the model has one of 1 to {architecture.context_length}")
    if not 0 < logit_rows <= rows <= context:
        raise CompileError(f"{rows} rows with logits for {logit_rows} were asked for, in a context of {context}; each is at most the next")
    arch = architecture.for_context(context)
    made = _Made(arch)
    ids, position, index = Value("ids", (rows,), "i32"), Value("position", (1,), "i32"), Value("logit_index", (logit_rows,), "i32")
    caches = [
        Value(f"{kind}.{layer}", (arch.num_kv_heads, context, arch.head_dim), "f16")
        for layer in range(arch.num_layers)
        for kind in ("keys", "values")
    ]
    hidden = made.op("embed", "embedding", made.weight("token_embd.weight"), ids)
    if arch.embedding_scale != 1:
        hidden = made.op("multiply", "embedding.scaled", hidden, made.constant(SCALE, (arch.hidden_size,)))
    for layer in range(arch.num_layers):
        attended = _attention(made, layer, hidden, position, caches[2 * layer], caches[2 * layer + 1])
        hidden = made.op("add", f"blk.{layer}.attn_residual", hidden, attended)
        hidden = made.op("add", f"blk.{layer}.ffn_residual", hidden, _feed_forward(made, layer, hidden))
    chosen = made.op("gather", "chosen", hidden, index)
    head = made.weight("token_embd.weight" if arch.tied_embeddings else "output.weight")
    capped = arch.logit_softcap != 0
    logits = made.op("linear", "logits.raw" if capped else "logits", made.norm("output_norm", chosen), head)
    if capped:
        logits = made.op("softcap", "logits", logits, cap=arch.logit_softcap)
    after = [Value(f"{cache.name}.after", cache.shape, cache.dtype) for cache in caches]
    return Graph(
        name,
        inputs=(ids, position, index, *caches),
        constants=tuple(made.constants.values()),
        ops=tuple(made.ops),
        outputs=(logits, *after),
        states=tuple((cache.name, value.name) for cache, value in zip(caches, after, strict=True)),
    )


@dataclass(slots=True)
class _Made:
    """The operations and constants so far."""

    arch: Architecture
    ops: list[Op] = field(default_factory=list)
    constants: dict[str, Value] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self.shapes = expected_shapes(self.arch)

    def op(self, kind: str, name: str, *inputs: Value, **attributes: Attribute | None) -> Value:
        """Add an operation of one output, without the attributes that are None."""
        kept = tuple(sorted((key, value) for key, value in attributes.items() if value is not None))
        ((shape, dtype),) = infer(Op(kind, inputs, (Value(name, (), "f32"),), kept))
        return self._add(Op(kind, inputs, (Value(name, shape, dtype),), kept))

    def reshape(self, name: str, x: Value, shape: tuple[int, ...]) -> Value:
        return self._add(Op("reshape", (x,), (Value(name, shape, x.dtype),)))

    def _add(self, op: Op) -> Value:
        self.ops.append(op)
        return op.outputs[0]

    def constant(self, name: str, shape: tuple[int, ...]) -> Value:
        return self.constants.setdefault(name, Value(name, shape, "f32"))

    def weight(self, name: str) -> Value:
        """A tensor of the model, by its name there."""
        return self.constant(name, self.shapes[name])

    def norm(self, name: str, x: Value) -> Value:
        return self.op("rms_norm", name, x, self.weight(f"{name}.weight"), eps=self.arch.norm_eps)

    def linear(self, name: str, x: Value) -> Value:
        """With its bias, where there is one."""
        biased = f"{name}.bias" in self.shapes
        result = self.op("linear", f"{name}.raw" if biased else name, x, self.weight(f"{name}.weight"))
        return self.op("add", name, result, self.weight(f"{name}.bias")) if biased else result

    def rotary(self, name: str, x: Value, rotary: Rotary, position: Value, context: int) -> Value:
        tables = [self.constant(table, (context, len(rotary.frequencies))) for table in rotary_names(self.arch, rotary)]
        return self.op("rotary", name, x, *tables, position, interleaved=int(rotary.interleaved))


def _attention(made: _Made, layer: int, hidden: Value, position: Value, keys: Value, values: Value) -> Value:
    """What attention adds to the hidden rows."""
    arch, prefix, (rows, _) = made.arch, f"blk.{layer}.", hidden.shape
    context = keys.shape[1]
    normed = made.norm(f"{prefix}attn_norm", hidden)
    heads: dict[str, Value] = {}
    for part, count in (("q", arch.num_heads), ("k", arch.num_kv_heads), ("v", arch.num_kv_heads)):
        flat = made.linear(f"{prefix}attn_{part}", normed)
        x = made.reshape(f"{prefix}attn_{part}.heads", flat, (rows, count, arch.head_dim))
        if part != "v":
            x = made.norm(f"{prefix}attn_{part}_norm", x) if arch.qk_norm else x
            x = made.rotary(f"{prefix}attn_{part}.rotated", x, arch.layer_rotary(layer), position, context)
        heads[part] = x
    keys = made.op("cache_write", f"{keys.name}.after", keys, heads["k"], position)
    values = made.op("cache_write", f"{values.name}.after", values, heads["v"], position)
    window = arch.window(layer) or None
    scores = made.op(
        *("scores", f"{prefix}scores", heads["q"], keys, position),
        scale=arch.attention_scale,
        softcap=arch.attention_softcap or None,
        window=window,
    )
    weights = made.op("softmax", f"{prefix}softmax", scores, position, window=window)
    mixed = made.op("mix", f"{prefix}mix", weights, values, position, window=window)
    flat = made.reshape(f"{prefix}mix.flat", mixed, (rows, arch.num_heads * arch.head_dim))
    attended = made.linear(f"{prefix}attn_output", flat)
    return made.norm(f"{prefix}post_attention_norm", attended) if arch.post_norms else attended


def _feed_forward(made: _Made, layer: int, hidden: Value) -> Value:
    """What the feed-forward adds to the hidden rows."""
    prefix = f"blk.{layer}."
    normed = made.norm(f"{prefix}ffn_norm", hidden)
    gate, up = made.linear(f"{prefix}ffn_gate", normed), made.linear(f"{prefix}ffn_up", normed)
    activated = made.op(ACTIVATIONS[made.arch.activation], f"{prefix}ffn_act", gate)
    down = made.linear(f"{prefix}ffn_down", made.op("multiply", f"{prefix}ffn_gated", activated, up))
    return made.norm(f"{prefix}post_ffw_norm", down) if made.arch.post_norms else down
