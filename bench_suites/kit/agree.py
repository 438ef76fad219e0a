"""Does a variant do the same work? Its output is compared with the reference variant's before it is timed."""

from __future__ import annotations

import math
from typing import Any, Callable, Optional


def close(rtol: float = 1e-4, atol: float = 1e-5) -> Callable[[Any, Any, Any], Optional[str]]:
    """Outputs agree when every element differs by at most ``atol + rtol * |reference|``.

    The returned function takes (torch, reference output, variant output) and gives None, or a sentence that says where
    they differ. Outputs are tensors, numbers, strings, None, or tuples, lists and dicts of these.
    """

    def agree(torch: Any, want: Any, got: Any) -> Optional[str]:
        return _differ(torch, want, got, rtol, atol, "the output")

    return agree


def _differ(torch: Any, want: Any, got: Any, rtol: float, atol: float, where: str) -> Optional[str]:
    if isinstance(want, torch.Tensor) and isinstance(got, torch.Tensor):
        return _tensors_differ(torch, want, got, rtol, atol, where)
    if isinstance(want, dict) and isinstance(got, dict):
        if sorted(want) != sorted(got):
            return f"{where} has the keys {sorted(got)} instead of {sorted(want)}"
        pairs = [(want[k], got[k], f"{where}[{k!r}]") for k in want]
    elif isinstance(want, (tuple, list)) and isinstance(got, (tuple, list)):
        if len(want) != len(got):
            return f"{where} has {len(got)} parts instead of {len(want)}"
        pairs = [(w, g, f"{where}[{i}]") for i, (w, g) in enumerate(zip(want, got))]
    elif isinstance(want, (int, float)) and isinstance(got, (int, float)):
        return None if _numbers_agree(want, got, rtol, atol) else f"{where} is {got!r} instead of {want!r}"
    else:
        same = type(want) is type(got) and want == got
        return None if same else f"{where} is a {type(got).__name__} unlike the reference's {type(want).__name__}"
    for w, g, place in pairs:
        found = _differ(torch, w, g, rtol, atol, place)
        if found:
            return found
    return None


def _numbers_agree(want: float, got: float, rtol: float, atol: float) -> bool:
    if math.isinf(want) or math.isinf(got):
        return want == got
    if math.isnan(want) or math.isnan(got):
        return math.isnan(want) and math.isnan(got)
    return abs(got - want) <= atol + rtol * abs(want)


def _tensors_differ(torch: Any, want: Any, got: Any, rtol: float, atol: float, where: str) -> Optional[str]:
    if want.shape != got.shape:
        return f"{where} has the shape {tuple(got.shape)} instead of {tuple(want.shape)}"
    if want.dtype != got.dtype:
        return f"{where} has the type {got.dtype} instead of {want.dtype}"
    if want.numel() == 0:
        return None
    want, got = (_plain(torch, side) for side in (want, got))
    if bool((torch.isnan(want) != torch.isnan(got)).any()):
        return f"{where} has NaN where the reference has none, or the reverse"
    gap = (got - want).abs() - (atol + rtol * want.abs())
    infinite = torch.isinf(want) | torch.isinf(got)
    # infinity minus infinity says nothing: where a side is infinite, only the same infinity agrees
    gap = torch.where(infinite, (want != got).to(gap.dtype), gap)
    gap = torch.where(torch.isnan(gap), torch.full_like(gap, -1.0), gap)  # NaN in both places
    worst = int(gap.argmax())
    if float(gap.reshape(-1)[worst]) <= 0:
        return None
    a, b = float(want.reshape(-1)[worst]), float(got.reshape(-1)[worst])
    where_worst = f"element {worst}: {b:.6g} instead of {a:.6g}"
    return f"{where} differs from the reference variant's by {abs(b - a):.3g} ({where_worst})"


def _plain(torch: Any, tensor: Any) -> Any:
    """A real tensor of double precision on the CPU; a complex one becomes its two parts."""
    tensor = tensor.detach().to("cpu")
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj() if hasattr(tensor, "resolve_conj") else tensor)
    return tensor.to(torch.float64)
