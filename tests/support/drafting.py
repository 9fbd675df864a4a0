"""A device reduced to its frames: it sends windows that follow what it knows to be committed, and takes the verdicts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hybrid.cloud.server.speculate.handler import SpeculateHandler
from hybrid.shared_protocol import frames
from hybrid.shared_protocol.frames import pack_ids
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.shared_protocol.verify import prefix_hash


def opening(prompt: Sequence[int] = b"Q:", **changes: object) -> frames.Open:
    fields = {
        "model": "toy",
        "fingerprint": "bytes",
        "sampling": SamplingParams(),
        "seed": 7,
        "lease_s": 0,
        "prompt_len": len(prompt),
        "ids": pack_ids(prompt),
    }
    return frames.Open(**{**fields, **changes})


class Device:
    """`prompt` must be that of `opening`."""

    def __init__(self, handler: SpeculateHandler, opening: frames.Open, prompt: Sequence[int] = b"Q:") -> None:
        self.handler = handler
        self.committed = tuple(prompt)
        self.round = 0
        self.session = b""
        self._opening = opening

    async def open(self, **sampling: object) -> frames.Opened:
        changes = {"sampling": SamplingParams(**sampling)} if sampling else {}
        (opened,) = await self.handler.handle(msgspec.structs.replace(self._opening, **changes))
        assert isinstance(opened, frames.Opened), opened
        self.session = opened.session
        return opened

    def window(self, ids: Sequence[int] = (), **changes: object) -> frames.Draft:
        fields = {
            "session": self.session,
            "round": self.round + 1,
            "base_len": len(self.committed),
            "prefix_hash": prefix_hash(self.committed),
            "ids": pack_ids(ids),
        }
        return frames.Draft(**{**fields, **changes})

    async def draft(self, ids: Sequence[int] = ()) -> frames.Verdict:
        (verdict,) = await self.handler.handle(self.window(ids))
        assert isinstance(verdict, frames.Verdict), verdict
        self.round += 1
        self.committed += tuple(ids)[: verdict.n_accepted] + (() if verdict.token is None else (verdict.token,))
        assert verdict.committed_len == len(self.committed)
        return verdict
