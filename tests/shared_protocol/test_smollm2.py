"""The real file, read by our own reader."""

from __future__ import annotations

from hybrid.shared_protocol.model import Model


def test_the_real_model_is_what_its_publisher_says(smollm2: Model) -> None:
    assert (smollm2.architecture.num_layers, smollm2.architecture.hidden_size, smollm2.architecture.num_kv_heads) == (30, 576, 3)
    assert smollm2.card.quantisation == "Q4_1"
    assert smollm2.card.licence == "Apache-2.0"
    assert smollm2.card.num_parameters == 134_515_008
    assert smollm2.tokenizer.eos_ids == {0, 2}


def test_text_survives_encoding_and_decoding(smollm2: Model) -> None:
    text = "Café déjà vu — 123 😊\r\n\tfor i in range(10):"
    assert smollm2.tokenizer.decode(smollm2.tokenizer.encode(text)) == text
