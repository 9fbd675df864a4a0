"""An error that travelled is the error that was raised."""

from __future__ import annotations

import json
import math

import pytest
from hybrid.edge.transport.remote_errors import error_in_stream, error_of, error_of_code, may_fall_back
from hybrid.shared_protocol import errors
from hybrid.shared_protocol.compile_errors import DoesNotFit
from hybrid.shared_protocol.errors import HybridError


def sent(error: HybridError) -> bytes:
    return json.dumps({"error": {"message": str(error), "type": error.type, "param": error.param, "code": error.code}}).encode()


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidRequest("temperature must be lower", param="temperature"),
        errors.UnsupportedParameter("no", param="tools"),
        errors.AuthenticationError("who is it"),
        errors.ModelNotFound("no such model", param="model"),
        errors.FingerprintMismatch("a1 here, b2 there"),
        errors.QuotaExceeded("too much"),
        errors.Unavailable("draining"),
        errors.EngineFailed("it broke"),
        DoesNotFit("too large"),
    ],
)
def test_class_code_param_and_sentence_come_back(error: HybridError) -> None:
    again = error_of(error.status, sent(error), "47")
    assert type(again) is type(error)
    assert (again.code, again.param, str(again), again.retry_after_s) == (error.code, error.param, str(error), 47.0)


def test_a_context_overflow_comes_back_with_its_numbers() -> None:
    again = error_of(400, sent(errors.ContextOverflow(asked=8410, limit=8192)))
    assert isinstance(again, errors.ContextOverflow)
    assert (again.asked, again.limit) == (8410, 8192)


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"error": "Unauthorized"}', b"[1]", b'{"error": {}}', b"\xff"])
@pytest.mark.parametrize(("status", "kind"), [(401, errors.AuthenticationError), (429, errors.QuotaExceeded), (502, errors.Unavailable)])
def test_a_stranger_s_answer_is_typed_by_its_status(body: bytes, status: int, kind: type[HybridError]) -> None:
    error = error_of(status, body)
    assert type(error) is kind
    assert error.status == status


def test_an_unknown_code_and_status_are_kept() -> None:
    error = error_of(418, b'{"error": {"message": "short and stout", "code": "teapot"}}')
    assert (error.status, error.code, str(error)) == (418, "teapot", "short and stout")


def test_a_known_code_under_another_status_does_not_change_the_status() -> None:
    assert error_of(400, b'{"error": {"message": "m", "code": "unavailable"}}').status == 400


@pytest.mark.parametrize("said", ["Wed, 21 Oct 2026 07:28:00 GMT", "inf", "nan", "1e999", ""])
def test_a_retry_after_that_is_no_number_of_seconds_reads_as_not_given(said: str) -> None:
    assert error_of(429, b"", said).retry_after_s is None


@pytest.mark.parametrize("said", [math.inf, math.nan])
def test_neither_does_that_of_a_frame(said: float) -> None:
    assert error_of_code("quota_exceeded", "wait", said).retry_after_s is None


def test_an_event_is_an_error_only_with_an_envelope() -> None:
    assert error_in_stream(b'{"id": "x", "choices": []}') is None
    error = error_in_stream(b'{"error": {"message": "it broke", "code": "engine_failed"}}')
    assert isinstance(error, errors.EngineFailed)


@pytest.mark.parametrize("code", ["cancelled", "not_shareable", "invalid_config"])
def test_a_cloud_cannot_say_what_only_this_side_knows_of_itself(code: str) -> None:
    error = error_of(500, json.dumps({"error": {"message": "m", "code": code}}).encode())
    assert type(error) is HybridError
    assert may_fall_back(error)
    assert type(error_of_code(code, "m")) is errors.ProtocolError


def test_a_status_as_the_code_of_an_event_is_the_status() -> None:
    error = error_in_stream(b'{"error": {"message": "slow down", "code": 429}}')
    assert isinstance(error, errors.QuotaExceeded)


def test_only_faults_that_are_not_the_request_s_own_fall_back() -> None:
    assert [may_fall_back(e("m")) for e in (errors.QuotaExceeded, errors.Unavailable, errors.CloudUnreachable)] == [True] * 3
    assert [may_fall_back(e("m")) for e in (errors.InvalidRequest, errors.AuthenticationError, errors.Conflict)] == [False] * 3
    assert [may_fall_back(e) for e in (errors.ConfigError("m"), errors.ClientClosed())] == [False] * 2
