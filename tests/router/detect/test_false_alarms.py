"""How often all detectors together are wrong about what programs write."""

import random
import uuid
from datetime import UTC, datetime

from hybrid.router.detect.registry import detectors_of
from hybrid.router.detect.scan import Scan
from hybrid.router.policy.policy import Policy


def test_guids_timestamps_and_order_numbers_alarm_less_than_once_in_a_hundred() -> None:
    source = random.Random(5)
    rules, _ = detectors_of(Policy.default().privacy)

    def moment() -> datetime:
        return datetime.fromtimestamp(source.randrange(2 * 10**9), UTC)

    makers = {
        "guid": lambda: str(uuid.UUID(int=source.getrandbits(128), version=4)),
        "ten digits": lambda: f"{source.randrange(10**10):010}",
        "seconds": lambda: str(source.randrange(10**9, 2 * 10**9)),
        "milliseconds": lambda: str(source.randrange(10**12, 2 * 10**12)),
        "iso": lambda: moment().isoformat(),
        "plain": lambda: f"{moment():%Y-%m-%d %H:%M:%S}",
        "german": lambda: f"{moment():%d.%m.%Y %H:%M}",
        "decimal": lambda: f"{source.randrange(1000)}.{source.randrange(10**9):09}",
        "two numbers": lambda: f"{source.randrange(100, 10000)} {source.randrange(100, 10000)}",
        "order of 3-7-7": lambda: f"{source.randrange(100, 1000)}-{source.randrange(10**7):07}-{source.randrange(10**7):07}",
        "hash": lambda: f"{source.getrandbits(160):040x}",
    }
    for name, make in makers.items():
        for sentence in ("The id is {}.", "Order number: {}", "Call the service with id {} now."):
            scans = [Scan(sentence.format(make())) for _ in range(300)]
            alarms = sum(any(rule.find(scan) for rule in rules) for scan in scans)
            assert alarms < 3, (name, sentence, alarms)
