"""slice.py - SLiCE and its log-ODE form (structured-linear-cdes, log-neural-cdes).

Generators are lists of parts, each of n square blocks of size b: (..., n, b, b). The parts lie side by side in the
state, and so do the blocks of a part."""
import torch


def hadamard_matrix(D):
    """Sylvester's, over sqrt(D)."""
    H = torch.ones(1, 1, dtype=torch.float64)
    while H.shape[0] < D:
        H = torch.cat([torch.cat([H, H], 1), torch.cat([H, -H], 1)], 0)
    return H / D ** 0.5


def factors(M, D, r):
    """Column i*r + q of rows of M -> (..., D, r)."""
    return M.unflatten(-1, (D, r))


def letters(p, o, D):
    """The generators A_c [E] of the control channels; of dplr and hadamard as the log-ODE code has them: one U_c V_c^T
    a channel, no tanh."""
    kind, b, r = o["structure"], int(o["block"]), int(o["rank"])
    if kind == "diagonal":
        return [p["A"][..., None, None]]
    if kind == "block":
        return [p["A"].unflatten(1, (D // b, b, b))]
    if kind == "dense":
        return [p["A"].unflatten(1, (1, D, D))]
    if kind == "sparse":
        return [(p["A"] * p["mask"]).unflatten(1, (1, D, D))]
    if kind == "diagonal-dense":
        return [p["A.diagonal"][..., None, None], p["A.dense"].unflatten(1, (1, b, b))]
    if kind == "dplr":
        return [(torch.diag_embed(p["A"]) + factors(p["U"], D, r) @ factors(p["V"], D, r).mT).unsqueeze(1)]
    return [(hadamard_matrix(D) @ torch.diag_embed(p["A"])).unsqueeze(1)]


def step_generators(w, p, o, D):
    """A(w) of every step of the token form; w (B,T,E)."""
    r = int(o["rank"])
    if o["structure"] == "dplr":  # quadratic in w
        low_rank = factors(w @ p["U"], D, r) @ factors(w @ p["V"], D, r).mT
        return [(torch.diag_embed(w @ p["A"]) + low_rank).unsqueeze(2)]
    if o["structure"] == "hadamard":
        return [(hadamard_matrix(D) @ torch.diag_embed(w @ torch.tanh(p["A"]))).unsqueeze(2)]
    return [torch.einsum("bte,enij->btnij", w, A) for A in letters(p, o, D)]


def interval_generator(w, parts, depth):
    """L of one interval with the increments w (B,n,E): sum_i l_i A_i + sum_{i<j} a_ij (A_j A_i - A_i A_j)."""
    l = w.sum(1)
    L = [torch.einsum("be,enij->bnij", l, A) for A in parts]
    if depth == 1:
        return L
    before = torch.cumsum(w, 1) - w
    pair = torch.einsum("bti,btj->bij", before, w)
    area = 0.5 * (pair - pair.mT)
    # a_ij is antisymmetric: the sum of a_ij A_j A_i over all i and j has each bracket of i < j once.
    return [first + torch.einsum("bij,jnkl,inlm->bnkm", area, A, A) for first, A in zip(L, parts)]


def clipped(move, c):
    """The bound that the release has on a step's move; 0: none."""
    return c * torch.tanh(move / c) if c > 0 else move


def moved(y, L, o):
    """(I + L) y or exp(L) y, the move beside y clipped."""
    sizes = [part.shape[1] * part.shape[2] for part in L]
    new = []
    for part, rows in zip(L, y.split(sizes, -1)):
        rows = rows.unflatten(-1, (part.shape[1], part.shape[2], 1))
        move = torch.matrix_exp(part.contiguous()) @ rows - rows if o["flow"] == "exp" else part @ rows
        new.append((rows + clipped(move, float(o["clip"]))).flatten(1))
    return torch.cat(new, -1)


def steps(w, y, p, o, D):
    """The token form: one move a step."""
    parts, states = step_generators(w, p, o, D), [y]
    for t in range(1, w.shape[1]):
        y = moved(y, [part[:, t] for part in parts], o)
        states.append(y)
    return states


def intervals(w, y, p, o, D, lengths):
    """The log-ODE form: positions 1, 2, .. are cut into intervals; the state moves at the end of each, stands between.
    The last position of a sequence has the state after its shorter last interval."""
    interval, parts, states = int(o["interval"]), letters(p, o, D), [y]
    for t in range(1, w.shape[1]):
        begin, whole, ends = (t - 1) // interval * interval + 1, t % interval == 0, lengths == t + 1
        after = y
        if whole or ends.any():
            after = moved(y, interval_generator(w[:, begin:t + 1], parts, int(o["depth"])), o)
        y = after if whole else y
        states.append(after if whole else torch.where(ends[:, None], after, y))
    return states


def slice_mixer(x, p, o, lengths=None):
    B, T, D = x.shape
    w = float(o["dt"]) * torch.cat([torch.ones(B, T, 1, dtype=x.dtype), x], -1)
    y = x[:, 0] @ p["init.weight"].T + p["init.bias"]
    lengths = torch.full((B,), T) if lengths is None else lengths
    return torch.stack(intervals(w, y, p, o, D, lengths) if int(o["interval"]) > 1 else steps(w, y, p, o, D), 1)


def penalty(p, o):
    """penalty * Frobenius norm of A: of both parts, of what a mask keeps; neither U nor V (the release's train.py)."""
    if o["structure"] == "diagonal-dense":
        square = (p["A.diagonal"] ** 2).sum() + (p["A.dense"] ** 2).sum()
    elif o["structure"] == "sparse":
        square = ((p["A"] * p["mask"]) ** 2).sum()
    else:
        square = (p["A"] ** 2).sum()
    return float(o["penalty"]) * torch.sqrt(square)
