"""What the condition of a rule may look at: one name, one type, one meaning. A value that is not known is no value, and never 0.

Values are worked out when a rule asks for them, once per decision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..complexity.language import language_of
from ..complexity.reading import Said
from ..complexity.task import TASKS, has_code, task_of
from ..costs import cloud_price
from ..request import RouteContext, RouteRequest
from .expression import Value

MAX_INT = 2**62  # CEL's numbers have 64 bits
PER = 1_000_000  # tokens that prices are for


@dataclass(frozen=True, slots=True)
class Scene:
    """A request with its surroundings, and what earlier stages have worked out.

    `private`: the request stays on the device; rules then know nothing of the cloud, so that nothing of it can show in the decision.
    """

    request: RouteRequest
    said: Said  # in the request
    context: RouteContext
    tokens: int  # of the prompt
    output: int  # tokens, asked for or assumed
    complexity: float  # 0..1
    private: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    meaning: str  # with its unit, and when it is not known
    samples: tuple[Value, ...]  # of its one type, the least and the greatest with them: conditions are tried with these at load
    read: Callable[[Scene], Value | None]
    cloud: bool = False  # a fact of the cloud

    @property
    def type(self) -> type:
        return type(self.samples[0])

    def value(self, scene: Scene) -> Value | None:
        """None when it is not known. Never raises: what cannot be read of whatever a caller put into the facts is not known either."""
        try:
            found = self.read(scene)
            return None if found is None else _fitting(found, type(self.samples[0]))
        except Exception:
            return None


def _cost(scene: Scene) -> float | None:
    return cloud_price(scene.context.costs, scene.tokens, scene.output)


def _room(scene: Scene) -> int | None:
    device = scene.context.device
    return device.edge_context - scene.tokens - (scene.request.max_tokens or 1) if device.edge_available else None


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


_TRUTHS, _TEXTS = (True, False), ("local", "")
_NUMBERS, _SHARES, _AMOUNTS = (0, 1, 1_000, 10**9), (0.0, 0.5, 1.0), (0.0, 1.0, 1_000.0, 1e9)

_ALL = (
    # the request
    Variable("tokens", "tokens of the prompt", _NUMBERS, lambda s: s.tokens),
    Variable("max_tokens", "tokens the answer may have; unknown when the request does not say", _NUMBERS, lambda s: s.request.max_tokens),
    Variable("turns", "messages of the user", _NUMBERS, lambda s: sum(message.role == "user" for message in s.request.messages)),
    Variable("tools", "tools that are offered", _NUMBERS, lambda s: len(s.request.tools)),
    Variable("images", "parts of messages that are no text", _NUMBERS, lambda s: len(s.request.unreadable)),
    Variable("complexity", "0 to 1, as `hybrid route` shows it", _SHARES, lambda s: s.complexity),
    Variable("task", ", ".join(TASKS), TASKS, lambda s: task_of(s.said.last_task)),
    Variable("code", "program text is in the last task", _TRUTHS, lambda s: has_code(s.said.last_task)),
    Variable(
        "language",
        'two letters, such as "en"; unknown when the text does not show it',
        ("en", "de"),
        lambda s: language_of(s.said.last_task),
    ),
    Variable("user", "who asks", _TEXTS, lambda s: s.request.user),
    Variable("tenant", "for whom; unknown when not given", _TEXTS, lambda s: s.request.tenant),
    # the time
    Variable("hour", "0 to 23, local time", (0, 12, 23), lambda s: None if s.context.moment is None else s.context.moment.hour),
    Variable("weekday", "1 Monday to 7 Sunday", (1, 6, 7), lambda s: None if s.context.moment is None else s.context.moment.weekday),
    # the device
    Variable("edge_available", "a model answers on the device", _TRUTHS, lambda s: s.context.device.edge_available),
    Variable(
        "context_left", "tokens left in the device's context after prompt and answer; below 0: too long", (0, -(10**9), 1_000, 10**9), _room
    ),
    Variable("battery", "0 to 1; unknown on mains", _SHARES, lambda s: s.context.device.battery),
    Variable("thermal_headroom", "0 throttled to 1 cool", _SHARES, lambda s: s.context.device.thermal_headroom),
    Variable("memory_mb", "free memory in MB", _AMOUNTS, lambda s: _times(s.context.device.memory_free_bytes, 1e-6)),
    Variable(
        "load", "processes that wait for a processor of the device, per processor: 1 is busy", _AMOUNTS, lambda s: s.context.device.load
    ),
    # the cloud
    Variable("reachable", "the cloud answered the last probe", _TRUTHS, lambda s: s.context.link.reachable, cloud=True),
    Variable("rtt_ms", "round trip to the cloud", _AMOUNTS, lambda s: _times(s.context.link.rtt_s, 1e3), cloud=True),
    Variable("price_in", "of a million prompt tokens", _AMOUNTS, lambda s: _times(s.context.costs.price_in, PER), cloud=True),
    Variable("price_out", "of a million tokens of answers", _AMOUNTS, lambda s: _times(s.context.costs.price_out, PER), cloud=True),
    Variable("cost", "of the cloud's answer, in the currency of the prices", _AMOUNTS, _cost, cloud=True),
    Variable(
        "quota_left",
        "cloud tokens left to the user; unknown without a limit",
        (0.0, -1e9, 1_000.0, 1e9),
        lambda s: s.context.quota.available if s.context.quota.level == "user" else None,
        cloud=True,
    ),
)
CLOSED = ("task",)  # variables that have no other values than their samples
VARIABLES: Mapping[str, Variable] = {variable.name: variable for variable in _ALL}


class Values(dict[str, Value | None]):
    """The values of one decision, worked out when first asked for: `values[name]` is None when it is not known, and never raises."""

    __slots__ = ("scene",)

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def __missing__(self, name: str) -> Value | None:
        variable = VARIABLES.get(name)
        known = variable is not None and not (variable.cloud and self.scene.private)
        self[name] = value = variable.value(self.scene) if variable is not None and known else None
        return value


def _fitting(value: object, kind: type) -> Value | None:
    """`value` as CEL can hold it; None when it is of another type, or no finite number."""
    if kind is str and isinstance(value, str):
        value.encode()  # half of a surrogate pair is no text that CEL can hold, and its library would complain on stderr: raises
    if kind is str or kind is bool:
        return value if isinstance(value, (str, bool)) and isinstance(value, kind) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if kind is float:
        return float(value) if math.isfinite(value) else None
    return max(-MAX_INT, min(MAX_INT, value)) if isinstance(value, int) else None
