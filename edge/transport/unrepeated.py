"""A stranger's server may repeat in an error what it was sent; our errors, and whoever logs them, do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...router.request import RouteRequest
from ...shared_protocol.errors import HybridError

RUN = 8  # characters in a row that a message and the request share, for it to count as a repetition
MAX_SEARCHED = 2**20  # characters of a request; of a longer one nothing is compared, and no message shown


@contextmanager
def unrepeated(request: RouteRequest) -> Iterator[None]:
    """Errors raised within lose the words that they share with `request`: the whole message, if there are any."""
    try:
        yield
    except HybridError as error:
        texts = [text for text in request.texts() if text != request.model]
        if _repeats(error.message, texts):
            error.message = f"{type(error).code}: the cloud's own words repeat the request and are left out"
            error.args = (error.message,)
        if error.param is not None and _repeats(error.param, texts):
            error.param = None
        if _repeats(error.code, texts):
            error.code = type(error).code
        raise


def _repeats(said: str, texts: list[str]) -> bool:
    if sum(map(len, texts)) > MAX_SEARCHED:
        return True
    runs = {said[start : start + RUN] for start in range(len(said) - RUN + 1)}
    return any(run in text for text in texts for run in runs)
