import asyncio
import gc
import threading
from contextlib import asynccontextmanager

import pytest
from hybrid.cloud.engine.engine import Engine
from hybrid.cloud.engine.messages import Draft, Verdict
from hybrid.cloud.engine.thread_client import ThreadEngineClient
from hybrid.shared_protocol.errors import ContextOverflow, Unavailable
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.shared_protocol.verify import prefix_hash
from hybrid.tests.cloud.engine.driving import GREEDY, add_of, engine_of, ids_of, prompts_of
from hybrid.tests.support.hash_executor import HashExecutor, continuation

PROMPTS = prompts_of(8)
LONG = SamplingParams(temperature=0, max_tokens=200, ignore_eos=True)


class Gate:
    """Lets an engine's steps through one by one."""

    def __init__(self) -> None:
        self._permits = threading.Semaphore(0)
        self.entered = threading.Semaphore(0)
        self.open = False

    def on_step(self, batch) -> None:
        self.entered.release()
        if not self.open:
            self._permits.acquire()

    async def begun(self) -> None:
        """Wait until the engine is inside a step."""
        await asyncio.to_thread(self.entered.acquire)

    def step(self) -> None:
        self._permits.release()

    def release(self) -> None:
        self.open = True
        self._permits.release(10)


@asynccontextmanager
async def client_of(engine: Engine, **options):
    client = ThreadEngineClient(engine, **options)
    try:
        yield client
    finally:
        await client.close()
        assert not [thread for thread in threading.enumerate() if thread is client._thread]


async def settled(client: ThreadEngineClient) -> None:
    """Wait until the engine's thread sleeps with nothing to do."""
    while client._alive or client.stats().running or client.stats().waiting or not client._inbox.empty():
        await asyncio.sleep(0.001)


async def read(stream) -> list:
    return [output async for output in stream]


async def test_answers_over_a_thread_are_those_of_the_engine() -> None:
    async with client_of(engine_of()) as client:
        said = await asyncio.gather(*(read(client.add(add_of(f"r{i}", prompt))) for i, prompt in enumerate(PROMPTS)))
        assert [ids_of(outputs) for outputs in said] == [continuation(prompt, GREEDY, 1) for prompt in PROMPTS]
        stats = client.stats()
        assert (stats.running, stats.waiting, stats.used, stats.healthy) == (0, 0, 0, True)


async def test_a_step_crosses_to_the_loop_in_one_call(monkeypatch) -> None:
    calls = []
    loop = asyncio.get_running_loop()
    through = loop.call_soon_threadsafe
    gate = Gate()
    async with client_of(engine_of(executor=HashExecutor(on_step=gate.on_step))) as client:
        readers = [asyncio.create_task(read(client.add(add_of(f"r{i}", prompt, LONG)))) for i, prompt in enumerate(PROMPTS[:4])]
        await asyncio.sleep(0)
        monkeypatch.setattr(loop, "call_soon_threadsafe", lambda f, *args: (calls.append(f == client._deliver), through(f, *args))[1])
        gate.release()
        await asyncio.gather(*readers)
        assert calls.count(True) <= client.stats().steps


async def test_the_thread_sleeps_while_there_is_nothing_to_do() -> None:
    engine = engine_of()
    steps, step = [], engine.step
    engine.step = lambda: (steps.append(1), step())[1]
    async with client_of(engine) as client:
        session = client.add(add_of("s", PROMPTS[0], remote=True))
        assert (await anext(session)).parked
        before = len(steps)
        await asyncio.sleep(0.05)
        assert len(steps) == before
        client.draft(Draft("s", 1, 9, prefix_hash(PROMPTS[0]), ()))
        assert isinstance((await anext(session)).answer, Verdict)
        await session.aclose()


@pytest.mark.parametrize("how", ["closed", "cancelled", "dropped"])
async def test_leaving_an_answer_aborts_its_request_before_the_next_step(how: str) -> None:
    gate = Gate()
    async with client_of(engine_of(executor=HashExecutor(on_step=gate.on_step))) as client:
        stream = client.add(add_of("r", PROMPTS[0], LONG))
        gate.step()
        await anext(stream)
        await gate.begun()
        await gate.begun()  # in the second step
        if how == "closed":
            await stream.aclose()
        elif how == "cancelled":
            reader = asyncio.create_task(read(stream))
            await asyncio.sleep(0)
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
        else:
            del stream
            gc.collect()
        gate.release()
        await settled(client)
        assert (client.stats().used, client.stats().running) == (0, 0)
        assert len(client._engine.executor.steps) == 2


async def test_a_stream_that_another_thread_collects_aborts_its_request() -> None:
    async with client_of(engine_of()) as client:
        holder = [client.add(add_of("r", PROMPTS[0], LONG))]
        await asyncio.to_thread(holder.clear)
        await settled(client)
        assert client.stats().used == 0


async def test_what_can_never_fit_is_refused_at_the_call() -> None:
    async with client_of(engine_of(max_model_len=10)) as client:
        with pytest.raises(ContextOverflow):
            client.add(add_of("r", range(1, 12)))


async def test_beyond_the_queue_requests_are_turned_away_with_a_time_to_come_back() -> None:
    gate = Gate()
    async with client_of(engine_of(executor=HashExecutor(on_step=gate.on_step), max_num_seqs=1), max_queue=2) as client:
        streams = [client.add(add_of(f"r{i}", PROMPTS[i])) for i in range(2)]
        with pytest.raises(Unavailable) as refused:
            client.add(add_of("r2", PROMPTS[2]))
        assert refused.value.retry_after_s == 1.0
        gate.release()
        await asyncio.gather(*map(read, streams))
        assert ids_of(await read(client.add(add_of("r2", PROMPTS[2])))) == continuation(PROMPTS[2], GREEDY, 1)


async def test_an_abort_during_a_step_drops_what_the_step_gives() -> None:
    gate = Gate()
    async with client_of(engine_of(executor=HashExecutor(on_step=gate.on_step))) as client:
        stream = client.add(add_of("r", PROMPTS[0], LONG))
        await gate.begun()
        await stream.aclose()
        gate.step()
        await settled(client)
        assert await read(stream) == []
        assert len(client._engine.executor.steps) == 1


async def test_a_broken_executor_ends_every_answer_and_the_client_takes_no_more() -> None:
    def on_step(batch) -> None:
        if len(executor.steps) == 2:
            raise RuntimeError("kernel")

    executor = HashExecutor(on_step=on_step)
    async with client_of(engine_of(executor=executor)) as client:
        said = await asyncio.gather(*(read(client.add(add_of(f"r{i}", prompt, LONG))) for i, prompt in enumerate(PROMPTS)))
        assert {outputs[-1].finish_reason for outputs in said} == {"error"}
        assert not client.stats().healthy
        with pytest.raises(Unavailable):
            client.add(add_of("late", PROMPTS[0]))


async def test_a_fault_outside_the_steps_hangs_nobody_either() -> None:
    client = ThreadEngineClient(engine_of())
    client._engine.stats = lambda: 1 / 0
    assert (await read(client.add(add_of("r", PROMPTS[0], LONG))))[-1].finish_reason == "error"
    assert not client.stats().healthy
    await client.close()


async def test_a_request_that_the_engine_refuses_late_ends_with_the_reason() -> None:
    async with client_of(engine_of()) as client:
        (output,) = await read(client.add(add_of("r", [999])))
        assert output.finish_reason == "error" and "below 48" in output.error


async def test_draining_waits_for_those_who_run_and_turns_others_away() -> None:
    gate = Gate()
    async with client_of(engine_of(executor=HashExecutor(on_step=gate.on_step))) as client:
        reader = asyncio.create_task(read(client.add(add_of("r", PROMPTS[0]))))
        await gate.begun()
        drained = asyncio.create_task(client.drain())
        await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            client.add(add_of("late", PROMPTS[0]))
        assert not drained.done()
        gate.release()
        await drained
        assert ids_of(await reader) == continuation(PROMPTS[0], GREEDY, 1)


async def test_closing_ends_what_runs() -> None:
    gate = Gate()
    client = ThreadEngineClient(engine_of(executor=HashExecutor(on_step=gate.on_step)))
    stream = client.add(add_of("r", PROMPTS[0], LONG))
    session = client.add(add_of("s", PROMPTS[0], remote=True))
    gate.step()
    await anext(stream)
    closing = asyncio.ensure_future(client.close())
    await asyncio.sleep(0)
    gate.release()
    await closing
    assert (await read(stream))[-1].finish_reason == "abort"
    assert (await read(session))[-1].finish_reason == "abort"
    with pytest.raises(Unavailable):
        client.add(add_of("late", PROMPTS[0]))


async def test_a_hundred_answers_left_at_random_leave_nothing() -> None:
    async with client_of(engine_of(blocks=60, max_num_seqs=8)) as client:

        async def ask(number: int) -> None:
            stream = client.add(add_of(f"r{number}", PROMPTS[number % 8], LONG if number % 2 else GREEDY))
            async for output in stream:
                if number % 2 and len(output.new_ids) and number % 3:
                    break
            await stream.aclose()

        await asyncio.gather(*(ask(number) for number in range(100) if number % 6 != 3))
        await settled(client)
        stats = client.stats()
        assert (stats.running, stats.waiting, stats.used, stats.free + stats.cached) == (0, 0, 0, stats.total)
        assert not client._streams and not client._unheard and stats.healthy
