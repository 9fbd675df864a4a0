"""What must run before what, whatever the order of the rest."""

from hybrid.compiler.fuse.order import predecessors
from hybrid.npu_backends.ir.op import Op, fused
from hybrid.npu_backends.ir.value import Value

CACHE, AFTER, LATER = (Value(name, (1, 4, 2), "f32") for name in ("cache", "after", "later"))
KEY, POSITION, VIEW = Value("key", (1, 1, 2), "f32"), Value("position", (1,), "i32"), Value("view", (4, 2), "f32")
SEEN, SEEN_LATER = Value("seen", (4, 2), "f32"), Value("seen_later", (1, 4, 2), "f32")
LOOK = Op("reshape", (CACHE,), (VIEW,))
READ = Op("silu", (VIEW,), (SEEN,))
WRITE, WRITE_AGAIN = Op("cache_write", (CACHE, KEY, POSITION), (AFTER,)), Op("cache_write", (AFTER, KEY, POSITION), (LATER,))
READ_AFTER = Op("silu", (AFTER,), (SEEN_LATER,))


def test_memory_is_overwritten_after_its_readers_through_a_view_too() -> None:
    assert predecessors((LOOK, READ, WRITE)) == [frozenset(), frozenset({0}), frozenset({0, 1})]


def test_the_second_write_waits_for_the_readers_of_the_first() -> None:
    order = predecessors((LOOK, READ, WRITE, READ_AFTER, WRITE_AGAIN))
    assert order[3:] == [frozenset({2}), frozenset({0, 1, 2, 3})]


def test_a_write_inside_a_fused_operation_waits_too() -> None:
    both = fused((WRITE, READ_AFTER), (AFTER, SEEN_LATER))
    assert predecessors((LOOK, READ, both)) == [frozenset(), frozenset({0}), frozenset({0, 1})]
