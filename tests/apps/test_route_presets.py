"""`hybrid route presets` names the policies that ship, and files that load as them."""

import json

from click.testing import CliRunner
from hybrid.apps.cli.route import route
from hybrid.router.policy.policy import Policy, presets


def test_every_preset_is_listed_with_a_line_and_a_file_that_is_the_same_policy() -> None:
    listed = json.loads(CliRunner().invoke(route, ["presets", "--json"]).stdout)["presets"]
    assert [one["name"] for one in listed] == [f"preset:{name}" for name in presets()]
    shown = CliRunner().invoke(route, ["presets"]).stdout
    for one in listed:
        assert one["hash"] == Policy.load(one["name"]).hash == Policy.load(one["path"]).hash
        assert len(one["about"]) > 20 and all(str(one[key]) in shown for key in ("name", "about", "path"))
