"""What may leave the device: a verdict on the whole conversation, and the only way to a `Shareable`.

    RouteRequest ── clear() ──┬── Shareable[RouteRequest]    cloud clients accept nothing else; as it is, or redacted
                              └── LocalOnly[RouteRequest]    has no way to become one

Everything that would be sent is searched, every time, in linear time. Whatever cannot be judged is sensitive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NoReturn, TypeVar, final
from weakref import WeakKeyDictionary

from ..shared_protocol.errors import NotShareable
from .detect.finding import Finding, resolve
from .detect.search import search
from .policy.policy import Policy
from .policy.tables import verdict_of
from .redact.fully import redact_fully
from .redact.mapping import RedactionMapping
from .request import RouteRequest
from .verdict import Verdict, strictest

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Assessment:
    """The verdict on a text or conversation, how many findings of each kind led to it, and which detectors failed. It holds none of the
    text."""

    verdict: Verdict
    findings: Mapping[str, int] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    replaced: Mapping[str, int] = field(default_factory=dict)  # placeholders of each kind in what may be sent


def classify(text: str, policy: Policy) -> Assessment:
    """Judge one text. Never raises: a detector that fails makes the text `unreadable`."""
    return _judged([text], policy, Counter(), "public")


def find(text: str, policy: Policy) -> list[Finding]:
    """What may not leave the device as it is: the findings whose verdict is not `public`, in the order of the text, none overlapping."""
    if len(text) > policy.privacy.max_characters:
        return [Finding("unreadable", 0, len(text))]
    (found,) = search([text], policy.privacy).findings
    return resolve(one for one in found if verdict_of(one.kind, policy.privacy) != "public")


def assess(request: RouteRequest, policy: Policy, floor: Verdict = "public") -> Assessment:
    """Judge a whole conversation: the strictest verdict of all its texts, and of `floor`, what was said before."""
    findings: Counter[str] = Counter()
    if request.unreadable:
        findings["unreadable"] = len(request.unreadable)
    return _judged(request.texts(), policy, findings, floor, request.readings())


def _judged(texts: Iterable[str], policy: Policy, findings: Counter[str], floor: Verdict, readings: Iterable[str] = ()) -> Assessment:
    """`findings` are what is known before the texts are searched. What is in a text and in its reading counts once."""
    readable: list[str] = []
    again: list[str] = []
    left = policy.privacy.max_characters
    for text in texts:
        left -= len(text)
        if left < 0:
            findings["unreadable"] += 1
            break
        readable.append(text)
    else:
        again = list(readings)
    found = search([*readable, *again], policy.privacy)
    findings.update(one.kind for text in found.findings[: len(readable)] for one in text)
    for kind in {one.kind for text in found.findings[len(readable) :] for one in text}:
        findings.setdefault(kind, 1)
    verdict = strictest((floor, *(verdict_of(kind, policy.privacy) for kind in findings)))
    return Assessment(verdict, findings, found.failed)


_PUBLIC = Assessment("public")


@final
class _Mint:
    """Held by this module only: who has it can make a Shareable."""

    __slots__ = ()


_MINT = _Mint()


@final
class Shareable(Generic[T_co]):
    """A value that privacy has cleared for the cloud. Only `clear` makes one; a forged one has no value."""

    __slots__ = ("__weakref__",)

    def __init__(self, value: T_co, assessment: Assessment = _PUBLIC, *, mint: _Mint) -> None:
        if mint is not _MINT:
            raise NotShareable("only privacy.clear() makes a Shareable")
        _VALUES[self] = value, assessment

    @property
    def value(self) -> T_co:
        """What was cleared: after a redaction, with its placeholders. Raises NotShareable when this object was not made by `clear`."""
        value: T_co = self._cleared()[0]
        return value

    @property
    def assessment(self) -> Assessment:
        """Of the request as it was: `public`, or `redact` with what stands in its place now. Raises NotShareable."""
        return self._cleared()[1]

    def _cleared(self) -> tuple[Any, Assessment]:
        try:
            return _VALUES[self]
        except KeyError:
            raise NotShareable("this Shareable was not made by privacy.clear()") from None

    def __repr__(self) -> str:
        return "Shareable(...)"

    def __copy__(self) -> Shareable[T_co]:
        return self

    def __deepcopy__(self, memo: object) -> Shareable[T_co]:
        return self

    def __reduce__(self) -> NoReturn:
        raise NotShareable("a Shareable cannot be pickled: clear the request where it is sent")

    def __init_subclass__(cls) -> NoReturn:
        raise NotShareable("Shareable has no subclasses")


# Values live here and not in the objects: one made behind __init__'s back finds nothing.
_VALUES: WeakKeyDictionary[Shareable[Any], tuple[Any, Assessment]] = WeakKeyDictionary()


@final
@dataclass(frozen=True, slots=True, repr=False)
class LocalOnly(Generic[T]):
    """A value that stays on the device."""

    value: T
    assessment: Assessment

    def __repr__(self) -> str:
        return f"LocalOnly({self.assessment.verdict})"


def clear(
    request: RouteRequest, policy: Policy, floor: Verdict = "public", mapping: RedactionMapping | None = None
) -> Shareable[RouteRequest] | LocalOnly[RouteRequest]:
    """Search the whole request, the conversation's past (`floor`) included.

    `public`: a Shareable of the request as it is. `redact`: a Shareable of one with placeholders, in which a second search has found
    nothing. Without a `mapping` for those, or with anything left to find, it stays on the device, as all else does. Never raises.
    """
    assessment = assess(request, policy, floor)
    if assessment.verdict == "public":
        return Shareable(request, assessment, mint=_MINT)
    if assessment.verdict == "redact":
        redacted = None if mapping is None else redact_fully(request, policy.privacy, mapping)
        if redacted is not None:
            return Shareable(redacted.request, replace(assessment, replaced=redacted.replaced), mint=_MINT)
        assessment = replace(assessment, verdict="local_only", failed=(*assessment.failed, "not redacted"))
    return LocalOnly(request, assessment)


def require_shareable(value: object) -> None:
    """What every cloud client calls first. Raises NotShareable for anything that `clear` did not make."""
    if type(value) is not Shareable or value not in _VALUES:  # isinstance asks the object, which may lie
        raise NotShareable(f"{type(value).__name__} was not cleared by privacy; nothing was sent", hint="send decision.shareable")
