"""Hybrid: one language model across a device and a cloud.

The public names load on first use, so that `import hybrid` and `hybrid --help` stay light.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .cloud.engine.llm import LLM as LLM
    from .edge.client import AsyncHybridClient as AsyncHybridClient
    from .edge.client import HybridClient as HybridClient
    from .router.policy.policy import Policy as Policy
    from .shared_protocol.errors import HybridError as HybridError
    from .shared_protocol.errors import RouteRefused as RouteRefused
    from .shared_protocol.sampling import SamplingParams as SamplingParams

__version__ = "0.1.0"

_HOMES = {
    "LLM": ".cloud.engine.llm",
    "AsyncHybridClient": ".edge.client",
    "HybridClient": ".edge.client",
    "HybridError": ".shared_protocol.errors",
    "Policy": ".router.policy",
    "RouteRefused": ".shared_protocol.errors",
    "SamplingParams": ".shared_protocol.sampling",
}
__all__ = ["LLM", "AsyncHybridClient", "HybridClient", "HybridError", "Policy", "RouteRefused", "SamplingParams", "__version__"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return __all__
