"""lrnn.jax against lrnn.reference: values, gradients, jit, vmap, refusals. Needs JAX, liblrnn-f64.so and `make jax`."""

import os
import pathlib
import shutil
import tempfile

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import lrnn.ops  # noqa: E402

# The libraries for CUDA are other files than those for the CPU, as in a wheel with CUDA: a copy, and for double none.
folder, path_here = tempfile.TemporaryDirectory(), lrnn.ops.library_path
there = [os.path.join(folder.name, name) for name in ("cuda.so", "cuda-f64.so")]
shutil.copy(path_here(), there[0])
lrnn.ops.library_path = lambda double=False, cuda=False: there[double] if cuda else path_here(double)

import lrnn.jax  # noqa: E402
from documented import faults  # noqa: E402
import lrnn.reference  # noqa: E402

passed = 0
random = np.random.default_rng(1)
B, T = 3, 5


def check(what, holds):
    global passed
    assert holds, what
    passed += 1
    print(f"  {what}")


def draw(*shape, low=-1.0, high=1.0):
    return jnp.array(random.uniform(low, high, shape))


def complex_of(*shape):
    return draw(*shape, low=-0.6, high=0.6) + 1j * draw(*shape, low=-0.6, high=0.6)


GRAPHS = [[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)], [(1, 2), (0, 1), (2, 4)], []]


def label(name, rest):
    return f"{name} { {k: x for k, x in rest.items() if k != 'links'} or ''}"


# name, arrays, arrays by name, other keywords
CASES = [
    ("scan_diag", [draw(B, T, 5), draw(B, T, 5)], {"h0": draw(B, 5)}, {}),
    ("scan_diag", [draw(5), draw(B, T, 5)], {}, {}),
    ("scan_diag_complex", [complex_of(B, T, 3), complex_of(B, T, 3)], {}, {}),
    ("scan_diag_complex", [complex_of(5), complex_of(B, T, 5)], {"h0": complex_of(B, 5)}, {}),
    ("scan_block", [draw(B, T, 2, 3, 3), draw(B, T, 2, 3)], {"h0": draw(B, 2, 3)}, {}),
    ("scan_block", [draw(B, T, 1, 2, 3, low=0.1), draw(B, T, 1, 3)], {}, {"gate": "relu"}),
    ("scan_companion", [draw(B, T, 4, 3), draw(B, T, 3)], {"s0": draw(B, 3, 3)}, {}),
    ("scan_companion", [draw(B, T, 3, 3), draw(B, T, 3)], {"s0": draw(B, 2, 3)}, {"observer": True, "gate": "sigmoid"}),
    ("scan_lstm", [draw(B, T, 12), draw(12, 3), draw(12)], {}, {}),
    ("scan_lstm", [draw(B, T, 12), draw(12, 3), draw(12)], {"h0": draw(B, 3), "c0": draw(B, 3)}, {}),
    (
        "scan_outer",
        [draw(B, T, 2, 3), draw(B, T, 2, 3), draw(B, T, 2, 4), draw(B, T, 2, low=0.2)],
        {"source": draw(B, T, 2), "c0": draw(B, 2, 3, 4)},
        {"scale": 0.5},
    ),
    ("scan_outer", [draw(B, T, 2, 3), draw(B, T, 2, 3), draw(B, T, 4, 2), draw(B, T, 4, low=0.2)], {}, {}),
    (
        "scan_delta",
        [draw(B, T, 2, 3), draw(B, T, 2, 3), draw(B, T, 2, 2)],
        {"beta": draw(B, T, 2, low=0.2, high=0.8), "decay": draw(B, T, 2, 3, low=0.5), "s0": draw(B, 2, 3, 2)},
        {},
    ),
    (
        "scan_delta",
        [draw(B, T, 2, 3), draw(B, T, 4, 3), draw(B, T, 4, 2)],
        {"read": draw(B, T, 4, 3) / 2},
        {"steps": 2},
    ),
    (
        "scan_plstm",
        [
            draw(B, T, 2, 2),
            draw(B, T, 2, 2),
            draw(B, T, 2, 3),
            draw(B, T, 2, 2),
            draw(B, T, 2, 2, 2) / 2,
            draw(B, T, 2, 2),
            draw(B, T, 2),
        ],
        {"c0": draw(B, 2, 2, 2, 3)},
        {"scale": 0.7},
    ),
    (
        "grid_scan",
        [draw(B, 2, 3, 2, 2), draw(B, 2, 3, 2, 2), draw(B, 2, 3, 2, 3), draw(B, 2, 3, 8, 4, 2) / 2, draw(B, 2, 3, 2)],
        {},
        {"scale": 0.7},
    ),
    (
        "dag_scan",
        [
            *(draw(B, 5, 2, 2), draw(B, 5, 2, 2), draw(B, 5, 2, 3)),
            *(draw(B, 5, 2), draw(B, 5, 2), draw(B, 4, 2), draw(B, 5, 2)),
        ],
        {},
        {"links": lrnn.jax.dag_links(GRAPHS), "tree": True},
    ),
    ("scan_flow", [draw(B, T, 2, 2, 3) / 3, draw(B, 3, 2)], {}, {}),
    ("scan_dplr", [draw(B, T, 3), draw(B, T, 2, 3), draw(B, T, 2, 3), draw(B, 3)], {}, {}),
    ("scan_hadamard", [draw(B, T, 4), draw(B, 4)], {}, {}),
    ("tree_solve", [complex_of(B, 7, 2), complex_of(B, 7, 2)], {}, {"beta": 0.4}),
]


def results(value):
    return [a for a in (value if isinstance(value, tuple) else (value,)) if a is not None]


assert {case[0] for case in CASES} == set(lrnn.jax.__all__) - {"LrnnError", "dag_links"}
for name, arrays, named, rest in CASES:
    function, naive, keys = getattr(lrnn.jax, name), getattr(lrnn.reference, name), list(named)
    everything = [*arrays, *named.values()]

    def run(*given):
        return results(function(*given[: len(arrays)], **dict(zip(keys, given[len(arrays) :])), **rest))

    expected = naive(*map(np.asarray, arrays), **{k: np.asarray(a) for k, a in named.items()}, **rest)
    expected = expected if isinstance(expected, tuple) else (expected,)
    found, jitted = run(*everything), jax.jit(run)(*everything)
    shared = name == "scan_outer" and arrays[0].shape[-2] < arrays[2].shape[-2]
    assert len(found) == len(jitted) == len(expected) - shared, name
    near = [abs(np.asarray(f) - e).max() < 1e-12 for f, e in zip(found, expected)]
    check(
        f"{label(name, rest)} is the naive form to 1e-12, jitted as well",
        all(near) and all((f == j).all() for f, j in zip(found, jitted)),
    )
    check_grads(run, everything, order=1, modes=["rev"], atol=1e-6, rtol=1e-6)
    check(f"{name} passes check_grads", True)

    def objective(*given):
        return sum((abs(r) ** 2).sum() for r in run(*given))

    several = [jnp.stack([a, a * 0.9]) for a in everything]
    gradients = jax.grad(objective, tuple(range(len(everything))))
    mapped, apart = jax.vmap(gradients)(*several), [gradients(*(a[i] for a in several)) for i in range(2)]
    assert len(mapped) == len(apart[0]) == len(apart[1]) == len(everything), name
    same = [jnp.allclose(m[i], a, rtol=0, atol=1e-12) for i in range(2) for m, a in zip(mapped, apart[i])]
    axes = (0, *[None] * (len(everything) - 1))
    one, each = jax.vmap(run, axes)(several[0], *everything[1:]), run(several[0][1], *everything[1:])
    assert len(one) == len(each) == len(found), name
    same += [jnp.allclose(o[1], e, rtol=0, atol=1e-12) for o, e in zip(one, each)]
    check(f"{name} under vmap is separate calls, gradients as well", all(same))


def packed_apart(name, arrays, named, rest, lengths):
    """Results and gradients of sequences one after another, and of each alone."""
    function, keys = getattr(lrnn.jax, name), list(named)
    shared = [name == "scan_lstm" and i > 0 or a.shape[0] != B for i, a in enumerate(arrays)]
    states = [a.ndim < 3 for a in arrays]  # y0 of the flows, beside tokens of three axes and more
    if name == "scan_flow":
        states = [False, True]
    everything = [*arrays, *named.values()]
    kinds = ["S" if s else "B" if b else "T" for s, b in zip(shared, states)]
    kinds += ["B" if k in ("h0", "s0", "c0") else "T" for k in keys]
    offsets = jnp.array(np.cumsum([0, *lengths]), jnp.int32)

    def run(given, **more):
        return results(function(*given[: len(arrays)], **dict(zip(keys, given[len(arrays) :])), **rest, **more))

    def together(*given):
        cut = {"T": lambda a: jnp.concatenate([a[b, :n] for b, n in enumerate(lengths)])}
        return run([cut.get(kind, lambda a: a)(a) for kind, a in zip(kinds, given)], offsets=offsets)

    def alone(*given):
        own = {"T": lambda a, b, n: a[b : b + 1, :n], "B": lambda a, b, n: a[b : b + 1], "S": lambda a, b, n: a}
        parts = [run([own[k](a, b, n) for k, a in zip(kinds, given)]) for b, n in enumerate(lengths)]
        n = 2 if name == "scan_lstm" else 1  # outputs with a row a token
        tokens = [jnp.concatenate([a.reshape(-1, *a.shape[2:]) for a in out]) for out in zip(*(p[:n] for p in parts))]
        return [*tokens, *(jnp.concatenate(last) for last in zip(*(p[n:] for p in parts)))]

    def objective(form):
        return lambda *given: sum((abs(r) ** 2).sum() for r in form(*given))

    every = tuple(range(len(everything)))
    return [[*form(*everything), *jax.grad(objective(form), every)(*everything)] for form in (jax.jit(together), alone)]


for case in CASES:
    if case[0] in ("grid_scan", "dag_scan", "tree_solve"):  # all their sequences have one length
        continue
    one, apart = packed_apart(*case, [4, 0, 5])
    assert len(one) == len(apart), case[0]
    same = [jnp.allclose(a, b, rtol=0, atol=1e-12) for a, b in zip(one, apart)]
    check(f"{label(case[0], case[3])} of unequal lengths is separate calls, gradients as well", all(same))

# With offsets values are kept: the array begins with the op's name, and a backward pass refuses another one. A sequence
# of over twice the mean length has no room in it, and its values are computed again.
for lengths in ([4, 0, 5], [9, 0, 0]):
    fits, offsets = max(lengths) <= 6, jnp.array(np.cumsum([0, *lengths]), jnp.int32)
    sizes = (("heads", 2), ("groups", 2), ("key", 3), ("value", 4), ("scale", 1.0))
    tokens = {"q": draw(9, 6), "k": draw(9, 6), "v": draw(9, 8), "decay": draw(9, 2)}
    inputs, outs = tuple((n, False) for n in tokens), (("o", False), ("last", False))
    grads = (("o", True), ("last", True))
    o, last, kept = lrnn.jax._pass("scan_outer", sizes, inputs, outs, lrnn.ops.FORWARD, True, True)(
        *tokens.values(), offsets
    )
    check(f"values are kept: {fits}", fits == (bytes(np.asarray(kept[:11])) == b"scan_outer\0"))
    back = lrnn.jax._pass("scan_outer", sizes, (*inputs, *outs, *grads), (("q", True),), lrnn.ops.BACKWARD, True, True)
    try:
        jax.block_until_ready(back(*tokens.values(), o, last, o, last, offsets, jnp.zeros_like(kept)))
        read = False
    except Exception as error:  # noqa: BLE001 JAX may wrap what the handler returns
        read = "not written by a forward pass" in str(error) or str(error)
    check(f"kept values are read: {fits}", read == fits)
one, apart = packed_apart(*next(c for c in CASES if c[0] == "scan_outer"), [5, 0, 0])
same = [jnp.allclose(a, b, rtol=0, atol=1e-12) for a, b in zip(one, apart)]
check("gradients of a sequence of over twice the mean length are those of a call alone", all(same))

# A gradient a row of outputs (jacrev) maps the backward pass alone, whose kept values are then those of one batch.
q, k, v, decay = draw(B, T, 2, 3), draw(B, T, 2, 3), draw(B, T, 2, 4), draw(B, T, 2, low=0.2)
rows = jax.jacrev(lambda v: lrnn.jax.scan_outer(q, k, v, decay)[0][:, -1].sum((1, 2)))(v)
row = jax.grad(lambda v: lrnn.jax.scan_outer(q, k, v, decay)[0][1, -1].sum())(v)
check("jacrev is a gradient a row", jnp.allclose(rows[1], row, rtol=0, atol=1e-12))
twice = jax.vmap(jax.vmap(jax.grad(lambda v: (lrnn.jax.scan_outer(q, k, v, decay)[0] ** 2).sum())))
grid = jnp.stack([jnp.stack([v, 2 * v]), jnp.stack([3 * v, 4 * v])])
check("vmap of vmap", jnp.allclose(twice(grid)[1, 0], 3 * twice(grid)[0, 0], rtol=0, atol=1e-12))

# Offsets may be mapped too: other lengths in each batch.
z, v, h0 = draw(2, 9, 2, 3, 3), draw(2, 9, 2, 3), draw(2, 3, 2, 3)
cuts = jnp.array([[0, 4, 4, 9], [0, 2, 8, 9]], jnp.int32)
of_one = jax.grad(
    lambda z, v, h0, cut: sum((r**2).sum() for r in lrnn.jax.scan_block(z, v, h0=h0, offsets=cut)), (0, 1, 2)
)
mapped = jax.jit(jax.vmap(of_one))(z, v, h0, cuts)
apart = [of_one(z[i], v[i], h0[i], cuts[i]) for i in (0, 1)]
same = [jnp.allclose(m[i], a, rtol=0, atol=1e-12) for i in (0, 1) for m, a in zip(mapped, apart[i])]
check("vmap over offsets under grad is separate calls", all(same))

# CUDA: what can be seen without a device. The call is lowered for it, and its handler refuses offsets.
here = jax.jit(lambda z, v: lrnn.jax.scan_block(z, v)[0]).trace(draw(B, T, 2, 3, 4), draw(B, T, 2, 4))
check("a call is lowered for CUDA", "@lrnn(" in here.lower(lowering_platforms=("cuda",)).as_text())

empty = lrnn.jax.scan_block(draw(0, 5, 2, 3, 4), draw(0, 5, 2, 4))[0]
check("an empty batch works", empty.shape == (0, 5, 2, 4))
half = lrnn.jax.scan_block(draw(B, T, 2, 3, 4).astype(jnp.bfloat16), draw(B, T, 2, 4).astype(jnp.bfloat16))[0]
check("bfloat16 works", half.dtype == jnp.bfloat16 and jnp.isfinite(half).all())
jax.ffi.register_ffi_target("lrnn_cuda", jax.ffi.pycapsule(lrnn.jax._handler.lrnn_jax_cuda), platform="cpu")


def by_cuda_handler(function):
    """Checks the message of the handler for CUDA to a call on the CPU."""
    call = jax.ffi.ffi_call
    jax.ffi.ffi_call = lambda name, outs: call("lrnn_cuda", outs)
    lrnn.jax._differentiable.cache_clear(), lrnn.jax._pass.cache_clear()
    try:
        jax.block_until_ready(function())
    finally:
        jax.ffi.ffi_call = call
        lrnn.jax._differentiable.cache_clear(), lrnn.jax._pass.cache_clear()


def flow_there(dtype):
    d, y0 = draw(T, 4).astype(dtype), draw(2, 4).astype(dtype)
    by_cuda_handler(lambda: lrnn.jax.scan_hadamard(d, y0, offsets=jnp.array([0, 3, T])))


def library_is_open():
    return there[0] in pathlib.Path("/proc/self/maps").read_text()


check("calls on the CPU open no library for CUDA", not library_is_open())
for words, wrong in (
    ("offsets are on a CUDA device", lambda: flow_there("float32")),
    (f"cannot load {there[1]} for CUDA: {there[1]}: cannot open", lambda: flow_there("float64")),
    ("expected float64(3, 5, 24)", lambda: lrnn.jax.scan_block(draw(B, T, 2, 3, 3), draw(B, T, 2, 4))),
    ("expected one of softmax", lambda: lrnn.jax.scan_block(draw(B, T, 2, 3, 4), draw(B, T, 2, 4), gate="soft")),
    ("dtype float16", lambda: lrnn.jax.scan_diag(draw(5).astype(jnp.float16), draw(B, T, 5).astype(jnp.float16))),
    ("offsets is float64", lambda: lrnn.jax.scan_hadamard(draw(T, 4), draw(B, 4), offsets=draw(B + 1))),
    (
        "offsets[2]=1, expected numbers from 0 that do not fall",
        lambda: lrnn.jax.scan_hadamard(draw(T, 4), draw(2, 4), offsets=jnp.array([0, 3, 1])),
    ),
    ("power of two", lambda: lrnn.jax.scan_hadamard(draw(B, T, 3), draw(B, 3))),
    (
        "differentiat",
        lambda: jax.grad(jax.grad(lambda a: lrnn.jax.scan_diag(a, draw(1, 2, 1))[0].sum() ** 3))(jnp.ones(1)),
    ),
):
    try:
        jax.block_until_ready(wrong())
        sentence = ""
    except Exception as error:  # noqa: BLE001 JAX may wrap what the handler returns
        sentence = str(error)
    check(f"refused: {words}", words in sentence)
check("a call on CUDA opens the library for it", library_is_open())
lacking = faults(lrnn.jax)
check(f"public functions have type hints and docstrings {lacking or ''}", not lacking)
print(f"{passed} passed with JAX {jax.__version__} and liblrnn {lrnn.version()}")
