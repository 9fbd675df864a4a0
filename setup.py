"""Everything static is in pyproject.toml; here the native kernels are compiled, where a C++17 compiler works.

One call of $CXX (default c++, then g++, then clang++) compiles kernels/*.cpp for every instruction set; the CPU is asked at run time.
A failure is a warning: the package then installs without the library, the NumPy reference serves, and `hybrid doctor` says why.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

PACKAGE = "hybrid.npu_backends.cpu"
KERNELS = Path("npu_backends/cpu/kernels")
LIBRARY = "libhybrid_kernels.dylib" if sys.platform == "darwin" else "libhybrid_kernels.so"  # library.py looks for this name
FLAGS = ["-std=c++17", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden"]


class BuildKernels(build_ext):
    """Compiles a plain shared library that ctypes loads, not a Python extension: no headers of Python, one library for all versions."""

    def get_ext_filename(self, fullname: str) -> str:
        return os.path.join(*fullname.split(".")[:-1], LIBRARY)

    def build_extension(self, ext: Extension) -> None:
        target = Path(self.get_ext_fullpath(ext.name))
        target.unlink(missing_ok=True)  # a stale library must not outlive a failed build
        target.parent.mkdir(parents=True, exist_ok=True)
        problem = compile_kernels(ext.sources, target)
        if problem:
            self.warn(f"the native kernels were not built, the slower NumPy reference will serve: {problem}")


class BuildModules(build_py):
    """The root folder is the package `hybrid`; this file lies in it but is no part of it."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        return [found for found in super().find_package_modules(package, package_dir) if found[:2] != ("hybrid", "setup")]


class WheelOfAnyPython(bdist_wheel):
    """ctypes opens the library, so a wheel is bound to a platform and to no version of Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


def compile_kernels(sources: list[str], target: Path) -> str | None:
    """Compile into `target`; return what went wrong, or None."""
    command = compiler()
    if command is None:
        return "no C++ compiler found (set CXX)"
    try:
        done = subprocess.run([*command, *FLAGS, *sources, "-o", str(target)], capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode or not target.exists():
        return f"{shlex.join(command)} ended with {done.returncode}: {done.stderr.strip()[:2000]}"
    return None


def compiler() -> list[str] | None:
    if chosen := os.environ.get("CXX"):
        return shlex.split(chosen)
    return next(([name] for name in ("c++", "g++", "clang++") if shutil.which(name)), None)


def files(pattern: str) -> list[str]:
    return sorted(str(path) for path in KERNELS.glob(pattern))


setup(
    ext_modules=[Extension(f"{PACKAGE}.kernels", sources=files("*.cpp"), depends=files("*.h"), optional=True)],
    cmdclass={"build_ext": BuildKernels, "build_py": BuildModules, "bdist_wheel": WheelOfAnyPython},
)
