"""One prompt for each way through the router, and the decision that it gets."""

from hybrid.router.decide import decide
from hybrid.router.decision import Decision
from hybrid.router.plan import SpeculationFacts
from hybrid.router.policy.policy import Policy
from hybrid.router.privacy import require_shareable
from hybrid.router.request import RouteContext, RouteRequest
from hybrid.shared_protocol.runtime import DeviceState, LinkState

ONLINE = LinkState(reachable=True)
OFFLINE = LinkState(reachable=False)
NO_DEVICE = DeviceState(edge_available=False)
DRAFTING = Policy.parse('[speculation]\nmode = "always"')
# One prompt for each way through the router, with the default policy and drafting switched on.
SIMPLE = "What is the capital of France?"
UNCERTAIN = "Explain why the sky is blue and compare it with a sunset."
DRAFTED = "Prove that the square root of two is irrational, step by step, and explain why each step is needed."
HARD = "Design and implement a lock-free queue in Rust, prove that it is linearizable, and analyse its complexity step by step."
PRIVATE = "Write a friendly reply to anna.smith@example.com: I will be ten minutes late."
PRIVATE_AND_HARD = f"My card is 4111 1111 1111 1111. {HARD}"


def run(prompt: object, **facts: object) -> Decision:
    context = RouteContext(**{"link": ONLINE, "policy": DRAFTING, "speculation": SpeculationFacts(), **facts})
    decision = decide(prompt if isinstance(prompt, RouteRequest) else RouteRequest.of(prompt), context)
    touches_cloud = decision.route in ("cloud", "cascade", "speculative")
    assert (decision.shareable is not None) == touches_cloud == (decision.cloud_tokens > 0)
    if decision.shareable is not None:
        require_shareable(decision.shareable)
        assert decision.scores.privacy in ("public", "redact")
        assert (decision.reason == "redacted") == bool(decision.replaced)
    return decision


def way(prompt: object, **facts: object) -> tuple[str, str, str]:
    decision = run(prompt, **facts)
    return decision.route, decision.reason, decision.rule
