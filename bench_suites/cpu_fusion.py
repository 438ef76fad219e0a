"""cpu-fusion: what does fusing pointwise operations on the CPU gain, by NNC in TorchScript and by torch.compile?

The CPU fuser of TorchScript is switched by process-wide flags, so each variant sets them in its own child. It needs an
LLVM back end: without one, every scripted call after the override throws, so that is asked first.
"""

from __future__ import annotations

import shutil

from bench_suites.kit import Needs, Skipped, Suite, Unsupported, Variants, close, prepared

suite = Suite(
    "cpu-fusion",
    question="What does fusing pointwise operations on the CPU gain?",
    revision=1,
    reference="eager",
    child_seconds=0.6,  # tracing and compiling by torch.compile takes over a second, also with a warm cache
    needs=Needs(device="cpu", preload=("torch._dynamo", "torch._inductor.compile_fx")),
)

SIZES = {"n": [256, 65536, 1048576]}
QUICK = {"n": [65536]}
AGREE = close(rtol=1e-4, atol=1e-5)
WAYS = ("eager", "nnc", "unfused", "compile")


@suite.benchmark(axes=SIZES, quick=QUICK, agree=AGREE, variants=WAYS)
def chain(ctx, n):
    """Eight operations in a row on two inputs: add, multiply, relu."""

    def work(x, y):
        z = ((x + y) * y).relu()
        z = ((z + y) * x).relu()
        return (z + x) * y

    given = (ctx.torch.randn(n), ctx.torch.randn(n))
    yield _four_ways(ctx, work, given)


@suite.benchmark(axes=SIZES, quick=QUICK, agree=AGREE, variants=WAYS)
def swish(ctx, n):
    """x * sigmoid(x)."""

    def work(x):
        return x * x.sigmoid()

    x = ctx.torch.randn(n)
    yield _four_ways(ctx, work, (x,))


@suite.benchmark(axes=SIZES, quick=QUICK, agree=AGREE, variants=WAYS)
def gelu_tanh(ctx, n):
    """The tanh form of GELU as models write it by hand."""

    def work(x):
        return 0.5 * x * (1.0 + (0.7978845608 * (x + 0.044715 * x.pow(3.0))).tanh())

    x = ctx.torch.randn(n)
    yield _four_ways(ctx, work, (x,))


@suite.benchmark(axes=SIZES, quick=QUICK, agree=AGREE, variants=WAYS)
def layernorm_tail(ctx, n):
    """The pointwise end of a layer norm over rows of 64: centre, scale, weight, bias."""

    def work(x, mean, rstd, weight, bias):
        return (x - mean) * rstd * weight + bias

    rows = ctx.torch.randn(n // 64, 64)
    mean = rows.mean(1, keepdim=True)
    given = (rows, mean, 1.0 / rows.std(1, keepdim=True), ctx.torch.randn(64), ctx.torch.randn(64))
    yield _four_ways(ctx, work, given)


def _four_ways(ctx, work, given):
    return Variants(
        eager=lambda: work(*given),
        nnc=prepared(lambda: _scripted(ctx, work, given, fuse=True), compiles=True),
        unfused=prepared(lambda: _scripted(ctx, work, given, fuse=False), compiles=True),
        compile=prepared(lambda: _compiled(ctx, work, given), compiles=True, cached=True),
    )


def _scripted(ctx, work, given, fuse):
    torch = ctx.torch
    if fuse and not (hasattr(torch._C, "_llvm_enabled") and torch._C._llvm_enabled()):
        raise Unsupported("this build has no LLVM back end, so TorchScript cannot fuse on the CPU")
    torch._C._jit_set_profiling_executor(True)
    torch._C._jit_set_profiling_mode(True)
    torch._C._jit_set_texpr_fuser_enabled(fuse)
    torch._C._jit_override_can_fuse_on_cpu(fuse)
    script = torch.jit.script(work)
    for _ in range(5):  # two calls to profile, one to optimise, two to be sure
        script(*given)
    fused = "TensorExpr" in str(torch.jit.last_executed_optimized_graph())
    ctx.evidence("fused", fused)
    if fuse and not fused:
        raise Unsupported("the fuser is on and left this graph unfused")
    return lambda: script(*given)


def _compiled(ctx, work, given):
    torch = ctx.torch
    if not hasattr(torch, "compile"):
        raise Unsupported("torch.compile came with 2.0")
    if not any(shutil.which(name) for name in ("g++", "c++", "clang++")):
        raise Skipped("torch.compile needs a C++ compiler on the node; install g++")
    compiled = torch.compile(work, fullgraph=True, dynamic=False)
    for _ in range(2):
        compiled(*given)
    ctx.evidence("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"])
    return lambda: compiled(*given)
