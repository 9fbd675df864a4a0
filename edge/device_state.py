"""What the device can bear now, for the router: read from Linux, or set by hand."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from ..shared_protocol.runtime import DeviceState

HOT_C, COOL_C = 95.0, 45.0  # a zone without a trip point counts as throttled at the first, and as cool at the second


class DeviceReader(Protocol):
    """Reads the state of the device; never raises, what it cannot find is None."""

    def read(self) -> DeviceState: ...


class SimulatedDevice(DeviceReader):
    """A device that is in the state it was told to be in."""

    def __init__(self, state: DeviceState | None = None) -> None:
        self.state = state or DeviceState()

    def set(self, **changes: object) -> None:
        self.state = replace(self.state, **changes)  # type: ignore[arg-type]

    def read(self) -> DeviceState:
        return self.state


class LinuxDevice(DeviceReader):
    """Memory and load from /proc, battery and temperatures from /sys; `root` stands in for / in tests."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def read(self) -> DeviceState:
        return DeviceState(
            memory_free_bytes=self._memory(),
            battery=self._battery(),
            thermal_headroom=self._thermal(),
            load=self._load(),
        )

    def _memory(self) -> int | None:
        """`MemAvailable`: what can be had without swapping, caches included."""
        for line in (_text(self._root / "proc/meminfo") or "").splitlines():
            key, _, rest = line.partition(":")
            fields = rest.split()
            if key == "MemAvailable" and fields and fields[0].isdigit():
                return int(fields[0]) * 1024
        return None

    def _load(self) -> float | None:
        """Processes that ran or waited to run in the last minute, per processor."""
        try:
            waiting = float((_text(self._root / "proc/loadavg") or "").split()[0])
        except (ValueError, IndexError):
            return None
        return max(0.0, waiting) / (os.cpu_count() or 1)

    def _battery(self) -> float | None:
        """The fullest battery that is discharging, 0..1; None on mains, and without one."""
        levels = []
        for supply in sorted(self._root.glob("sys/class/power_supply/*")):
            if _text(supply / "type") != "Battery" or _text(supply / "scope") == "Device":
                continue  # "Device" is a mouse or a pen, which does not feed this machine
            level = _number(supply / "capacity")
            if level is not None and _text(supply / "status") == "Discharging":
                levels.append(min(1.0, max(0.0, level / 100.0)))
        return max(levels, default=None)

    def _thermal(self) -> float | None:
        """The hottest zone's distance to its first passive or hot trip point, 0 (there) .. 1 (50 degrees below)."""
        headrooms = []
        for zone in sorted(self._root.glob("sys/class/thermal/thermal_zone*")):
            milli = _number(zone / "temp")
            if milli is None or not 0 < milli < 150_000:  # sensors that are off report 0, or nonsense
                continue
            limit = _trip_point(zone) or HOT_C
            headrooms.append(min(1.0, max(0.0, (limit - milli / 1000.0) / (HOT_C - COOL_C))))
        return min(headrooms, default=None)


def _trip_point(zone: Path) -> float | None:
    """Degrees Celsius at which the zone starts to throttle."""
    trips = []
    for kind in zone.glob("trip_point_*_type"):
        if _text(kind) in ("passive", "hot"):
            milli = _number(kind.with_name(kind.name.replace("_type", "_temp")))
            if milli is not None and milli > 0:
                trips.append(milli / 1000.0)
    return min(trips, default=None)


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None


def _number(path: Path) -> float | None:
    try:
        return float(_text(path) or "")
    except ValueError:
        return None
