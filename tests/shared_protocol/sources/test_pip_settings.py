"""What pip is told about its indexes, as pip itself reads it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hybrid.shared_protocol.errors import ConfigError
from hybrid.shared_protocol.sources.pip_settings import PipSettings, pip_settings


@pytest.fixture
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of this machine's settings but `pip.conf` in the returned folder."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    return tmp_path


def test_pips_files_and_environment_are_read_with_the_environment_above(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = clean / "XDG_CONFIG_HOME/pip"
    user.mkdir(parents=True)
    (user / "pip.conf").write_text("[global]\nindex-url = https://user/simple\ntrusted-host = a\n    b:8080\n")
    (clean / "pip.conf").write_text("[global]\nextra-index-url = https://x/simple https://y/simple\n[install]\nindex-url = https://no\n")
    settings = pip_settings()
    assert settings.indexes == ("https://user/simple", "https://x/simple", "https://y/simple")
    assert settings.trusted_hosts == {"a", "b"}
    monkeypatch.setenv("PIP_INDEX_URL", "https://environment/simple")
    assert pip_settings().indexes[0] == "https://environment/simple"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert pip_settings().indexes == ()


def test_a_setting_may_be_written_with_underscores_as_pip_reads_it(clean: Path) -> None:
    (clean / "pip.conf").write_text("[global]\nindex_url = https://mirror/simple\n")
    assert pip_settings().indexes == ("https://mirror/simple",)


@pytest.mark.parametrize("setting", ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"])
def test_an_index_that_is_no_address_is_told_without_its_password(clean: Path, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv(setting, "https://me:s3cret@[mirror/simple")
    with pytest.raises(ConfigError, match="pip config list") as caught:
        pip_settings()
    assert "s3cret" not in str(caught.value)


def test_a_configuration_that_cannot_be_read_is_named(clean: Path) -> None:
    (clean / "pip.conf").write_text("index-url = no section\n")
    with pytest.raises(ConfigError, match=r"pip\.conf"):
        pip_settings()


def test_netrc_has_the_password_of_an_index(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (clean / "netrc").write_text("machine mirror login me password s3@cret\n")
    (clean / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(clean / "netrc"))
    settings = PipSettings(("https://mirror/simple",), (), frozenset())
    assert settings.access("https://mirror/simple")[1].headers["Authorization"] == "Basic bWU6czNAY3JldA=="
    assert settings.access("https://other/simple")[1].headers == {}
