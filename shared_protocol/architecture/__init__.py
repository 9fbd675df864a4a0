"""What a network computes: sizes, rotary angles, windows, caps; read from GGUF metadata or from a folder's config.json."""

from .architecture import Architecture, Rotary

__all__ = ["Architecture", "Rotary"]
