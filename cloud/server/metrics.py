"""What Prometheus may read: vLLM's names where the meaning is the same, prefix `hybrid:`. No label grows with use.

Counts of the engine (queue, KV cache, prefix cache, pre-emptions) are read from it at each scrape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from ..engine.messages import EngineStats

_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0)


class _EngineCollector(Collector):
    def __init__(self, stats: Callable[[], EngineStats], model: str) -> None:
        self._stats = stats
        self._model = model

    def collect(self) -> Iterator[Metric]:
        stats = self._stats()
        gauges = {
            "num_requests_running": ("Requests that the engine is computing.", stats.running),
            "num_requests_waiting": ("Requests that wait for the engine.", stats.waiting),
            "num_sessions_parked": ("Speculative sessions that wait for their device.", stats.parked),
            "kv_cache_usage_perc": ("Share of KV blocks in use, 0 to 1.", stats.used / stats.total if stats.total else 0.0),
            "engine_healthy": ("1 while the engine holds its invariants.", int(stats.healthy)),
        }
        counters = {
            "num_preemptions": ("Requests put back to free KV blocks.", stats.num_preemptions),
            "prefix_cache_queries": ("Prompt tokens looked up in the prefix cache.", stats.prefix_queries),
            "prefix_cache_hits": ("Prompt tokens found in the prefix cache.", stats.prefix_hits),
            "engine_steps": ("Steps of the engine.", stats.steps),
        }
        for name, (text, value) in gauges.items():
            gauge = GaugeMetricFamily(f"hybrid:{name}", text, labels=["model_name"])
            gauge.add_metric([self._model], value)
            yield gauge
        for name, (text, value) in counters.items():
            counter = CounterMetricFamily(f"hybrid:{name}", text, labels=["model_name"])
            counter.add_metric([self._model], value)
            yield counter


class Metrics:
    """The counters of one server, in a registry of their own."""

    def __init__(self, stats: Callable[[], EngineStats], model: str) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_EngineCollector(stats, model))
        ProcessCollector(registry=self.registry)
        self.http_requests = Counter(
            "hybrid:http_requests", "Answers by route template.", ["route", "method", "status"], registry=self.registry
        )
        self._success = Counter(
            "hybrid:request_success", "Choices by finish reason.", ["model_name", "finished_reason"], registry=self.registry
        )
        self._prompt = self._counter("prompt_tokens", "Tokens of prompts that were computed, or found in the prefix cache.", model)
        self._generated = self._counter("generation_tokens", "Tokens generated.", model)
        self._first = self._histogram("time_to_first_token_seconds", "From the request's arrival to its first token.", model)
        self._between = self._histogram("inter_token_latency_seconds", "Between tokens of one choice.", model)
        self._whole = self._histogram("e2e_request_latency_seconds", "From the request's arrival to its last token.", model)
        self._drafts = self._counter("spec_decode_num_drafts", "Drafts of devices that were verified, empty ones too.", model)
        self._drafted = self._counter("spec_decode_num_draft_tokens", "Tokens that devices drafted.", model)
        self._accepted = self._counter("spec_decode_num_accepted_tokens", "Tokens of drafts that stand in the answer.", model)
        self._model = model

    def _counter(self, name: str, text: str, model: str) -> Counter:
        return Counter(f"hybrid:{name}", text, ["model_name"], registry=self.registry).labels(model)

    def _histogram(self, name: str, text: str, model: str) -> Histogram:
        return Histogram(f"hybrid:{name}", text, ["model_name"], registry=self.registry, buckets=_SECONDS).labels(model)

    def meter(self, arrival: float, choices: int) -> RequestMeter:
        return RequestMeter(self, arrival, choices)

    def exposition(self) -> bytes:
        return generate_latest(self.registry)

    def count_prompt(self, tokens: int) -> None:
        self._prompt.inc(tokens)

    def count_generated(self, tokens: int) -> None:
        self._generated.inc(tokens)

    def observe_first(self, seconds: float) -> None:
        self._first.observe(seconds)

    def observe_between(self, seconds: float) -> None:
        self._between.observe(seconds)

    def observe_whole(self, seconds: float) -> None:
        self._whole.observe(seconds)

    def count_round(self, drafted: int, accepted: int, committed: int) -> None:
        """One verdict of a session. A device's pace and its link are in no histogram: those of requests would mean nothing any more."""
        self._drafts.inc()
        self._drafted.inc(drafted)
        self._accepted.inc(accepted)
        self.count_generated(committed)

    def count_finish(self, reason: str, choices: int = 1) -> None:
        self._success.labels(self._model, reason).inc(choices)


class RequestMeter:
    """Times of one request, in seconds of the clock that made `arrival`."""

    def __init__(self, metrics: Metrics, arrival: float, choices: int) -> None:
        self._metrics = metrics
        self._arrival = arrival
        self._running = choices
        self._last: dict[int, float] = {}  # choice -> time of its newest token

    def tokens(self, choice: int, count: int, now: float) -> None:
        """`count` tokens of a choice came at once."""
        if not count:
            return
        if choice in self._last:
            for _ in range(count):
                self._metrics.observe_between((now - self._last[choice]) / count)
        else:
            self._metrics.observe_first(now - self._arrival)
        self._last[choice] = now
        self._metrics.count_generated(count)

    def finish(self, reason: str, now: float) -> None:
        self._running -= 1
        self._metrics.count_finish(reason)
        self._metrics.observe_whole(now - self._arrival)

    def refuse(self) -> None:
        """The engine took none of the choices."""
        self._running = 0

    def leave(self) -> None:
        """Nobody waits for the choices that still run."""
        if self._running:
            self._metrics.count_finish("abort", self._running)
