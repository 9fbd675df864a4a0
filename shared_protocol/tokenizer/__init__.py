"""Text to token ids and back, from a GGUF file's metadata or from a folder's tokenizer.json."""

from .byte_level import byte_symbols
from .folder_files import template_of_folder
from .gguf_tokenizer import tokenizer_of
from .tokenizer import Tokenizer
from .tokenizer_json import tokenizer_of_folder

__all__ = ["Tokenizer", "byte_symbols", "template_of_folder", "tokenizer_of", "tokenizer_of_folder"]
