"""The SDK inside an event loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Literal

from ...router.plan import SpeculationFacts
from ...router.policy.policy import Policy
from ...router.policy.source import PolicySource
from ...router.quota.allowance import AllowanceBook
from ...router.quota.quotas import Quotas
from ...router.quota.store import FileStore
from ...shared_protocol.errors import ConfigError
from ...shared_protocol.model import Model
from ..device import Device
from ..device_state import DeviceReader, LinuxDevice
from ..drafter import Mutate
from ..open_runtime import RUNTIMES, RuntimeName
from ..transport.cloud import CloudClient
from ..transport.link_monitor import LinkMonitor
from .clouds import Cloud, Clouds, CloudTarget, targets_of
from .completions import AsyncCompletions
from .conversations import Conversations
from .meter import Meter
from .recorder import Recorder
from .services import Services


class AsyncChat:
    def __init__(self, completions: AsyncCompletions) -> None:
        self.completions = completions


class AsyncHybridClient:
    """Use inside one event loop. The device's model is loaded at the first request; close the client when done."""

    def __init__(
        self,
        edge: str | Path | Model | None = "smollm2-135m",
        cloud: str | CloudTarget | Sequence[str | CloudTarget] | None = None,
        *,
        api_key: str | None = None,
        policy: Policy | str | Path | None = None,
        user: str = "local",
        tenant: str | None = None,
        quota_file: str | Path | None = None,
        allowance: AllowanceBook | None = None,
        device_state: DeviceReader | None = None,
        runtime: RuntimeName = "native",
        context: int | None = None,
        threads: int | None = None,
        target: str | None = None,
        stall_s: float = 30.0,
        probe_timeout_s: float = 2.0,
        draft_len: int | None = None,
        on_link_loss: Literal["continue_local", "fail"] = "continue_local",
        speculation: SpeculationFacts | None = None,
        mutate_drafts: Callable[[], Mutate] | None = None,
        record: str | Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`edge`: a model of the store, a path, or a loaded model; None: no device. `cloud`: the server's address, or several servers in
        the order in which they are asked; None: no cloud. `api_key`: of every server that is given as an address alone.
        `policy`: a policy, "preset:NAME", or the path of a policy file, which is read again when it has changed; None: the default one.

        `user` and `tenant`: whose quota is used. `quota_file`: keeps what was used over restarts, and is shared by processes that name
        the same one; `allowance`: what may be used while that file cannot be.

        `runtime`: what computes on the device, "native", "llama_cpp" or "npu"; `target`: the chip of "npu", a preset or a TOML file.
        `context`: tokens the device holds at most (4,096, or what the model allows). `stall_s`: how long the cloud may be silent before and
        in a streamed or drafted answer, `probe_timeout_s` when it is asked whether it is there. `on_link_loss`: what becomes of an answer
        that both were writing. `draft_len`: tokens drafted per round instead of the plan's number. `mutate_drafts`: makes, per answer, what
        replaces drafted ids, to exercise rejection. `record`: a file to which each decision is appended, numbers and keyed hashes only, for
        `hybrid route replay`.
        """
        if edge is None and not cloud:
            raise ConfigError("neither a device model nor a cloud is given", hint="pass edge=MODEL, cloud=URL, or both")
        if runtime not in RUNTIMES:
            raise ConfigError(f"the runtime {runtime!r} is not known", param="runtime", hint=" or ".join(RUNTIMES))
        if target is not None and runtime != "npu":
            raise ConfigError(f"a target was given, and the runtime {runtime!r} has none", param="target", hint='runtime="npu" has')
        self._device = None if edge is None else Device(edge, runtime=runtime, context=context, threads=threads, target=target)
        source = PolicySource(policy)
        begun = source.current(clock())
        rest_s = begun.fallback.cooldown_s
        targets = []
        for one in targets_of(cloud, api_key):
            asked = CloudClient(one.url, one.api_key, stall_s=stall_s, probe_timeout_s=probe_timeout_s)
            targets.append(Cloud(one.name or "cloud", asked, LinkMonitor(asked, clock, keep_lost_s=rest_s), one.model))
        self._clouds = Clouds(targets, begun.fallback, clock)
        store = None if quota_file is None else FileStore(quota_file, clock=time.monotonic, sleep=time.sleep)
        quotas = Quotas(begun.quota, store, allowance=allowance, new_name=lambda: token_hex(8))
        lasting = store is not None or allowance is not None
        self._conversations = Conversations()
        services = Services(
            source=source,
            meter=Meter(quotas, wall if lasting else clock, on_disk=lasting),
            device=self._device,
            clouds=self._clouds,
            device_state=device_state or LinuxDevice(),
            clock=clock,
            wall=wall,
            given=speculation or SpeculationFacts(),
            draft_len=draft_len,
            on_link_loss=on_link_loss,
            mutate=mutate_drafts,
            recorder=None if record is None else Recorder(record, wall),
        )
        self._services = services
        self.chat = AsyncChat(AsyncCompletions(services, self._conversations, user, tenant))

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._services.policy()

    @property
    def policy_error(self) -> ConfigError | None:
        """What is wrong with the policy file as it is now, so that an earlier one stays in force; None when nothing is."""
        return self._services.source.error

    @property
    def bytes_sent(self) -> int:
        """Bytes given to the cloud's sockets since this client was made, probes of the link included."""
        return self._clouds.bytes_sent

    async def load(self) -> None:
        """Load the device's model now; raises what is wrong with it."""
        if self._device is not None:
            await self._device.load()

    def forget(self, conversation: str) -> None:
        """Drop what privacy remembers of a conversation that has ended, with the values behind its placeholders."""
        self._conversations.forget(conversation)

    async def close(self) -> None:
        """Stop what runs, which ends in ClientClosed, close connections, free the model; may be called again."""
        self._services.closed = True
        self._conversations.forget_all()
        await self._clouds.close()
        if self._device is not None:
            await self._device.close()
        self._services.meter.close()
        if self._services.recorder is not None:
            self._services.recorder.close()

    async def __aenter__(self) -> AsyncHybridClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()
