"""Makes tests/data/families.npz: logits of the tiny models of `tiny_families` by `transformers`, and frequencies by its RoPE functions.

Not run by the tests, which need neither torch nor transformers. In an environment that has both, and Hybrid:

    pip install torch==2.13.0 transformers==5.24.0
    python -m hybrid.tests.support.family_goldens
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from hybrid.tests.support.tiny_families import CONTEXT, FFN, HIDDEN, TINY, VOCAB, WINDOW, TinyFamily, tiny_values

GOLDENS = Path(__file__).parents[1] / "data" / "families.npz"
IDS = [(i * 7919 + 11) % VOCAB for i in range(70)]
POSITIONS = [0, 1, WINDOW - 2, WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW, 69]  # around the first that does not see all
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
GEMMA_NAMES = {
    **NAMES,
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}


def config_of(name: str) -> Any:
    """The configuration that says in transformers' words what the tiny model's keys say in GGUF's."""
    import transformers as tf

    tiny = TINY[name.removesuffix("-long")]
    common: dict[str, Any] = {
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": FFN,
        "num_hidden_layers": tiny.layers,
        "num_attention_heads": tiny.heads,
        "num_key_value_heads": tiny.kv_heads,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": not tiny.untied,
        "pad_token_id": 0,
        "attn_implementation": "eager",
    }
    gemma = {**common, "head_dim": 32, "query_pre_attn_scalar": 32, "sliding_window": WINDOW}

    def rope(base: float = 10_000.0, **scaling: Any) -> dict[str, Any]:
        return {"rope_type": "default", **scaling, "rope_theta": base}

    def both(**scaling: Any) -> dict[str, Any]:
        return {"full_attention": rope(1e6, **scaling), "sliding_attention": rope()}

    factors = {key: np.asarray(value).tolist() for key, value in tiny_values(name.removesuffix("-long")).items() if key.startswith("rope_")}
    match name:
        case "llama":
            return tf.LlamaConfig(**common, rope_parameters=rope())
        case "llama-factors":  # its own rope type computes factors from four numbers; LongRoPE takes any
            scaling = {"rope_type": "longrope", "attention_factor": 1.0, "original_max_position_embeddings": CONTEXT}
            table = factors["rope_freqs.weight"]
            return tf.LlamaConfig(**common, rope_parameters=rope(5e5, **scaling, short_factor=table, long_factor=table))
        case "llama-linear":
            return tf.LlamaConfig(**common, rope_parameters=rope(rope_type="linear", factor=4.0))
        case "mistral":
            return tf.MistralConfig(**common, rope_parameters=rope(), sliding_window=WINDOW)
        case "qwen2":
            return tf.Qwen2Config(**common, rope_parameters=rope(1e6))
        case "qwen2-yarn":
            return tf.Qwen2Config(**common, rope_parameters=rope(**YARN))
        case "qwen3":
            return tf.Qwen3Config(**common, head_dim=32, rope_parameters=rope())
        case "gemma2":
            return tf.Gemma2Config(**gemma, rope_parameters=rope(), attn_logit_softcapping=5.0, final_logit_softcapping=8.0)
        case "gemma3":
            return tf.Gemma3TextConfig(**gemma, rope_parameters=both())
        case "gemma3-linear":
            return tf.Gemma3TextConfig(**gemma, rope_parameters=both(rope_type="linear", factor=8.0))
        case "phi3":
            return tf.Phi3Config(**common, rope_parameters=rope())
        case "phi3-window":
            return tf.Phi3Config(**common, rope_parameters=rope(), sliding_window=WINDOW)
        case "phi3-longrope" | "phi3-longrope-long":
            long = name.endswith("-long")
            scaling = {
                "rope_type": "longrope",
                "long_factor": factors["rope_factors_long.weight"],
                "short_factor": factors["rope_factors_short.weight"],
                "attention_factor": tiny.keys["rope.scaling.attn_factor"],
                "partial_rotary_factor": 0.5,
            }
            original = 64 if long else 256  # transformers compares it with the prompt's length
            return tf.Phi3Config(**common, rope_parameters=rope(**scaling), original_max_position_embeddings=original)
    raise KeyError(name)


def state_of(tiny: TinyFamily, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The weights under transformers' names and conventions."""
    gemma = tiny.family.startswith("gemma")
    names = GEMMA_NAMES if gemma else NAMES
    state = {}
    for name, value in values.items():
        *layer, part, kind = name.split(".")
        if part.startswith("rope_"):
            continue
        if gemma and part.endswith("norm"):
            value = value - 1
        if tiny.family == "llama" and part in ("attn_q", "attn_k"):
            value = value.reshape(-1, tiny.head_dim // 2, 2, HIDDEN).swapaxes(1, 2).reshape(value.shape)
        prefix = f"model.layers.{layer[1]}." if layer else ""
        state[f"{prefix}{names[part]}.{kind}"] = value
    if tiny.fused:
        for number in range(tiny.layers):
            prefix = f"model.layers.{number}."
            qkv = [state.pop(f"{prefix}self_attn.{part}_proj.weight") for part in "qkv"]
            state[f"{prefix}self_attn.qkv_proj.weight"] = np.concatenate(qkv)
            state[f"{prefix}mlp.gate_up_proj.weight"] = np.concatenate([state.pop(f"{prefix}mlp.{p}_proj.weight") for p in ("gate", "up")])
    return state


def logits_of(name: str) -> np.ndarray:
    """float32 [POSITIONS, VOCAB]."""
    import torch
    import transformers as tf

    tiny = TINY[name.removesuffix("-long")]
    model = tf.AutoModelForCausalLM.from_config(config_of(name), dtype=torch.float32).eval()
    state = {key: torch.from_numpy(value.copy()) for key, value in state_of(tiny, tiny_values(name.removesuffix("-long"))).items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    assert ("lm_head.weight" in missing) == (not tiny.untied)
    with torch.no_grad():
        logits: np.ndarray = model(torch.tensor([IDS])).logits[0].numpy()
    return logits[POSITIONS]


def frequencies_of(base: float, dims: int, scaling: dict[str, Any]) -> np.ndarray:
    import transformers as tf
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = tf.LlamaConfig(head_dim=dims, max_position_embeddings=4 * 8192, rope_parameters={**scaling, "rope_theta": base})
    frequencies, magnitude = ROPE_INIT_FUNCTIONS[scaling["rope_type"]](config, "cpu")
    return np.append(frequencies.numpy(), np.float32(magnitude))


def main() -> None:
    names = [*TINY, "phi3-longrope-long"]
    arrays = {name: logits_of(name) for name in names}
    arrays["frequencies-yarn"] = frequencies_of(1e6, 128, {**YARN, "original_max_position_embeddings": 32_768})
    arrays["frequencies-llama3"] = frequencies_of(5e5, 128, LLAMA3)
    np.savez_compressed(GOLDENS, **arrays)
    print(f"{GOLDENS}: {GOLDENS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
