"""The page of a compilation says what its data says."""

from pathlib import Path

import msgspec
from hybrid.apps.report.compiled import compiled_page
from hybrid.apps.report.plan_chart import in_bytes
from hybrid.compiler.report import (
    ArenaReport,
    CompileReport,
    FidelityReport,
    FlowReport,
    GraphReport,
    OpReport,
    PlacedReport,
    RefusalReport,
    SegmentReport,
    TargetReport,
)
from hybrid.tests.support.html_page import checked

EVIL = "<script>alert('&\"')</script>"
CHIP = TargetReport(EVIL, EVIL, "vendor", {"assumed": 8, "vendor": 11}, 1e9, 1024, 16e9, 1 << 19, 1 << 32)
PRODUCT = OpReport(
    "fused", ("rms_norm", "quantise", "linear_i8"), EVIL, 30, "systolic", 900_000, 9e-4, 10_000_000, 8_000_000, 10_000_000,
    1, 576, 576, "os", (1, 64, 576), "nmk", 0.028, 0.37, 2e-4,
)  # fmt: skip
PLAIN = OpReport("softmax", (), "probabilities", 30, "cpu", 1000, 4e-7, 100, None, 0, None, None, None, None, None, None, None, None, 0.0)
ARENA = ArenaReport(
    "sram", 1536, 1024, 1.5, "greedy-by-size", False, 1 << 19, (PlacedReport(EVIL, 0, 2, 0, 1024), PlacedReport("b", 1, 3, 1024, 512))
)
SEGMENTS = (
    SegmentReport("decode.0", "systolic", 30, 900_000, 9e-4, 10_000_000, 2e-3),
    SegmentReport("decode.1", "cpu", 1, 1, 1e-4, 10, 0.0),
)
GRAPH = GraphReport(
    name="decode", rows=1, ops_captured=600, ops_fused=181, macs=10_000_000, bytes_weights=10_000_000, cycles=900_000, seconds=1e-3,
    seconds_pipelined=8e-4, stalls_seconds=2e-4, joules=2e-3, tokens_per_s=1000.0, roofline_tokens_per_s=1600.0, bytes_saved_by_fusion=4096,
    flow=(FlowReport(EVIL, "fused", ("linear_i8", "add"), "systolic", (1, 576)),), layers=30, segments=SEGMENTS,
    ops=(PRODUCT, PLAIN), refused=(RefusalReport("scores", "systolic", EVIL, 30, "scores.0"),), arenas=(ARENA,),
)  # fmt: skip
REPORT = CompileReport(EVIL, "0" * 64, "w8a8", 2048, CHIP, CHIP, 10_000_000, 4096, FidelityReport(256, 0.054, 0.23, 0.84), (GRAPH,), None)


def page_of(report: CompileReport, tmp_path: Path) -> str:
    file = tmp_path / "page.html"
    file.write_text(compiled_page(report))
    return checked(file).words


def test_a_page_shows_speed_bounds_plans_tiles_and_refusals(tmp_path: Path) -> None:
    words = page_of(REPORT, tmp_path)
    for told in (
        "1,000.0",
        "62% of its roofline",
        "1.500 times the bound",
        "1 x 64 x 576",
        "rms_norm + quantise + linear_i8",
        "1.25",
        "assumed 8, vendor 11",
        "0.2 ms of it waits",
        "one more takes 0.8 ms",
        "37%",
        "0.200",
        "0.054 nats",
        "84.0%",
        EVIL,
    ):
        assert told in words, told


def test_a_page_of_a_graph_without_products_or_buffers_has_no_empty_chart(tmp_path: Path) -> None:
    bare = msgspec.structs.replace(GRAPH, ops=(PLAIN,), arenas=(), refused=(), flow=(), segments=GRAPH.segments[1:])
    words = page_of(msgspec.structs.replace(REPORT, graphs=(bare,)), tmp_path)
    assert "roofline" not in words.partition("operations and tiles")[0].partition("who works when")[2] and "refused" not in words


def test_sizes_are_read_as_people_write_them() -> None:
    assert [in_bytes(size) for size in (0, 640, 1536, 98 << 20, 3 << 40)] == ["0 B", "640 B", "1.5 KiB", "98 MiB", "3.07e+03 GiB"]
