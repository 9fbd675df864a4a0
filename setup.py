"""Everything static is in pyproject.toml; the native kernels are added here."""

from setuptools import setup

setup()
