"""What this build of PyTorch is: facts found by importing it, as a flat table of strings."""

from __future__ import annotations

import platform
import re
import sys
from typing import Dict


def probe() -> Dict[str, str]:
    """Version, git revision, accelerator, BLAS, OpenMP and LLVM of the torch of this interpreter. Raises
    ImportError.
    """
    import torch

    config = torch.__config__.show()
    parallel = torch.__config__.parallel_info() if hasattr(torch.__config__, "parallel_info") else ""
    facts = {
        "version": str(torch.__version__),
        "git_revision": str(getattr(torch.version, "git_version", "") or ""),
        "cuda": str(torch.version.cuda or ""),
        "hip": str(getattr(torch.version, "hip", "") or ""),
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "blas": _found(r"BLAS_INFO=(\w+)", config) or _found(r"(Intel\(R\) [^\n]*Math Kernel[^\n]*)", config),
        "openmp": _found(r"(OpenMP [^\n]*)", config),
        "mkldnn": _found(r"(Intel\(R\) MKL-DNN [^\n]*)", config),
        "cpu_capability": _found(r"CPU capability usage: (\w+)", config),
        "threads": _found(r"at::get_num_threads\(\) : (\d+)", parallel),
        "llvm": _llvm(torch),
        "numpy": _numpy(),
    }
    return {name: value for name, value in facts.items() if value}


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match.group(1).strip() if match else ""


def _llvm(torch: object) -> str:
    enabled = getattr(getattr(torch, "_C", None), "_llvm_enabled", None)
    return "" if enabled is None else ("yes" if enabled() else "no")


def _numpy() -> str:
    try:
        import numpy
    except ImportError:
        return ""
    return str(numpy.__version__)
