"""Compares the operators of lrnn.torch with lrnn.reference, with finite differences, and with what PyTorch asks of one.

    PYTHONPATH=python LRNN_LIBRARY=./liblrnn.so LRNN_LIBRARY_F64=./liblrnn-f64.so python3 tests/library/check_torch.py

Needs PyTorch and NumPy. Prints a line a check, and fails at the first one that does not hold.
"""

import sys

import numpy as np
import torch

import lrnn
import lrnn.ops
import lrnn.reference
import lrnn.torch
from documented import faults

B, T = 3, 6
passed = 0


def check(what, holds):
    global passed
    if not holds:
        sys.exit(f"check_torch.py: {what} does not hold")
    passed += 1
    print(f"  {what}")


def draw(*shape, low=-1.0, high=1.0, seed=[0]):
    seed[0] += 1
    generator = torch.Generator().manual_seed(seed[0])
    return low + (high - low) * torch.rand(*shape, generator=generator, dtype=torch.float64)


def complex_of(*shape, size=0.7):
    return torch.complex(draw(*shape, low=-size, high=size), draw(*shape, low=-size, high=size))


# Graphs have at most 5 edges and 4 pairs; a multitree leaves out a pair of the first graph.
GRAPHS = [[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)], [(1, 2), (0, 1), (2, 4)], []]


def label(name, rest):
    return f"{name} { {k: x for k, x in rest.items() if k != 'links'} or ''}"


# name, positional tensors, keyword tensors, other keywords
CASES = [
    ("scan_diag", [draw(B, T, 5), draw(B, T, 5)], {"h0": draw(B, 5)}, {}),
    ("scan_diag", [draw(5), draw(B, T, 5)], {}, {}),
    ("scan_diag_complex", [complex_of(B, T, 3), complex_of(B, T, 3)], {}, {}),
    ("scan_diag_complex", [complex_of(3), complex_of(B, T, 3)], {"h0": complex_of(B, 3)}, {}),
    ("scan_diag_complex", [complex_of(3), complex_of(B, T, 3)], {}, {}),
    *[
        ("scan_block", [draw(B, T, m, m + 1, 3, low=0.1), draw(B, T, m, 3)], {"h0": draw(B, m, 3)}, {"gate": gate})
        for m, gate in ((1, "softmax"), (2, "sigmoid"), (3, "relu"), (2, "none"))
    ],
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
        {"beta": draw(B, T, 2, low=0.2, high=0.8), "decay": draw(B, T, 2, low=0.5), "s0": draw(B, 2, 3, 2)},
        {"scale": 0.7, "rate": 1.5},
    ),
    (
        "scan_delta",
        [draw(B, T, 2, 3), draw(B, T, 2, 3), draw(B, T, 2, 2)],
        {
            "decay": draw(B, T, 2, 3, low=0.5),
            "read": draw(B, T, 2, 3, low=-0.5, high=0.5),
            "erase": draw(B, T, 2, 3, low=-0.5, high=0.5),
        },
        {},
    ),
    (
        "scan_delta",
        [draw(B, T, 2, 3), draw(B, T, 4, 3), draw(B, T, 4, 2)],
        {"read": draw(B, T, 4, 3, low=-0.5, high=0.5)},
        {"steps": 2},
    ),
    (
        "scan_plstm",
        [
            draw(B, T, 2, 2),
            draw(B, T, 2, 2),
            draw(B, T, 2, 3),
            draw(B, T, 2, 2),
            draw(B, T, 2, 2, 2, low=-0.5, high=0.5),
            draw(B, T, 2, 2),
            draw(B, T, 2),
        ],
        {"c0": draw(B, 2, 2, 2, 3)},
        {"scale": 0.7},
    ),
    (
        "grid_scan",
        [
            draw(B, 2, 3, 2, 2),
            draw(B, 2, 3, 2, 2),
            draw(B, 2, 3, 2, 3),
            draw(B, 2, 3, 8, 4, 2, low=-0.5, high=0.5),
            draw(B, 2, 3, 2),
        ],
        {},
        {"scale": 0.7},
    ),
    *[
        (
            "dag_scan",
            [
                *(draw(B, 5, 2, 2), draw(B, 5, 2, 2), draw(B, 5, 2, 3)),
                *(draw(B, 5, 2), draw(B, 5, 2), draw(B, 4, 2), draw(B, 5, 2)),
            ],
            {},
            {"links": lrnn.torch.dag_links(GRAPHS), "scale": 0.7, "reversed": backwards, "tree": tree},
        )
        for backwards, tree in ((False, False), (True, True))
    ],
    ("scan_flow", [draw(B, T, 2, 2, 3, low=-0.4, high=0.4), draw(B, 3, 2)], {}, {}),
    ("scan_dplr", [draw(B, T, 3), draw(B, T, 2, 3), draw(B, T, 2, 3), draw(B, 3)], {}, {}),
    ("scan_hadamard", [draw(B, T, 4), draw(B, 4)], {}, {}),
    ("tree_solve", [complex_of(B, 7, 2), complex_of(B, 7, 2)], {}, {"beta": 0.4}),
    (
        "tree_solve",
        [complex_of(B, 4, 2), complex_of(B, 4, 2), complex_of(B, 4, 2)],
        {},
        {"arity": 3, "beta": 0.3, "form": "free"},
    ),
]


def results(value):
    return [t for t in (value if isinstance(value, tuple) else (value,)) if t.numel()]


for name, tensors, named, rest in CASES:
    function, naive = getattr(lrnn.torch, name), getattr(lrnn.reference, name)
    keys = list(named)
    everything = [*tensors, *named.values()]

    def run(*given):
        return function(*given[: len(tensors)], **dict(zip(keys, given[len(tensors) :])), **rest)

    expected = naive(*(t.numpy() for t in tensors), **{k: t.numpy() for k, t in named.items()}, **rest)
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = results(run(*everything))
    shared = name == "scan_outer" and tensors[0].shape[-2] < tensors[2].shape[-2]
    check(f"{name} gives as many arrays", len(found) == len(expected) - shared)
    check(
        f"{label(name, rest)} is the naive form to 1e-12",
        all(np.abs(f.numpy() - e).max() < 1e-12 for f, e in zip(found, expected)),
    )
    apart = [t.transpose(0, -1).contiguous().transpose(0, -1) for t in everything]
    check(f"{name} takes any strides", all(torch.equal(f, a) for f, a in zip(found, results(run(*apart)))))
    wanted = [t.clone().requires_grad_() for t in everything]
    check(f"{name} passes gradcheck", torch.autograd.gradcheck(lambda *g: results(run(*g)), wanted))

    def objective(*given):
        return sum((r.abs() ** 2).sum() for r in results(run(*given)))

    several = [torch.stack([t, 0.9 * t]) for t in everything]
    gradients = torch.func.grad(objective, tuple(range(len(everything))))
    mapped, apart = torch.func.vmap(gradients)(*several), [gradients(*(t[i] for t in several)) for i in range(2)]
    same = [torch.allclose(m[i], a, rtol=0, atol=1e-12) for i in range(2) for m, a in zip(mapped, apart[i])]
    plain = torch.autograd.grad(objective(*wanted), wanted)
    same += [torch.allclose(p, a, rtol=0, atol=1e-12) for p, a in zip(plain, apart[0])]
    check(f"{name} under vmap and grad of torch.func is separate calls", all(same))


def calls_of(name, tensors, named, rest):
    """The arguments that the operator itself gets."""
    seen, call = [], lrnn.operators._call
    lrnn.operators._call = lambda name, *arguments: seen.append(arguments) or call(name, *arguments)
    getattr(lrnn.torch, name)(*tensors, **named, **rest)
    lrnn.operators._call = call
    return seen[0]


def packed_apart(op, arguments, lengths):
    """Outputs and gradients of sequences one after another, and of each alone."""
    names = [*op.inputs, *([op.first] if op.first else [])]
    sizes = dict(zip((n for n, _ in op.sizes if n != "reserved"), arguments[len(names) + 1 :]))
    kinds = [op.shapes(sizes)[n][0] for n in names]
    given = [t if t is None else t.detach().contiguous().requires_grad_() for t in arguments[: len(names)]]
    operator = getattr(torch.ops.lrnn, op.name)

    def objective(outs):
        return sum((o * torch.arange(1, o.numel() + 1).reshape(o.shape).cos()).sum() for o in outs if o.numel())

    def run(arrays, offsets):
        return operator(*arrays, offsets, *sizes.values(), True)[:-1]

    def cut(t, kind):
        return t if t is None or kind != "T" else torch.cat([t[b, :n] for b, n in enumerate(lengths)])

    offsets = torch.tensor(np.cumsum([0, *lengths]))
    found = run([cut(t, kind) for t, kind in zip(given, kinds)], offsets)
    parts = []
    for b, n in enumerate(lengths):
        own = {"T": lambda t: t[b : b + 1, :n], "B": lambda t: t[b : b + 1], "S": lambda t: t}
        parts.append(run([t if t is None else own[kind](t) for t, kind in zip(given, kinds)], None))
    results = [op.shapes(sizes)[n][0] for n in (*op.outputs, *([op.last] if op.last else []))]
    alone = [
        (
            torch.cat([part[i].flatten(0, 1) if kind == "T" else part[i] for part in parts])
            if found[i].numel()
            else found[i]
        )
        for i, kind in enumerate(results)
    ]
    wanted = [t for t in given if t is not None]
    return [(*outs, *torch.autograd.grad(objective(outs), wanted)) for outs in (found, alone)]


for name, tensors, named, rest in CASES:
    op, arguments = lrnn.ops.OPS[name], calls_of(name, tensors, named, rest)
    operator = getattr(torch.ops.lrnn, name).default
    wanted = [a.clone().requires_grad_() if torch.is_tensor(a) and a.is_floating_point() else a for a in arguments]
    wanted.append(True)
    check(f"opcheck of {label(name, rest)}", set(torch.library.opcheck(operator, wanted).values()) == {"SUCCESS"})
    if name in ("grid_scan", "dag_scan", "tree_solve"):  # all their sequences have one length
        continue
    one, apart = packed_apart(op, arguments, [4, 0, 5])
    same = [torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in zip(one, apart)]
    check(f"{name} of unequal lengths is separate calls, gradients as well", all(same))

# Unequal lengths: as each sequence alone.
lengths = [4, 0, 7]
offsets = torch.tensor(np.cumsum([0, *lengths]))
z, v = draw(11, 2, 3, 4), draw(11, 2, 4)
h, last = lrnn.torch.scan_block(z, v, offsets=offsets)
alone = [lrnn.torch.scan_block(z[a:b][None], v[a:b][None]) for a, b in zip(offsets[:-1], offsets[1:])]
check(
    "unequal lengths are separate calls",
    torch.allclose(h, torch.cat([p[0][0] for p in alone]), rtol=0, atol=1e-14)
    and torch.allclose(last, torch.cat([p[1] for p in alone]), rtol=0, atol=1e-14),
)
empty, _ = lrnn.torch.scan_block(draw(0, 5, 2, 3, 4), draw(0, 5, 2, 4))
check("an empty batch works", empty.shape == (0, 5, 2, 4))
h, last = lrnn.torch.scan_block(draw(B, T, 2, 3, 4).bfloat16(), draw(B, T, 2, 4).bfloat16())
check("bfloat16 works", h.dtype == torch.bfloat16 and h.isfinite().all())



def wrong_links(links):
    tensors, rest = next((case[1], case[3]) for case in CASES if case[0] == "dag_scan")
    return lrnn.torch.dag_scan(*tensors, **{**rest, "links": links(rest["links"])})


for words, wrong in (
    (
        "expected (3, 6, 24)",
        lambda: torch.ops.lrnn.scan_block(draw(B, T, 23), draw(B, T, 8), None, None, 4, 2, 0, False),
    ),
    ("expected contiguous int32 (3, 22)", lambda: wrong_links(lambda links: links[:, 1:])),
    (
        "edge 4 leads from 4 to 5, expected nodes from 0 to 4",
        lambda: wrong_links(lambda links: links + (links == 3).int() + (links == 4).int()),
    ),
    ("to one of a higher number", lambda: lrnn.torch.dag_links([[(1, 0)]])),
    ("counted from 0", lambda: lrnn.torch.dag_links([[(-1, 0)]])),
    (
        "one contiguous axis of int64",
        lambda: lrnn.torch.scan_block(
            draw(8, 2, 3, 4), draw(8, 2, 4), offsets=torch.tensor([0, 4, 8, 8, 8, 8])[::2]
        ),
    ),
    ("they must agree", lambda: lrnn.torch.scan_block(draw(B, T, 2, 3, 4).float(), draw(B, T, 2, 4))),
    ("expected float32", lambda: lrnn.torch.scan_diag(draw(5).half(), draw(B, T, 5).half())),
    ("expected one of softmax", lambda: lrnn.torch.scan_block(draw(B, T, 2, 3, 4), draw(B, T, 2, 4), gate="soft")),
):
    try:
        wrong()
        sentence = ""
    except Exception as error:  # noqa: BLE001 PyTorch may wrap what the operator raises
        sentence = str(error)
    check(f"refused: {words}", words in sentence)

x = draw(B, T, 5).requires_grad_()
gradient = torch.autograd.grad(lrnn.torch.scan_diag(draw(5), x)[0].sum(), x, create_graph=True)[0]
try:
    torch.autograd.grad(gradient.sum(), x)
    sentence = ""
except RuntimeError as error:
    sentence = str(error)
check("the gradient of a gradient is refused", sentence)

# A gradient a row of outputs (jacrev) maps the backward pass alone, whose kept values are then those of one batch.
q, k, v, decay = draw(B, T, 2, 3), draw(B, T, 2, 3), draw(B, T, 2, 4), draw(B, T, 2, low=0.2)
rows = torch.func.jacrev(lambda v: lrnn.torch.scan_outer(q, k, v, decay)[0][:, -1].sum((1, 2)))(v)
row = torch.func.grad(lambda v: lrnn.torch.scan_outer(q, k, v, decay)[0][1, -1].sum())(v)
check("jacrev is a gradient a row", torch.allclose(rows[1], row, rtol=0, atol=1e-12))
qs, ks, vs, decays = draw(3, 1, 200, 2, 3), draw(3, 1, 200, 2, 3), draw(3, 1, 200, 2, 4), draw(3, 1, 200, 2, low=0.2)
three = lambda q, k, v, d: lrnn.torch.scan_outer(q, k, v, d)[0][0, -3:].sum((1, 2))  # noqa: E731
together = torch.func.vmap(torch.func.jacrev(three, argnums=2))(qs, ks, vs, decays)
apart = torch.stack([torch.func.jacrev(three, argnums=2)(*one) for one in zip(qs, ks, vs, decays)])
check("vmap of jacrev over as many batches as rows", torch.allclose(together, apart, rtol=0, atol=1e-9))
one = lambda q, k, v, d: three(q, k, v, d).sum()  # noqa: E731
nested = torch.func.vmap(torch.func.vmap(torch.func.grad(one, argnums=2)))
pairs = [torch.stack([x, x.flip(0)]) for x in (qs, ks, vs, decays)]
plain = torch.stack([torch.func.vmap(torch.func.grad(one, argnums=2))(*(x[i] for x in pairs)) for i in (0, 1)])
check("vmap of vmap of a gradient", torch.allclose(nested(*pairs), plain, rtol=0, atol=1e-9))
cuts = torch.tensor([[0, 4, 4, 9], [0, 2, 8, 9]])  # offsets may be mapped too: other lengths in each batch
squares = lambda *given: sum((r**2).sum() for r in lrnn.torch.scan_outer(*given[:4], offsets=given[4]))  # noqa: E731
of_one = torch.func.grad(squares, (0, 2))
tokens = [draw(2, 9, 2, 3), draw(2, 9, 2, 3), draw(2, 9, 2, 4), draw(2, 9, 2, low=0.2), cuts]
mapped, apart = torch.func.vmap(of_one)(*tokens), [of_one(*(t[i] for t in tokens)) for i in (0, 1)]
same = [torch.allclose(m[i], a, rtol=0, atol=1e-12) for i in (0, 1) for m, a in zip(mapped, apart[i])]
check("vmap over offsets under grad is separate calls", all(same))
last = lambda v: lrnn.torch.scan_outer(q, k, v, decay)[0].square().sum()  # noqa: E731
for words, wrong in (
    ("gradient of a gradient", lambda: torch.func.grad(lambda v: torch.func.grad(last)(v).sum())(v)),
    ("forward-mode derivatives", lambda: torch.func.jvp(last, (v,), (v,))),
):
    try:
        wrong()
        sentence = ""
    except lrnn.torch.LrnnError as error:
        sentence = str(error)
    check(f"torch.func refuses: {words}", words in sentence)

lacking = faults(lrnn.torch) + faults(lrnn, ("load", "save", "version", "library_path"))
check(f"public names have type hints and docstrings {lacking or ''}", not lacking)

# The gradient takes what the forward pass kept: nothing of a forward pass that needs no gradient.
u, wh, bh = draw(B, T, 12), draw(12, 3), draw(12)
kept = {keep: torch.ops.lrnn.scan_lstm(u, wh, bh, None, None, None, 3, keep)[-1] for keep in (False, True)}
check("values are kept where a gradient may come", kept[True].numel() > 0 == kept[False].numel())
h, c, _ = torch.ops.lrnn.scan_lstm(u, wh, bh, None, None, None, 3, True)
without, with_kept = (
    torch.ops.lrnn.scan_lstm_backward(u, wh, bh, *[None] * 2, h, c, h.cos(), None, kept[keep], [True] * 5, None, 3)
    for keep in (False, True)
)
check("gradients with and without kept values", all(torch.equal(a, b) for a, b in zip(without, with_kept)))

# torch.compile without a graph break gives the training that eager mode gives.
layers = [
    lrnn.torch.BDLRU(16, blocks=4, m=3),
    lrnn.torch.HLRU(16, channels=8, m=3),
    lrnn.torch.PLSTM(16, heads=2, track=2),
    lrnn.torch.SLiCE(16),
    lrnn.torch.Myosotis(16, levels=3, heads=4),
]
for layer in layers:
    start = {name: value.clone() for name, value in layer.state_dict().items()}
    losses = []
    for compiled in (False, True):
        layer.load_state_dict(start)
        torch.manual_seed(0)
        step = lambda x: (layer(x) - x.roll(1, 1)).square().mean()  # noqa: E731
        step = torch.compile(step, fullgraph=True) if compiled else step
        optimiser = torch.optim.AdamW(layer.parameters(), lr=1e-2)
        for _ in range(20):
            loss = step(torch.randn(4, 7, 16))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        losses.append(loss.item())
    check(f"{type(layer).__name__} trains, compiled and not: loss {losses[0]:.4f}", abs(losses[0] - losses[1]) < 1e-5)

print(f"{passed} passed with PyTorch {torch.__version__} and liblrnn {lrnn.version()}")
