"""The readers of the device's state, on trees written here."""

from __future__ import annotations

from pathlib import Path

import pytest
from hybrid.edge.device_state import LinuxDevice, SimulatedDevice
from hybrid.shared_protocol.runtime import DeviceState


def tree(root: Path, files: dict[str, str]) -> LinuxDevice:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return LinuxDevice(root)


def test_a_discharging_battery_and_a_warm_zone_are_read(tmp_path: Path) -> None:
    state = tree(
        tmp_path,
        {
            "proc/meminfo": "MemTotal:  8000 kB\nMemAvailable:  3000 kB",
            "sys/class/power_supply/BAT0/type": "Battery",
            "sys/class/power_supply/BAT0/capacity": "41",
            "sys/class/power_supply/BAT0/status": "Discharging",
            "sys/class/power_supply/hid/type": "Battery",
            "sys/class/power_supply/hid/scope": "Device",
            "sys/class/power_supply/hid/capacity": "99",
            "sys/class/power_supply/hid/status": "Discharging",
            "sys/class/thermal/thermal_zone0/temp": "50000",
            "sys/class/thermal/thermal_zone1/temp": "70000",
            "sys/class/thermal/thermal_zone1/trip_point_0_type": "passive",
            "sys/class/thermal/thermal_zone1/trip_point_0_temp": "80000",
            "sys/class/thermal/thermal_zone2/temp": "0",
        },
    ).read()
    assert state.memory_free_bytes == 3000 * 1024
    assert state.battery == 0.41
    assert state.thermal_headroom == 10 / 50  # 70 of 80 degrees, over the 50 from cool to hot


def test_on_mains_no_battery_is_reported(tmp_path: Path) -> None:
    files = {
        "sys/class/power_supply/BAT0/" + name: text for name, text in (("type", "Battery"), ("capacity", "41"), ("status", "Charging"))
    }
    assert tree(tmp_path, files).read().battery is None


def test_the_load_is_that_of_one_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert tree(tmp_path, {"proc/loadavg": "3.00 1.00 0.50 2/345 6789"}).read().load == 0.75
    assert tree(tmp_path, {"proc/loadavg": "?"}).read().load is None


def test_what_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    assert LinuxDevice(tmp_path).read() == DeviceState()
    assert tree(tmp_path, {"proc/meminfo": "MemAvailable: plenty", "sys/class/thermal/thermal_zone0/temp": "?"}).read() == DeviceState()


def test_a_simulated_device_is_as_it_was_set() -> None:
    device = SimulatedDevice()
    device.set(battery=0.1)
    assert device.read() == DeviceState(battery=0.1)
