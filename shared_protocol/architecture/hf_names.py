"""The tensors of a folder under the names, types and conventions that GGUF files have, so that executors know one kind of model.

Matrices stay views of their files; those that Phi-3 stores as one keep that form under GGUF's names for it, and `network_tensors` splits
them. Vectors become float32, and the norms of Gemma, stored around 0, get the 1 that its GGUF files carry.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelFileError
from ..gguf import Tensor

_OUTER = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}
_LAYER = re.compile(r"model\.layers\.(0|[1-9][0-9]{0,3})\.([a-z_.]+)\.(weight|bias)")
_PARTS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",  # twice the rows, the gate's first
    "mlp.down_proj": "ffn_down",
}
_POST_NORMS = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
_COMPUTED = re.compile(r"(model\.layers\.[0-9]+\.self_attn|model)\.rotary_emb\.inv_freq")  # of old files; config.json says the same


def canonical_tensors(file: str, tensors: Mapping[str, Tensor], *, post_norms: bool, gemma: bool, tied: bool) -> dict[str, Tensor]:
    """Raises ModelFileError for a tensor whose name is not known: to ignore it would change every answer."""
    parts = _PARTS | _POST_NORMS if post_norms else _PARTS
    found: dict[str, Tensor] = {}
    for stored, tensor in tensors.items():
        if _COMPUTED.fullmatch(stored) or (tied and stored == "lm_head.weight"):
            continue
        name = _OUTER.get(stored)
        if name is None and (match := _LAYER.fullmatch(stored)) and match[2] in parts:
            name = f"blk.{match[1]}.{parts[match[2]]}.{match[3]}"
        if name is None:
            raise ModelFileError(f"{file}: the tensor {stored!r:.120} is not part of this architecture as it is supported")
        if name in found:
            raise ModelFileError(f"{file}: the tensor {stored!r} stands for {name!r}, which another one stands for too")
        if len(tensor.shape) == 1:
            values = _floats(tensor)
            if gemma and name.endswith("norm.weight"):
                values = values + np.float32(1)
            found[name] = Tensor(name, "F32", tensor.shape, values.view(np.uint8))
        else:
            found[name] = Tensor(name, tensor.type_name, tensor.shape, tensor.data)
    return found


def _floats(vector: Tensor) -> NDArray[np.float32]:
    """float32 [size] of its own, little-endian as in a file."""
    match vector.type_name:
        case "F32":
            return vector.data.view("<f4").copy()
        case "F16":
            return vector.data.view("<f2").astype("<f4")
    assert vector.type_name == "BF16"
    upper = vector.data.view("<u2").astype("<u4")
    return (upper << 16).view("<f4")
