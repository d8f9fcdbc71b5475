"""vision.py - what nets of images have besides their blocks: learned positions, resized where an image is larger than
those of training, and the read-out of the corners (pLSTM's ml-jku/plstm_experiments). Images are square."""
import torch

from .plstm import grid_of

SQUARE = {"height": "auto", "width": "auto"}


def cubic(d):
    """Keys' kernel of 1981, a = -1/2."""
    d = d.abs()
    near = 1.5 * d ** 3 - 2.5 * d ** 2 + 1
    return torch.where(d <= 1, near, torch.where(d < 2, -0.5 * d ** 3 + 2.5 * d ** 2 - 4 * d + 2, 0.0))


def resizing(m, n):
    """(n,m): what each of n places has of m entries, both being areas of one line; entries beyond it left out."""
    centres = (torch.arange(n, dtype=torch.float64) + 0.5) * m / n - 0.5
    w = cubic(centres[:, None] - torch.arange(m, dtype=torch.float64))
    return w / w.sum(-1, keepdim=True)


def with_positions(x, table, lengths):
    """x + the table (height,width,D) resized to the grid of each sequence."""
    rows = []
    for sequence, n in zip(x, lengths.tolist()):
        if n == 0:
            rows.append(sequence)
            continue
        X, Y = grid_of(n, SQUARE)
        grid = torch.einsum("xh,yw,hwd->xyd", resizing(table.shape[0], X), resizing(table.shape[1], Y), table)
        rows.append(torch.cat([sequence[:n] + grid.flatten(0, 1)[:n], sequence[n:]]))
    return torch.stack(rows)


def corners(x, lengths):
    """(B,4D): upper left, lower left, upper right, lower right."""
    rows = []
    for sequence, n in zip(x, lengths.tolist()):
        X, Y = grid_of(n, SQUARE) if n else (0, 0)
        places = [0, (X - 1) * Y, Y - 1, X * Y - 1]
        rows.append(sequence[places].flatten() if n else sequence[:4].flatten() * 0)
    return torch.stack(rows)
