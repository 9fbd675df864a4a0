"""The native library: where it is, which instruction set it uses here, and why it is not there when it is not.

Found at the path in HYBRID_KERNELS, else beside this module (setup.py builds it there).
HYBRID_ISA=scalar|avx2|avx512|neon overrides the choice.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...shared_protocol.errors import ConfigError

ABI = 3  # HYBRID_ABI in kernels/api.h
ISAS = ("avx512", "avx2", "neon", "scalar")
FILE_NAME = "libhybrid_kernels.dylib" if sys.platform == "darwin" else "libhybrid_kernels.so"


class Matrix(ctypes.Structure):
    _fields_ = [("panels", ctypes.c_void_p), ("kind", ctypes.c_int32), ("rows", ctypes.c_int32), ("columns", ctypes.c_int32)]


class RotaryPointer(ctypes.Structure):
    _fields_ = [("table", ctypes.c_void_p), ("pairs", ctypes.c_int32), ("interleaved", ctypes.c_int32)]


VECTORS = (
    *("attention_norm", "ffn_norm", "query_bias", "key_bias", "value_bias"),
    *("query_norm", "key_norm", "attention_post_norm", "ffn_post_norm"),
)
MATRICES = ("query", "key", "value", "output", "gate", "up", "down")


class Layer(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in VECTORS),
        *((name, Matrix) for name in MATRICES),
        ("rotary", RotaryPointer),
        ("window", ctypes.c_int32),
    ]


class ModelSpec(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int32) for name in ("num_layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab")),
        *((name, ctypes.c_int32) for name in ("num_blocks", "block_size", "threads", "activation")),
        *((name, ctypes.c_float) for name in ("norm_eps", "attention_scale", "embedding_scale", "attention_softcap", "logit_softcap")),
        ("layers", ctypes.POINTER(Layer)),
        ("final_norm", ctypes.c_void_p),
        ("embedding", Matrix),
        ("head", Matrix),
    ]


class Batch(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int32) for name in ("tokens", "sequences", "max_blocks", "logit_rows")),
        *((name, ctypes.c_void_p) for name in ("token_ids", "positions", "query_start", "block_tables", "logit_index")),
    ]


class Memory(ctypes.Structure):
    _fields_ = [("kv", ctypes.c_int64), ("scratch", ctypes.c_int64)]


STRUCTS = (Matrix, RotaryPointer, Layer, ModelSpec, Batch, Memory)  # in the order of hybrid_struct_bytes


@dataclass(frozen=True, slots=True)
class NativeStatus:
    """What `hybrid doctor` prints. `reason` says why there is no native library, and is empty when there is one."""

    found: bool
    path: str | None
    isa: str | None
    kernel_id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Native:
    """A loaded library and the instruction set chosen for this process."""

    library: ctypes.CDLL
    path: Path
    isa: str
    kernel_id: str


class NativeUnavailable(ConfigError):
    """The native kernels cannot be used here; the message says why."""

    code = "native_unavailable"


def load(environment: Mapping[str, str] | None = None) -> Native:
    """Load the library. Raises NativeUnavailable with the reason."""
    environment = os.environ if environment is None else environment
    path = _find(environment)
    try:
        library = ctypes.CDLL(str(path))
        _declare(library)
        abi = library.hybrid_abi()
    except (OSError, AttributeError) as error:
        raise NativeUnavailable(f"{path} cannot be loaded: {error}", hint="build it again: pip install --force-reinstall .") from None
    if abi != ABI:
        raise NativeUnavailable(f"{path} speaks interface {abi}, this version needs {ABI}", hint="build it again: pip install .")
    sizes = (ctypes.c_int32 * len(STRUCTS))()
    library.hybrid_struct_bytes(sizes)
    for struct, size in zip(STRUCTS, sizes, strict=True):
        if ctypes.sizeof(struct) != size:
            raise NativeUnavailable(
                f"{path} lays {struct.__name__} out in {size} bytes, this version in {ctypes.sizeof(struct)}",
                hint="build it again: pip install .",
            )
    wanted = environment.get("HYBRID_ISA", "")
    isa = library.hybrid_isa(wanted.encode())
    if isa is None:
        shared = [name for name in ISAS if library.hybrid_isa(name.encode()) is not None]
        raise NativeUnavailable(
            f"HYBRID_ISA={wanted} is not among the instruction sets that this library and this CPU share: {', '.join(shared)}",
            hint="name one of these, or none",
        )
    return Native(library, path, isa.decode(), library.hybrid_kernel_id(isa).decode())


def describe(environment: Mapping[str, str] | None = None) -> NativeStatus:
    """Say whether the native kernels serve, from where and with which kernel id, or why not. Never raises."""
    try:
        native = load(environment)
    except NativeUnavailable as error:
        return NativeStatus(False, None, None, None, str(error))
    return NativeStatus(True, str(native.path), native.isa, native.kernel_id, "")


def _find(environment: Mapping[str, str]) -> Path:
    if override := environment.get("HYBRID_KERNELS"):
        if not Path(override).exists():
            raise NativeUnavailable(f"HYBRID_KERNELS={override} does not exist", hint="unset it, or name the library")
        return Path(override)
    beside = Path(__file__).with_name(FILE_NAME)
    if not beside.exists():
        raise NativeUnavailable(
            f"no {FILE_NAME} in {beside.parent}: no C++ compiler worked when Hybrid was installed",
            hint="install a C++17 compiler and pip install again, or set HYBRID_KERNELS",
        )
    return beside


def _declare(library: ctypes.CDLL) -> None:
    """Give every function its types; AttributeError when one is missing."""
    library.hybrid_abi.restype = ctypes.c_int32
    library.hybrid_struct_bytes.argtypes, library.hybrid_struct_bytes.restype = [ctypes.POINTER(ctypes.c_int32)], None
    for function in (library.hybrid_isa, library.hybrid_kernel_id):
        function.argtypes, function.restype = [ctypes.c_char_p], ctypes.c_char_p
    library.hybrid_open.argtypes, library.hybrid_open.restype = [ctypes.POINTER(ModelSpec), ctypes.c_char_p], ctypes.c_void_p
    library.hybrid_step.argtypes = [ctypes.c_void_p, ctypes.POINTER(Batch), ctypes.c_void_p, ctypes.c_void_p]
    library.hybrid_step.restype = ctypes.c_int32
    library.hybrid_memory.argtypes, library.hybrid_memory.restype = [ctypes.c_void_p], Memory
    library.hybrid_close.argtypes, library.hybrid_close.restype = [ctypes.c_void_p], None
    pointer, number = ctypes.c_void_p, ctypes.c_int32
    library.hybrid_pack.argtypes, library.hybrid_pack.restype = [number, pointer, ctypes.c_int64, number, number, pointer], None
    library.hybrid_load_row.argtypes, library.hybrid_load_row.restype = [ctypes.POINTER(Matrix), number, pointer], None
    library.hybrid_multiply.argtypes = [ctypes.POINTER(Matrix), ctypes.c_char_p, pointer, number, pointer]
    library.hybrid_multiply.restype = ctypes.c_int32
