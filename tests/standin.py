"""Tiny wheels that call themselves torch, so that making environments can be tested without a network.

They are real wheel files: uv resolves, installs and imports them like any other.
"""

from __future__ import annotations

import base64
import hashlib
import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

GIT = "0123456789abcdef0123456789abcdef01234567"
CONFIG = """PyTorch built with:
  - GCC 13.3
  - OpenMP 201511 (a.k.a. OpenMP 4.5)
  - Intel(R) MKL-DNN v3.7.1 (Git Hash 8d263e693366ef8db40acc569cc7d8edf644556d)
  - CPU capability usage: AVX2
  - Build settings: BLAS_INFO=mkl, BUILD_TYPE=Release
"""


def wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, str],
    requires: Iterable[str] = (),
    tag: str = "py3-none-any",
) -> Path:
    """Write ``<name>-<version>-<tag>.whl`` with these files into ``folder``."""
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    contents = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: standin\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text.encode())}\n" for path, text in contents.items())
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in {**contents, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    return made


def torch_wheel(
    folder: Path,
    version: str,
    *,
    says: str | None = None,
    cuda: str | None = None,
    body: str = "",
    requires: Iterable[str] = ("numpy",),
    tag: str = "py3-none-any",
) -> Path:
    """A torch of that version. ``says`` is its ``__version__`` (the version), ``body`` runs when it is imported."""
    files = {
        "torch/__init__.py": "from torch import __config__, cuda, version\n"
        f"__version__ = {says or version!r}\n{body}\n",
        "torch/version.py": f"git_version = {GIT!r}\ncuda = {cuda!r}\nhip = None\ndebug = False\n",
        "torch/cuda.py": "def is_available():\n    return False\n",
        "torch/__config__.py": f"def show():\n    return {CONFIG!r}\n"
        "def parallel_info():\n    return 'ATen parallel backend: OpenMP\\n'\n",
        "torch/lib/libtorch.so": "not a library",
    }
    return wheel(folder, "torch", version, files, requires, tag)


def stock(folder: Path, *versions: str) -> dict[str, str]:
    """Fill ``folder`` with these torches and what they need; the environment variables that make it the only source."""
    for version in versions:
        torch_wheel(folder, version)
    for name, version in (("numpy", "1.26.4"), ("numpy", "2.1.0"), ("setuptools", "69.5.1"), ("setuptools", "80.0.0")):
        wheel(folder, name, version, {f"{name}/__init__.py": f"__version__ = {version!r}\n"})
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "UV_CACHE_DIR": str(folder / "cache"),
    }


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
