"""A drafted answer: its tokens, where it stops, and what is told with it."""

from hybrid.shared_protocol import frames
from hybrid.shared_protocol.frames import pack_ids
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.shared_protocol.ticket import Claims, check
from hybrid.shared_protocol.verify import prefix_hash
from hybrid.tests.support.byte_tokenizer import EOS
from hybrid.tests.support.drafting import Device, opening
from hybrid.tests.support.drafting_cloud import PROMPT, SECRET, Cloud, started


async def test_right_drafts_wrong_drafts_and_plain_steps_give_the_cloud_s_text() -> None:
    device = await started(Cloud(text=b"Hello!"))
    first = await device.draft(b"Hel")
    assert (first.n_accepted, first.token, first.visible_len, first.finish) == (3, ord("l"), 4, None)
    second = await device.draft(b"xy")
    assert (second.n_accepted, second.token) == (0, ord("o"))
    third = await device.draft()
    assert (third.n_accepted, third.token) == (0, ord("!"))
    last = await device.draft((EOS, 5, 6))
    assert (last.n_accepted, last.token, last.visible_len, last.finish) == (1, None, 6, "stop")
    assert device.committed == (*b"Q:Hello!", EOS)


async def test_the_engine_is_given_the_prompt_the_seed_and_the_key_as_salt() -> None:
    cloud = Cloud()
    await started(cloud, temperature=0.5)
    (add,) = cloud.engine.added
    assert (add.prompt_ids, add.seed, add.cache_salt, add.remote) == (tuple(PROMPT), 7, "key", True)


async def test_max_tokens_ends_the_answer_with_length() -> None:
    device = await started(Cloud(), max_tokens=4)
    verdict = await device.draft(b"The END")
    assert (verdict.n_accepted, verdict.token, verdict.finish) == (4, None, "length")


async def test_a_stop_string_inside_the_accepted_run_cuts_it() -> None:
    cloud = Cloud(text=b"The END of it")
    device = await started(cloud, stop=("END",))
    verdict = await device.draft(b"The END of")
    assert (verdict.n_accepted, verdict.token, verdict.finish) == (7, None, "stop")
    assert verdict.visible_len == len("The ")
    assert cloud.engine.alive == 0  # the engine was told to stop


async def test_a_stop_string_that_the_cloud_s_own_token_completes_keeps_that_token() -> None:
    device = await started(Cloud(), stop=("END",))
    verdict = await device.draft(b"The EN")
    assert (verdict.n_accepted, verdict.token, verdict.finish, verdict.visible_len) == (6, ord("D"), "stop", 4)


async def test_what_may_become_a_stop_string_is_not_shown_yet() -> None:
    device = await started(Cloud(text=b"The EN!"), stop=("END",))
    assert (await device.draft(b"The E")).visible_len == len("The ")  # "EN" is held back
    assert (await device.draft()).visible_len == len("The EN!")


async def test_a_character_is_not_shown_before_it_is_whole() -> None:
    device = await started(Cloud(text="a😊b".encode()))
    assert (await device.draft("a😊".encode()[:3])).visible_len == 1
    assert (await device.draft()).visible_len == 5


async def test_log_probabilities_come_for_the_committed_tokens_only() -> None:
    device = await started(Cloud(), logprobs=1, stop=("END",))
    assert [p.token_id for p in (await device.draft(b"Thx")).logprobs] == list(b"The")
    verdict = await device.draft(b" END of")
    assert [p.token_id for p in verdict.logprobs] == list(b" END")
    assert verdict.logprobs[0] == frames.TokenLogprobs(ord(" "), -0.25, pack_ids(b" "), (-0.25,))


async def test_every_answer_carries_a_ticket_for_exactly_what_is_committed() -> None:
    cloud = Cloud()
    device = Device(await cloud.greeted(), opening())
    answers = [await device.open(max_tokens=9), await device.draft(b"The"), await device.draft(b"xx")]
    committed = [PROMPT, b"Q:The ", b"Q:The E"]
    for answer, ids in zip(answers, committed, strict=True):
        sampling = SamplingParams(max_tokens=9)
        claims = Claims("key", "toy-hash", "toy-1", 7, sampling, 2, len(ids), prefix_hash(ids), answer.expiry)
        assert check(SECRET, claims, answer.ticket, now=1.8e9 + 1000)
        assert answer.expiry == 1.8e9 + 1000 + 600 and answer.lease_s == 30
