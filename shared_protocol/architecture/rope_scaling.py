"""Rotary frequencies by every kind of scaling that public models use: pure functions in float64.

A frequency is in radians per position; `factor` is how many times the context grows, so scaling divides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def plain_frequencies(dims: int, base: float) -> tuple[float, ...]:
    """base^(-2i / dims) for the pairs i of `dims` inputs. Source: Su et al. 2021."""
    return tuple(base ** (-2 * i / dims) for i in range(dims // 2))


def divided_frequencies(frequencies: Sequence[float], factors: Sequence[float]) -> tuple[float, ...]:
    """Each frequency over its own factor: LongRoPE (Ding et al. 2024), and the tables that come with Llama 3.1 files."""
    return tuple(frequency / factor for frequency, factor in zip(frequencies, factors, strict=True))


def linear_frequencies(frequencies: Sequence[float], factor: float) -> tuple[float, ...]:
    """Position interpolation (Chen et al. 2023)."""
    return tuple(frequency / factor for frequency in frequencies)


def yarn_frequencies(
    dims: int, base: float, factor: float, original_context: int, *, beta_fast: float = 32.0, beta_slow: float = 1.0
) -> tuple[float, ...]:
    """YaRN (Peng et al. 2023): pairs that turn more than `beta_fast` times in the original context stay, below `beta_slow` they are
    interpolated, with a straight ramp over the pairs between.

    pair     0 ........ low ......... high ........ dims / 2
    factor   1 .......... 1  \\  ramp  \\ 1 / factor .........
    """

    def pair_of(turns: float) -> float:
        return dims * math.log(original_context / (turns * 2 * math.pi)) / (2 * math.log(base))

    low = max(math.floor(pair_of(beta_fast)), 0)
    high = min(math.ceil(pair_of(beta_slow)), dims - 1)
    ramp = [min(max((i - low) / max(high - low, 0.001), 0.0), 1.0) for i in range(dims // 2)]
    plain = plain_frequencies(dims, base)
    return tuple(frequency * (1 - share + share / factor) for frequency, share in zip(plain, ramp, strict=True))


def yarn_magnitude(factor: float) -> float:
    """What YaRN multiplies cosine and sine with. Source: Peng et al. 2023, equation 22."""
    return 1.0 if factor <= 1 else 0.1 * math.log(factor) + 1.0


def llama3_frequencies(
    frequencies: Sequence[float], factor: float, *, low_freq_factor: float, high_freq_factor: float, original_context: int
) -> tuple[float, ...]:
    """Llama 3.1: frequencies that turn more than `high_freq_factor` times in the original context stay, fewer than `low_freq_factor`
    are interpolated, between them the two are mixed. Source: the model's published configuration."""

    def scaled(frequency: float) -> float:
        turns = original_context * frequency / (2 * math.pi)
        share = min(max((turns - low_freq_factor) / (high_freq_factor - low_freq_factor), 0.0), 1.0)
        return frequency * (share + (1 - share) / factor)

    return tuple(scaled(frequency) for frequency in frequencies)


def longrope_magnitude(context: int, original_context: int) -> float:
    """What LongRoPE multiplies cosine and sine with, long or short. Source: Ding et al. 2024."""
    factor = context / original_context
    return 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original_context))
