"""Text to token ids and back, from a GGUF file's metadata or from a folder's tokenizer.json."""

from .byte_level import byte_symbols
from .gguf_tokenizer import tokenizer_of
from .tokenizer import Tokenizer

__all__ = ["Tokenizer", "byte_symbols", "tokenizer_of"]
