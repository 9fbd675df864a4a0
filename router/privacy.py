"""What may leave the device: a verdict on the whole conversation, and the only way to a `Shareable`.

    RouteRequest ── clear() ──┬── Shareable[RouteRequest]    cloud clients accept nothing else
                              └── LocalOnly[RouteRequest]    has no way to become one

Everything that would be sent is searched, every time, in linear time. Whatever cannot be judged is sensitive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NoReturn, TypeVar, final
from weakref import WeakKeyDictionary

from ..shared_protocol.errors import NotShareable
from .detect.accounts import find_cards, find_ibans
from .detect.finding import Finding, resolve
from .detect.network import find_addresses, find_emails
from .detect.phones import find_phones
from .detect.scan import Scan
from .detect.secrets import find_secrets
from .detect.topics import find_topics
from .policy import Policy
from .request import RouteRequest
from .verdict import Verdict, strictest

Kind = Literal["email", "phone", "card", "iban", "ip", "secret", "topic", "unreadable"]
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# kind -> what is in a text; to raise is to call the text unreadable
DETECTORS: dict[Kind, Callable[[Scan], list[Finding]]] = {
    "email": find_emails,
    "phone": find_phones,
    "card": find_cards,
    "iban": find_ibans,
    "ip": find_addresses,
    "secret": find_secrets,
}


@dataclass(frozen=True, slots=True)
class Assessment:
    """The verdict on a text or conversation, and how many findings of each kind led to it. It holds none of the text."""

    verdict: Verdict
    findings: Mapping[str, int] = field(default_factory=dict)


def classify(text: str, policy: Policy) -> Assessment:
    """Judge one text. Never raises: a detector that fails makes the text `unreadable`."""
    findings = Counter(one.kind for one in search(text, policy))
    return Assessment(_verdict(findings, policy), findings)


def search(text: str, policy: Policy) -> list[Finding]:
    """All that the detectors find in one text; findings may overlap. Never raises: what cannot be judged is one finding `unreadable`
    over the whole text."""
    if len(text) > policy.privacy.max_characters:
        return [Finding("unreadable", 0, len(text))]
    scan = Scan(text)
    found: list[Finding] = []
    for detect in DETECTORS.values():
        try:
            found += detect(scan)
        except Exception:  # whatever a detector trips over must not let the text out
            found.append(Finding("unreadable", 0, len(text)))
    return found + find_topics(scan, policy.privacy.topic_words)


def find(text: str, policy: Policy) -> list[Finding]:
    """What may not leave the device as it is: the findings whose verdict is not `public`, in the order of the text, none overlapping."""
    return resolve(one for one in search(text, policy) if getattr(policy.privacy, one.kind) != "public")


def _verdict(findings: Mapping[str, int], policy: Policy, floor: Verdict = "public") -> Verdict:
    return strictest((floor, *(getattr(policy.privacy, kind) for kind in findings)))


def assess(request: RouteRequest, policy: Policy, floor: Verdict = "public") -> Assessment:
    """Judge a whole conversation: the strictest verdict of all its texts, and of `floor`, what was said before."""
    findings: Counter[str] = Counter()
    if request.unreadable:
        findings["unreadable"] = len(request.unreadable)
    length = 0
    for text in request.texts():
        length += len(text)
        if length > policy.privacy.max_characters:
            findings["unreadable"] += 1
            break
        findings.update(one.kind for one in search(text, policy))
    return Assessment(_verdict(findings, policy, floor), findings)


@final
class _Mint:
    """Held by this module only: who has it can make a Shareable."""

    __slots__ = ()


_MINT = _Mint()


@final
class Shareable(Generic[T_co]):
    """A value that privacy has cleared for the cloud. Only `clear` makes one; a forged one has no value."""

    __slots__ = ("__weakref__",)

    def __init__(self, value: T_co, *, mint: _Mint) -> None:
        if mint is not _MINT:
            raise NotShareable("only privacy.clear() makes a Shareable")
        _VALUES[self] = value

    @property
    def value(self) -> T_co:
        """What was cleared. Raises NotShareable when this object was not made by `clear`."""
        try:
            value: T_co = _VALUES[self]
        except KeyError:
            raise NotShareable("this Shareable was not made by privacy.clear()") from None
        return value

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
_VALUES: WeakKeyDictionary[Shareable[Any], Any] = WeakKeyDictionary()


@final
@dataclass(frozen=True, slots=True, repr=False)
class LocalOnly(Generic[T]):
    """A value that stays on the device."""

    value: T
    assessment: Assessment

    def __repr__(self) -> str:
        return f"LocalOnly({self.assessment.verdict})"


def clear(request: RouteRequest, policy: Policy, floor: Verdict = "public") -> Shareable[RouteRequest] | LocalOnly[RouteRequest]:
    """Search the whole request; mint a Shareable only when its verdict is `public`, the conversation's past (`floor`) included."""
    assessment = assess(request, policy, floor)
    if assessment.verdict == "public":
        return Shareable(request, mint=_MINT)
    return LocalOnly(request, assessment)


def require_shareable(value: object) -> None:
    """What every cloud client calls first. Raises NotShareable for anything that `clear` did not make."""
    if type(value) is not Shareable or value not in _VALUES:  # isinstance asks the object, which may lie
        raise NotShareable(f"{type(value).__name__} was not cleared by privacy; nothing was sent", hint="send decision.shareable")
