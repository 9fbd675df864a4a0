"""The same client for programs without an event loop."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, TypeVar, Unpack, overload

from ...router.policy.policy import Policy
from ...shared_protocol.errors import ClientClosed, ConfigError, Unavailable
from ...shared_protocol.openai import ChatCompletion, ChatCompletionChunk
from .answer_stream import AnswerStream
from .async_client import AsyncHybridClient
from .completions import ChatOptions, Messages

T = TypeVar("T")


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="hybrid-client", daemon=True)
        self._thread.start()
        self._process = os.getpid()
        self._starting = threading.Lock()  # nothing is begun after `close`: nobody would wait for it to end
        self.closed = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for `work`; an interrupt from the keyboard cancels it first. Raises ClientClosed, and Unavailable after a fork."""
        if self._forked:
            work.close()
            raise Unavailable("this client was made before a fork: its threads are not in this process", hint="make another one")
        with self._starting:
            if self.closed:
                work.close()
                raise ClientClosed
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError:  # by `close`
            raise ClientClosed from None
        except BaseException:
            future.cancel()
            raise

    @property
    def _forked(self) -> bool:
        return os.getpid() != self._process

    def close(self) -> None:
        """End what other threads still wait for, and the loop. May be called again."""
        if self._forked:
            return
        with self._starting:
            if self.closed:
                return
            self.closed = True
        asyncio.run_coroutine_threadsafe(_end_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


async def _end_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Stream(Iterator[ChatCompletionChunk]):
    """An `AnswerStream` without async: iterate it, and leave it early with `close` or a `with` block."""

    def __init__(self, loop: _Loop, stream: AnswerStream) -> None:
        self._loop = loop
        self._stream = stream

    def __next__(self) -> ChatCompletionChunk:
        chunk = self._loop.run(self._next())
        if chunk is None:
            raise StopIteration
        return chunk

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop what computes for it; also from another thread than the one that reads."""
        with suppress(ClientClosed):
            self._loop.run(self._stream.close())

    async def _next(self) -> ChatCompletionChunk | None:
        try:
            return await anext(self._stream)
        except StopAsyncIteration:
            return None


class Completions:
    def __init__(self, loop: _Loop, client: AsyncHybridClient) -> None:
        self._loop = loop
        self._client = client

    @overload
    def create(self, *, messages: Messages, stream: Literal[False] = False, **options: Unpack[ChatOptions]) -> ChatCompletion: ...
    @overload
    def create(self, *, messages: Messages, stream: Literal[True], **options: Unpack[ChatOptions]) -> Stream: ...
    def create(self, *, messages: Messages, stream: bool = False, **options: Unpack[ChatOptions]) -> ChatCompletion | Stream:
        """See `AsyncCompletions.create`."""
        create = self._client.chat.completions.create
        if stream:
            return Stream(self._loop, self._loop.run(create(messages=messages, stream=True, **options)))
        return self._loop.run(create(messages=messages, stream=False, **options))


class Chat:
    def __init__(self, completions: Completions) -> None:
        self.completions = completions


class HybridClient:
    """Drives an `AsyncHybridClient` on one background event loop; may be called from several threads. Close it when done."""

    __signature__ = inspect.signature(AsyncHybridClient)  # what `help` and notebooks show

    def __init__(self, *args: Any, **options: Any) -> None:
        """Takes what `AsyncHybridClient` takes."""
        self._loop = _Loop()
        try:
            self._client = self._loop.run(self._make(args, options))
        except BaseException:
            self._loop.close()
            raise
        self.chat = Chat(Completions(self._loop, self._client))

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._client.policy

    @property
    def policy_error(self) -> ConfigError | None:
        """What is wrong with the policy file as it is now, so that an earlier one stays in force; None when nothing is."""
        return self._client.policy_error

    @property
    def bytes_sent(self) -> int:
        """Bytes given to the cloud's sockets since this client was made, probes of the link included."""
        return self._client.bytes_sent

    def load(self) -> None:
        """Load the device's model now; raises what is wrong with it."""
        self._loop.run(self._client.load())

    def forget(self, conversation: str) -> None:
        """Drop what privacy remembers of a conversation that has ended, with the values behind its placeholders."""
        self._client.forget(conversation)

    def close(self) -> None:
        """Stop what runs, which ends in ClientClosed, close connections, free the model; may be called again."""
        with suppress(Unavailable):
            self._loop.run(self._client.close())
        self._loop.close()

    def __enter__(self) -> HybridClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @staticmethod
    async def _make(args: tuple[Any, ...], options: dict[str, Any]) -> AsyncHybridClient:
        return AsyncHybridClient(*args, **options)
