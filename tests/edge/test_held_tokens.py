"""What is kept of one prompt for the next."""

from __future__ import annotations

from hybrid.edge.held_tokens import HeldTokens
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.scripted_client import ask, client_of, well
from hybrid.tests.support.toy_runtime import ToyRuntime, toy_logits

TOGETHER = '[complexity]\ncascade_from = 0.0\nhard_from = 0.0\n[speculation]\nmode = "always"\ndraft_below = 1.0\n'


class OneWayRuntime(ToyRuntime):
    """Keeps no past to go back to."""

    def __init__(self) -> None:
        super().__init__()
        self.can_truncate = False

    def truncate(self, length: int) -> None:
        assert length in (0, len(self.held))
        super().truncate(length)


def test_the_shared_prefix_is_kept_but_for_the_last_token() -> None:
    held = HeldTokens(ToyRuntime())
    held.extend([1, 2, 3, 4])
    assert held.keep_common_prefix([1, 2, 9, 9]) == 2
    assert held.ids == [1, 2]
    assert held.keep_common_prefix([1, 2]) == 1


def test_a_runtime_that_cannot_go_back_goes_on_or_begins_anew() -> None:
    held = HeldTokens(OneWayRuntime())
    held.extend([1, 2, 3])
    assert held.keep_common_prefix([1, 2, 3, 4]) == 3
    assert held.keep_common_prefix([1, 2, 9, 9]) == 0
    assert held.length == 0
    assert held.extend([1, 2]).tolist() == [toy_logits([1, 2]).tolist()]


async def test_a_device_that_cannot_take_back_does_not_draft(tiny_llama: Model) -> None:
    async with client_of(tiny_llama, TOGETHER, well, context=256) as (client, server):
        await client.load()
        assert client._device is not None
        client._device.session.held._runtime.can_truncate = False
        answer = await ask(client)
    assert answer.hybrid is not None
    assert (answer.hybrid.route, answer.hybrid.drafting) == ("cloud", "device and cloud cannot speculate together")
    assert not any(request.path == "/v1/speculate" for request in server.requests)
