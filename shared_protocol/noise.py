"""The noise behind every draw: a counter-based generator keyed by (seed, position, token id), the same to the bit on every machine.

A token is drawn as argmax(logit / T + g) (Gumbel-max); g depends on nothing but the key, so whoever knows the seed knows the noise:
the same text alone, in a batch, resumed, or drafted by a device. `log` and `exp` are our own: libraries differ in the last bit.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

U32 = NDArray[np.uint32]
F64 = NDArray[np.float64]


class Keys(NamedTuple):
    """Four u32 keys of one (seed, position): k0, k1 make `hi`, k2, k3 make `lo`."""

    k0: int
    k1: int
    k2: int
    k3: int


def keys(seed: int, position: int) -> Keys:
    """Keys for the token at `position` (index in the whole sequence, prompt included); both are signed 64-bit."""
    return Keys(*struct.unpack_from("<4I", hashlib.sha256(b"hybrid-noise-1" + struct.pack("<qq", seed, position)).digest()))


def child_seed(seed: int, i: int) -> int:
    """Seed of choice `i` of a request with n > 1; choice 0 keeps the request's seed."""
    if i == 0:
        return seed
    digest = hashlib.sha256(b"hybrid-child" + struct.pack("<qq", seed, i)).digest()
    return int.from_bytes(digest[:8], "little", signed=True)


def fresh_seed() -> int:
    """A seed from the system's random source, below 2^53 so that every JSON reader can hand it back unchanged."""
    return secrets.randbelow(2**53)


def hash_ids(ids: U32, inner: int, outer: int) -> U32:
    """fmix32(fmix32(id + inner) ^ outer) for an array of at least one dimension; wraps modulo 2^32."""
    h = ids + np.uint32(inner)
    _fmix32_in_place(h)
    h ^= np.uint32(outer)
    _fmix32_in_place(h)
    return h


def uniform(hi: U32, lo: U32) -> F64:
    """u = ((hi << 20 | lo >> 12) + 0.5) * 2^-52, in [2^-53, 1 - 2^-53]. `hi` is widened before the shift."""
    bits = (hi.astype(np.uint64) << np.uint64(20)) | (lo >> np.uint32(12))
    u: F64 = (bits.astype(np.float64) + 0.5) * 2.0**-52
    return u


def gumbel(seed: int, position: int, ids: NDArray[np.integer]) -> F64:
    """Standard Gumbel noise for each id, float64 [ids]."""
    return gumbel_of(keys(seed, position), ids.astype(np.uint32))


def gumbel_of(key: Keys, ids: U32) -> F64:
    u = uniform(hash_ids(ids, key.k0, key.k1), hash_ids(ids, key.k2, key.k3))
    g: F64 = -log(-log(u))
    return g


def gumbel_one(key: Keys, token_id: int) -> float:
    """The same noise for one id, without arrays."""
    hi = _fmix32(_fmix32(token_id + key.k0 & _MASK) ^ key.k1)
    lo = _fmix32(_fmix32(token_id + key.k2 & _MASK) ^ key.k3)
    return -log_one(-log_one(((hi << 20 | lo >> 12) + 0.5) * 2.0**-52))


_MASK = 0xFFFFFFFF
_FMIX_1 = 0x85EBCA6B  # murmur3's finaliser (Austin Appleby, public domain)
_FMIX_2 = 0xC2B2AE35


def _fmix32(h: int) -> int:
    h = (h ^ h >> 16) * _FMIX_1 & _MASK
    h = (h ^ h >> 13) * _FMIX_2 & _MASK
    return h ^ h >> 16


def _fmix32_in_place(h: U32) -> None:
    shifted = h >> np.uint32(16)
    h ^= shifted
    h *= np.uint32(_FMIX_1)
    np.right_shift(h, np.uint32(13), out=shifted)
    h ^= shifted
    h *= np.uint32(_FMIX_2)
    np.right_shift(h, np.uint32(16), out=shifted)
    h ^= shifted


# log m = 2 atanh(s), s = f / (2 + f): sum of s^(2k+1) / (2k+1)
_LOG_COEFFICIENTS = [1.0 / (2 * k + 1) for k in range(11, -1, -1)]
_SQRT_HALF = 0.7071067811865476
_LN2 = 0.6931471805599453


def log(x: F64) -> F64:
    """Natural logarithm of positive finite float64, each operation rounded."""
    m, e = np.frexp(x)
    small = m < _SQRT_HALF
    m = np.where(small, m * 2.0, m)
    e = e - small
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = np.full_like(z, _LOG_COEFFICIENTS[0])
    for c in _LOG_COEFFICIENTS[1:]:
        p *= z
        p += c
    result: F64 = e * _LN2 + (2.0 * s) * p
    return result


def log_one(x: float) -> float:
    """The same logarithm of one number, without arrays."""
    m, e = math.frexp(x)
    if m < _SQRT_HALF:
        m *= 2.0
        e -= 1
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = _LOG_COEFFICIENTS[0]
    for c in _LOG_COEFFICIENTS[1:]:
        p = p * z + c
    return e * _LN2 + (2.0 * s) * p


def _exp_coefficients() -> list[float]:
    c = [1.0]
    for n in range(1, 14):
        c.append(c[-1] / n)
    return c[::-1]


_EXP_COEFFICIENTS = _exp_coefficients()
_LOG2E = 1.4426950408889634
_LN2_HIGH = float.fromhex("0x1.62e42feep-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_EXP_UNDERFLOW = -800.0  # exp is 0.0 from -746 down; -inf must not meet the arithmetic


def exp(x: F64) -> F64:
    """e^x of float64 up to 709 (-inf included), each operation rounded; 0.0 where it underflows."""
    x = np.maximum(x, _EXP_UNDERFLOW)
    k = np.rint(x * _LOG2E)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = np.full_like(r, _EXP_COEFFICIENTS[0])
    for c in _EXP_COEFFICIENTS[1:]:
        p *= r
        p += c
    result: F64 = np.ldexp(p, k.astype(np.int32))
    return result
