"""A patched policy says what the old one said, but for the bands; its comments stay."""

import pytest
from hybrid.router.evaluate.patch import patched
from hybrid.router.evaluate.thresholds import with_threshold
from hybrid.router.policy.policy import Policy, presets
from hybrid.shared_protocol.errors import ConfigError

OURS = """# ours
version = "7"

[complexity]  # bands
cascade_from = 0.2
hard_from = 0.9   # high

[[rule]]
name = "long"
when = "tokens > 900"
route = "cloud"
"""


@pytest.mark.parametrize("text", ["", OURS, "[edge]\nmin_battery = 0.2", *presets().values()])
def test_the_bands_change_and_nothing_else(text: str) -> None:
    new = with_threshold(Policy.parse(text), 0.4321, 0.1)
    found = patched(text, new, "why\nand how")
    read = Policy.parse(found)
    assert read.hash == new.hash and read.version == new.version
    assert read.complexity.hard_from == 0.4321 and read.complexity.cascade_from == pytest.approx(0.3321)
    assert "# why\n# and how" in found


def test_comments_and_rules_stay() -> None:
    found = patched(OURS, with_threshold(Policy.parse(OURS), 0.5, 0.0), "why")
    assert "# ours" in found and "[complexity]  # bands" in found and "# high" not in found and "tokens > 900" in found


def test_bands_that_are_written_elsewhere_are_said() -> None:
    text = "complexity.cascade_from = 0.1\n"
    with pytest.raises(ConfigError, match="cannot be put into this file"):
        patched(text, with_threshold(Policy.parse(text), 0.5, 0.0), "why")
