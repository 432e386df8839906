"""What is freed is there for the next request, and so are the kernels that oneDNN has compiled."""

import os
import platform
import subprocess
import sys

import pytest

from nmt.cli.options import set_up
from nmt.runtime.device import PRODUCT_CACHES, bound_compiled_products

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


@pytest.mark.parametrize("trains", [False, True])
def test_training_keeps_fewer_kernels_than_the_rest(trains: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for cache in PRODUCT_CACHES:
        monkeypatch.setenv(cache, "")  # so that it is as before after the test
        monkeypatch.delenv(cache)
    set_up(trains=trains)
    bound_compiled_products()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == ("128" if trains else "4096")
