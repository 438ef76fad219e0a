"""parametrizations: what does computing a weight from other tensors cost, against a plain layer with that very weight?

The plain layer of each child holds a copy of the parametrized layer's weight, so all variants must agree with it.
Pruning multiplies by a mask on every call: on a dense CPU it is an overhead, not a gain.
"""

from __future__ import annotations

from bench_suites.kit import Needs, Suite, Unsupported, Variants, close, prepared

suite = Suite(
    "parametrizations",
    question="What does computing a weight by a parametrization cost?",
    revision=1,
    reference="plain",
    needs=Needs(device="cpu", torch=">=1.9", preload=("torch.nn.utils.parametrize", "torch.nn.utils.prune")),
)

BATCH = 32
# Power iteration and Cayley's solve carry single-precision error; a wrong weight would be off by orders of magnitude
# more.
AGREE = close(rtol=2e-2, atol=2e-3)


@suite.benchmark(
    axes={"size": [64, 256], "mode": ["forward", "forward_backward"]},
    quick={"size": [256], "mode": ["forward_backward"]},
    agree=AGREE,
)
def linear(ctx, size, mode):
    """A square linear layer, its weight given by each parametrization."""
    torch = ctx.torch
    x = torch.randn(BATCH, size)
    plain = torch.nn.Linear(size, size)
    backward = mode == "forward_backward"

    def variant(parametrize):
        return prepared(lambda: _step(ctx, _copied(ctx, plain, parametrize(ctx, size)), x, backward))

    yield Variants(
        plain=_step(ctx, plain, x, backward),
        weight_norm_old=variant(_weight_norm_old),
        weight_norm=variant(_weight_norm),
        spectral_norm=variant(_spectral_norm),
        orthogonal_householder=variant(_orthogonal("householder")),
        orthogonal_matrix_exp=variant(_orthogonal("matrix_exp")),
        orthogonal_cayley=variant(_orthogonal("cayley")),
        symmetric=variant(_symmetric),
        mask=variant(_mask),
        prune_l1=variant(_prune_l1),
    )


@suite.benchmark(axes={"size": [64, 256]}, quick={"size": [256]}, agree=AGREE, reference="uncached")
def four_forwards(ctx, size):
    """Four forwards of one symmetric layer: each computes the weight anew, or parametrize.cached() computes it once."""
    torch = ctx.torch
    layer = _symmetric(ctx, size)
    x = torch.randn(BATCH, size)
    cached_block = torch.nn.utils.parametrize.cached

    def uncached():
        return [layer(x) for _ in range(4)]

    def cached():
        with cached_block():
            return [layer(x) for _ in range(4)]

    yield Variants(uncached=uncached, cached=cached)


def _step(ctx, layer, x, backward):
    """The timed call: a forward, or a forward and the gradients of all parameters (not accumulated)."""
    if not backward:
        return lambda: layer(x)
    torch = ctx.torch
    given = x.clone().requires_grad_(True)
    wanted = [given, *layer.parameters()]

    def step():
        y = layer(given)
        gradients = torch.autograd.grad(y.sum(), wanted)
        return y, gradients[0]  # the gradient of the input is the same for every way to hold a weight

    return step


def _copied(ctx, plain, layer):
    """Gives the plain layer the weight and bias of the parametrized one."""
    with ctx.torch.no_grad():
        plain.weight.copy_(layer.weight)
        plain.bias.copy_(layer.bias)
    return layer


def _weight_norm_old(ctx, size):
    return ctx.torch.nn.utils.weight_norm(ctx.torch.nn.Linear(size, size))


def _weight_norm(ctx, size):
    made = getattr(_parametrizations(ctx), "weight_norm", None)
    if made is None:
        raise Unsupported("torch.nn.utils.parametrizations has no weight_norm in this build")
    return made(ctx.torch.nn.Linear(size, size))


def _spectral_norm(ctx, size):
    made = getattr(_parametrizations(ctx), "spectral_norm", None)
    if made is None:
        raise Unsupported("torch.nn.utils.parametrizations has no spectral_norm in this build")
    layer = made(ctx.torch.nn.Linear(size, size))
    for _ in range(200):  # let the power iteration settle: it moves the weight a little at each call while training
        layer(ctx.torch.zeros(1, size))
    return layer


def _orthogonal(how):
    def make(ctx, size):
        torch = ctx.torch
        made = getattr(_parametrizations(ctx), "orthogonal", None)
        if made is None:
            raise Unsupported("torch.nn.utils.parametrizations has no orthogonal in this build; it came with 1.10")
        layer = made(torch.nn.Linear(size, size), orthogonal_map=how)
        with torch.no_grad():
            w = layer.weight.double()
            ctx.record("orthogonality_error", float((w.t() @ w - torch.eye(size, dtype=w.dtype)).abs().max()))
        return layer

    return make


def _parametrizations(ctx):
    found = getattr(ctx.torch.nn.utils, "parametrizations", None)
    if found is None:
        raise Unsupported("this build has no torch.nn.utils.parametrizations")
    return found


def _symmetric(ctx, size):
    torch = ctx.torch

    class Symmetric(torch.nn.Module):
        def forward(self, w):
            return w.triu() + w.triu(1).transpose(-1, -2)

    return _registered(ctx, size, Symmetric())


def _mask(ctx, size):
    torch = ctx.torch

    class Mask(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", (torch.rand(size, size) > 0.5).float())

        def forward(self, w):
            return w * self.kept

    return _registered(ctx, size, Mask())


def _registered(ctx, size, parametrization):
    torch = ctx.torch
    if not hasattr(torch.nn.utils, "parametrize"):
        raise Unsupported("this build has no torch.nn.utils.parametrize; it came with 1.9")
    layer = torch.nn.Linear(size, size)
    torch.nn.utils.parametrize.register_parametrization(layer, "weight", parametrization)
    return layer


def _prune_l1(ctx, size):
    return ctx.torch.nn.utils.prune.l1_unstructured(ctx.torch.nn.Linear(size, size), name="weight", amount=0.5)
