"""What drafting is charged for: the text is the user's, drafts in vain are counted apart."""

from __future__ import annotations

from hybrid.cloud.server.running import serve_in_background
from hybrid.edge.client import AsyncHybridClient, CloudTarget
from hybrid.edge.corruptor import Corruptor
from hybrid.edge.device_state import SimulatedDevice
from hybrid.router.policy.policy import Policy
from hybrid.router.quota.account import Account
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.real_cloud import cut_server, real_frontend

TEXT = """
[complexity]
cascade_from = 0.0
hard_from = 0.0
[speculation]
mode = "always"
draft_below = 1.0
max_draft = 4
[quota]
capacity = 1000
refill_per_s = 0
rejected_capacity = 20
rejected_refill_per_s = 0
"""


async def test_drafts_in_vain_cost_the_user_nothing_until_they_stop_the_drafting(smollm2: Model) -> None:
    def wrong() -> Corruptor:
        return Corruptor(1.0, 1, smollm2.card.vocab_size)  # every draft is

    account, ask = Account("local"), [{"role": "user", "content": "Name three rivers."}]
    options = {"context": 256, "device_state": SimulatedDevice(), "probe_timeout_s": 60, "clock": lambda: 0.0, "mutate_drafts": wrong}
    async with (
        real_frontend(smollm2) as frontend,
        serve_in_background(frontend) as server,
        AsyncHybridClient(smollm2, server.url, policy=Policy.parse(TEXT), **options) as client,  # type: ignore[arg-type]
    ):
        quotas, charged, routes = client._services.meter._quotas, 0, []
        for _ in range(4):
            answer = await client.chat.completions.create(messages=ask, max_tokens=8, seed=3)
            assert answer.hybrid is not None
            charged += answer.usage.total_tokens
            routes.append(answer.hybrid.route)
            assert quotas.view(account, 0.0).available == 1000 - charged
            assert answer.hybrid.attempts[-1].tokens == answer.usage.total_tokens
        assert routes[0] == "speculative"
        assert routes[-1] == "cloud"
        assert answer.hybrid.drafting is not None and "rejected" in answer.hybrid.drafting
        assert quotas.rejected(account, 0.0).available < 4


async def test_a_prompt_is_charged_once_per_session_and_again_where_its_state_was_lost(smollm2: Model) -> None:
    """A session's rounds share the prompt's state; a target that takes over after a lost link computes the prompt anew."""
    policy = Policy.parse(TEXT + '[fallback]\nmid_stream = "restart"\n')
    options = {"context": 256, "device_state": SimulatedDevice(), "probe_timeout_s": 60, "clock": lambda: 0.0, "on_link_loss": "fail"}
    async with real_frontend(smollm2) as frontend, cut_server(frontend, dies_at_round=3) as first, cut_server(frontend) as second:
        targets = [CloudTarget(first.url, name="a"), CloudTarget(second.url, name="b")]
        async with AsyncHybridClient(smollm2, targets, policy=policy, draft_len=1, **options) as client:  # type: ignore[arg-type]
            asked = [{"role": "user", "content": "Name three rivers."}]
            stream = await client.chat.completions.create(messages=asked, max_tokens=8, seed=3, stream=True)
            *_, last = [part async for part in stream]
            left = client._services.meter._quotas.view(Account("local"), 0.0).available
    assert last.hybrid is not None and last.usage is not None
    lost, answered = last.hybrid.attempts
    assert (lost.target, answered.target, answered.outcome) == ("a", "b", "answered")
    assert lost.tokens - last.usage.prompt_tokens in range(2, 5)  # two rounds of one drafted token: one or two new ones each
    assert answered.tokens == last.usage.total_tokens
    assert left == 1000 - lost.tokens - answered.tokens
