"""Work that starts in many threads at once."""

from __future__ import annotations

import threading


def in_parallel(count: int, work):  # type: ignore[no-untyped-def]
    """Results of `count` threads that start together."""
    barrier = threading.Barrier(count)
    results: list[object] = [None] * count

    def run(number: int) -> None:
        barrier.wait()
        results[number] = work()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
