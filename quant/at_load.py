"""Float weights as small integers, made while a model is loaded: what a folder of safetensors is served in.

int8             Q8_0, 8.5 bits       close to the float model at every size
int4             Q4_1, 5 bits         each block between its lowest and its highest value; loses noticeably below a billion parameters
int4-symmetric   Q4_0, 4.5 bits       around zero; loses more
none             as they are

With 4 bits the embedding and the output matrix still get 8, which costs little and decides most of the last step. Vectors stay float32.
Rounding is to the nearest, without calibration.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..shared_protocol.errors import ConfigError
from ..shared_protocol.gguf import Tensor
from ..shared_protocol.model import Model
from .formats import FORMATS, dequantize, fitting_type, format_of, quantize
from .pages import forget

Quantise = Literal["int8", "int4", "int4-symmetric", "none"]
TYPES = {"int8": "Q8_0", "int4": "Q4_1", "int4-symmetric": "Q4_0"}
FLOATS = ("F32", "F16", "BF16")
ENDS = ("token_embd.weight", "output.weight")
_AT_ONCE = 1 << 18  # elements that are float32 at any moment

log = logging.getLogger(__name__)


class QuantisedTensor(Tensor):
    """A float matrix as blocks. `data` is made whenever it is asked for and never kept: whoever keeps panels asks once."""

    __slots__ = ("source",)
    source: Tensor

    def __init__(self, source: Tensor, type_name: str) -> None:
        for field, value in (("name", source.name), ("type_name", type_name), ("shape", source.shape), ("source", source)):
            object.__setattr__(self, field, value)

    @property
    def data(self) -> NDArray[np.uint8]:
        rows, columns = self.source.shape
        form = FORMATS[self.type_name]
        packed = np.empty((rows, columns // form.block * form.block_bytes), np.uint8)
        source = self.source.data
        stored = source.reshape(rows, -1)
        step = max(1, _AT_ONCE // columns)
        for at in range(0, rows, step):
            part = stored[at : at + step]
            values = dequantize(Tensor(self.name, self.source.type_name, (len(part), columns), part.reshape(-1)))
            packed[at : at + step] = quantize(values, self.type_name).reshape(len(part), -1)
        forget(source)
        return packed.reshape(-1)


def quantised(model: Model, choice: Quantise | None = None) -> Model:
    """The model with its float matrices in the blocks of `choice`; None: int8 for a folder, and a GGUF file as it is.

    Only who opens a model calls this, once: the card of what comes out is the one to tell others. It says the new type and bits per
    weight, and its hash says the choice, since another rounding is another model. Nothing is computed before a tensor's data is asked
    for. A matrix whose rows no block divides stays as it is.
    Raises ConfigError for a choice that is none, and for a model without a matrix that it could be applied to.
    """
    if choice is not None and choice not in get_args(Quantise):
        raise ConfigError(f"quantise must be one of {', '.join(get_args(Quantise))}, found {choice!r:.40}", param="quantise")
    floats = [tensor for tensor in model.tensors.values() if len(tensor.shape) == 2 and tensor.type_name in FLOATS]
    divided = [tensor for tensor in floats if _fits(tensor)]
    if choice == "none" or (choice is None and not (divided and model.path.is_dir())):
        return model
    choice = choice or "int8"
    if not divided:
        raise ConfigError(
            f"the weights of {model.card.name} are {model.card.quantisation}: quantise={choice} takes float rows of a multiple of 32",
            hint="leave it out, or start from the float weights",
            param="quantise",
        )
    tensors = dict(model.tensors)
    for tensor in divided:
        tensors[tensor.name] = QuantisedTensor(tensor, TYPES["int8" if tensor.name in ENDS else choice])
    held = sum(format_of(tensor).bits * math.prod(tensor.shape) for tensor in tensors.values())
    bits = round(held / model.card.num_parameters, 3)
    left = ", ".join(f"{tensor.name} ({tensor.type_name}, rows of {tensor.shape[1]})" for tensor in floats if tensor not in divided)
    log.info(
        "%s: %d of %d matrices become %s at load, %.2f bits per weight in all%s",
        *(model.card.name, len(divided), len(floats), TYPES[choice], bits, f"; no block fits {left}" if left else ""),
    )
    card = dataclasses.replace(
        model.card,
        quantisation=TYPES[choice],
        bits_per_weight=bits,
        file_hash=hashlib.sha256(f"{model.card.file_hash} {choice}".encode()).hexdigest(),
    )
    return dataclasses.replace(model, card=card, tensors=tensors)


def _fits(tensor: Tensor) -> bool:
    """Whether the blocks of all choices, which are of one size, divide the rows; the others would become F16, and stay what they are."""
    return all(fitting_type(type_name, tensor.shape[1]) == type_name for type_name in TYPES.values())
