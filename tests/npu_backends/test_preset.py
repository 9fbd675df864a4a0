"""Chips as data: what comes with the product loads and says its sources; what no chip has is refused by its dotted key."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hybrid.npu_backends.preset import load_preset, parse_preset, preset_names
from hybrid.npu_backends.spec import NUMBERS, Array, Memory, Spec
from hybrid.shared_protocol.errors import ConfigError

GOOD = """
source = "a test"
kind = "assumed"
clock_hz = 1e9
vector_lanes = 8
weight_formats = ["int8_channel"]
alignment = 16
launch_cycles = 100
[array]
rows = 4
cols = 8
dataflows = ["os", "ws"]
[sram]
bytes = 65536
bytes_per_cycle = 16.0
latency_cycles = 8
burst_bytes = 64
outstanding = 4
[dram]
source = "a data sheet"
kind = "vendor"
bytes = 1048576
bytes_per_cycle = { value = 4.0, source = "a stopwatch", kind = "measured" }
latency_cycles = 100
burst_bytes = 64
outstanding = 2
[energy]
pj_per_mac = 0.2
pj_per_sram_byte = 2.0
pj_per_dram_byte = 40.0
"""


def parsed(text: str = GOOD) -> Spec:
    return parse_preset(text.encode(), name="mine", where="mine.toml")


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_loads_and_says_where_each_number_is_from(name: str) -> None:
    spec = load_preset(name)
    assert spec.name == name
    for key in NUMBERS:
        said = spec.said_by(key)
        assert len(said.source) > 5 and said.kind in ("vendor", "measured", "claimed", "assumed"), key
    assert spec.said_by("energy.pj_per_mac").kind == "assumed"  # no maker publishes it


@pytest.mark.parametrize(
    ("name", "tera_operations"), [("ethos-u85-2048", 4.1), ("intel-npu4", 48), ("rk3588", 6), ("tpu-v1", 92), ("hexagon-v79", 45)]
)
def test_a_chip_has_the_peak_that_its_maker_gives(name: str, tera_operations: float) -> None:
    assert 2 * load_preset(name).peak_macs_per_second / 1e12 == pytest.approx(tera_operations, rel=0.03)


def test_a_number_is_said_by_its_own_entry_then_its_table_then_the_file() -> None:
    spec = parsed()
    assert spec.dram.bytes_per_cycle == 4.0
    assert [spec.said_by(key).kind for key in ("dram.bytes_per_cycle", "dram.bytes", "sram.bytes")] == ["measured", "vendor", "assumed"]


def test_requests_under_way_bound_what_a_memory_sustains() -> None:
    # Arm's configurations, worked out by hand: 64 x 128 / 500 = 16.4 is above the port's 12; 24 x 128 / 500 = 6.1 is below its 7.5
    assert Memory("dram", 1 << 30, 12.0, 500, 128, 64).sustained_bytes_per_cycle == 12.0
    assert Memory("dram", 1 << 30, 7.5, 500, 128, 24).sustained_bytes_per_cycle == pytest.approx(6.144)
    assert Memory("sram", 1 << 20, 8.0, 0, 32, 1).sustained_bytes_per_cycle == 8.0


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("rows = 4", "rows = 0", "array.rows"),
        ("rows = 4", "rows = 4.5", "array.rows"),
        ("rows = 4", "rows = true", "array.rows"),
        ("cols = 8", "cols = 100000", "array.cols"),
        ("clock_hz = 1e9", "clock_hz = nan", "clock_hz"),
        ("clock_hz = 1e9", "clock_hz = inf", "clock_hz"),
        ("clock_hz = 1e9", "clock_hz = -1.0", "clock_hz"),
        ("clock_hz = 1e9", 'clock_hz = "fast"', "clock_hz"),
        ("value = 4.0", "value = 0.0", "dram.bytes_per_cycle"),
        ("latency_cycles = 100", "latency_cycles = -1", "dram.latency_cycles"),
        ("bytes = 65536", "bytes = 100", "sram.bytes"),
        ("bytes = 1048576", f"bytes = {10**30}", "dram.bytes"),
        pytest.param("bytes = 1048576", f"bytes = {10**400}", "dram.bytes", id="beyond a float"),
        pytest.param("clock_hz = 1e9", f"clock_hz = 0x{'f' * 5000}", "clock_hz", id="beyond what Python writes"),
        pytest.param("[energy]", '"a\\nb" = 1\n[energy]', "dram.'a\\nb'", id="a key of two lines"),
        ("pj_per_mac = 0.2", "pj_per_mac = 0", "energy.pj_per_mac"),
        ("alignment = 16", "alignment = 24", "alignment"),
        ('["os", "ws"]', '["os", "rs"]', "array.dataflows"),
        ('["os", "ws"]', '["os", "os"]', "array.dataflows"),
        ('["os", "ws"]', '"os"', "array.dataflows"),
        ('["int8_channel"]', "[]", "weight_formats"),
        ('["int8_channel"]', "[8]", "weight_formats"),
        ('kind = "vendor"', 'kind = "rumour"', "dram"),
        ('source = "a test"', 'source = " "', "source"),
        ('source = "a test"\n', "", "source"),
        ("cols = 8", "cols = 8\ncolumns = 8", "array.columns"),
        ("outstanding = 2", "", "dram.outstanding"),
        ("value = 4.0, ", "", "dram.bytes_per_cycle.value"),
        ("value = 4.0, ", "value = 4.0, valu = 3, ", "dram.bytes_per_cycle.valu"),
        ("[energy]", "[energie]", "energie"),
        ("launch_cycles = 100", "launch_cycles = 100\nspeed = 9", "speed"),
    ],
)
def test_a_preset_that_no_chip_could_have_is_refused_by_its_dotted_key(old: str, new: str, key: str) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(ConfigError) as caught:
        parsed(GOOD.replace(old, new))
    assert caught.value.param == key and "mine.toml" in str(caught.value)


def test_a_misspelt_key_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(ConfigError, match=r"did you mean array\.rows\?"):
        parsed(GOOD.replace("rows = 4", "row = 4"))


def test_an_sram_below_one_tile_says_how_much_one_tile_needs() -> None:
    # 256 x 256 outputs of 4 bytes, and twice 32 bytes for each of 512 rows and columns: 262,144 + 32,768
    with pytest.raises(ConfigError, match="294912"):
        replace(parsed(), array=Array(256, 256))


def test_an_unknown_preset_names_the_near_ones() -> None:
    with pytest.raises(ConfigError, match=r"did you mean ethos-u85-256"):
        load_preset("ethos-u85-265")


def test_a_chip_of_your_own_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GOOD)
    assert load_preset(tmp_path / "mine.toml") == parsed()
    assert load_preset(str(tmp_path / "mine.toml")).name == "mine"
    with pytest.raises(ConfigError, match="cannot read"):
        load_preset(tmp_path / "absent.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not TOML"):
        load_preset(tmp_path / "bad.toml")
    (tmp_path / "long.toml").write_text(f"clock_hz = {'9' * 5000}")
    with pytest.raises(ConfigError, match="not TOML"):
        load_preset(tmp_path / "long.toml")
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(ConfigError, match="it is no file"):
        load_preset(tmp_path / "pipe.toml")
    (tmp_path / "deep.toml").write_text("a = " + "[" * 100_000)
    with pytest.raises(ConfigError, match="not TOML"):
        load_preset(tmp_path / "deep.toml")


def test_the_page_on_chips_names_every_preset() -> None:
    page = (Path(__file__).parents[2] / "docs/npu.md").read_text()
    assert [name for name in preset_names() if f"| `{name}` |" not in page] == []
