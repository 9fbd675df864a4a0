"""One TOML file a chip; `npu_backends/preset.py` reads them."""
