"""The C kernels of a wheel: compiled for several instruction sets, so that it needs no compiler where it is installed."""

import platform
import re
import runpy
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FOLDER = "nmt/fast/kernels"


class KernelsHook(BuildHookInterface[Any]):
    """Called by hatchling: see `[tool.hatch.build.targets.wheel.hooks.custom]` in pyproject.toml.

    The wheel is for any system, and compiles the kernels on first use, if there is no GCC 12 or newer or no Linux with glibc. So
    does an editable installation.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        compiling = runpy.run_path(str(Path(self.root) / _FOLDER / "compiling.py"))
        instruction_sets = compiling["INSTRUCTION_SETS"]
        if version == "editable" or platform.libc_ver()[0] != "glibc" or not instruction_sets:
            return
        self.folder = TemporaryDirectory()
        library = Path(self.folder.name) / compiling["library_name"](instruction_sets)
        try:
            compiling["compile_library"](library, compiling["find_compiler"](), instruction_sets)
        except (OSError, subprocess.SubprocessError) as error:
            reason = (getattr(error, "stderr", None) or b"").decode(errors="replace") or error
            self.app.display_warning(
                f"The wheel will compile the kernels on first use, since this compiler does not: {reason}"
            )
            return
        build_data["force_include"][str(library)] = f"{_FOLDER}/{library.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(library)}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


def platform_tag(library: Path) -> str:
    """The tag for systems with a glibc as new as the newest function that the library calls (PEP 600)."""
    versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", library.read_bytes())
    major, minor = max((int(major), int(minor)) for major, minor in versions)
    return f"manylinux_{major}_{minor}_{platform.machine()}"
