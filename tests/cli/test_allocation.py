"""What is freed is there for the next request, and so are the kernels that oneDNN has compiled."""

import os
import platform
import subprocess
import sys

import pytest

from nmt.cli.allocation import keep_kernels

CODE = """
import resource, sys
if sys.argv[1] == "keep":
    from nmt.cli.allocation import keep_freed_memory
    keep_freed_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
bytearray(2**26)
before = faults()
for _ in range(10):
    bytearray(2**26)
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_freed_memory_is_kept() -> None:
    def faults(how: str) -> int:
        ended = subprocess.run([sys.executable, "-c", CODE, how], capture_output=True, text=True, check=True)
        return int(ended.stdout)

    assert faults("keep") < faults("leave") / 5


def test_the_environment_has_the_last_word_on_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "7")
    keep_kernels()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "7"
