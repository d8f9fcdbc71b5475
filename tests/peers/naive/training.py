"""training.py - a run of the optimiser and its scores: batches, schedule, clipping, AdamW, metrics (athms/mad-lab,
structured-linear-cdes). AdamW and the clipping are PyTorch's own."""
import math

import torch

from .net import IGNORED, Net, cross_entropy

CONSTANTS = ("mask", "norm.mean", "norm.variance")  # ends of the names of tensors that are not trained
DYNAMICS = {  # a mixer's parameters that upstream exempts from decay
    "mamba2": ["A.log", "dt.bias", "skip"],
    "mamba3": ["dt.bias", "skip"],
    "deltaproduct": ["A.log", "dt.bias"],
    "gated-deltanet": ["A.log", "dt.bias"],
    "kda": ["A.log", "dt.bias"],
    "gdn2": ["A.log", "dt.bias"],
    "lru": ["nu.log", "theta.log", "gamma.log"],
    "myosotis": ["up.re", "up.im", "down.re", "down.im"],
}


def trained(name):
    return not name.endswith(CONSTANTS)


def decays(name, net):
    """MAD's loop decays all, tags or no tags; SLiCE's all but the embedding; S5's all but the state and its batch
    norms; pLSTM's of images and xLSTM's their maps alone. The nodes of a tree are never decayed."""
    if name == "nodes":
        return False
    if net.backbone in ("slice", "slice-glu", "stacked", "slice-xlstm", "slice-transformer"):
        return name != "embedding"
    if net.backbone in ("vision", "xlstm"):
        return name.endswith("weight") and not name.endswith("norm.weight")
    return net.backbone != "s5" or not (of_state(name, net) or of_batch_norm(name))


def of_state(name, net):
    own = name.split(".mixer.")[-1].split(".mixer_back.")[-1]
    return own != name and own in DYNAMICS.get(net.mixer, [])


def of_batch_norm(name):
    return ".norm." in name and ".mixer" not in name


def rate_factor(name, net, config):
    """S5 trains states and batch norms at ssm_lr, and everything else at lr_factor * ssm_lr."""
    slow = net.backbone == "s5" and (of_state(name, net) or of_batch_norm(name))
    return float(config["ssm-lr-factor"]) if slow else 1.0


def rate(config, step, steps, steps_per_epoch):
    """Rate of a step, from 0. A warm-up is linear from 0, so that the first step has rate 0 or a least share of the
    peak. A schedule stepped once an epoch has the rate of the epoch's first step."""
    peak, floor, warmup, kind = float(config["lr"]), float(config["lr-min"]), int(config["warmup"]), config["schedule"]
    if kind in ("cosine-epoch", "mad-cosine"):
        step -= step % steps_per_epoch
    if step < warmup:
        return peak * max(step / warmup, float(config["warmup-least"]))
    if kind == "constant":
        return peak
    if kind == "mad-cosine":
        floor, steps = 1e-6, 200 * steps_per_epoch
    done = (step - warmup) / max(steps - warmup, 1)
    return floor + 0.5 * (peak - floor) * (1 + math.cos(math.pi * min(done, 1)))


def values_of(given):
    """Ids, or values of one channel or several."""
    t = torch.tensor(given)
    if not t.is_floating_point():
        return t
    return t.unsqueeze(-1) if t.ndim == 1 else t


class Batch:
    """B rows of up to T tokens, or vectors of values, and their edges; rows without an example are empty."""

    def __init__(self, examples, B, T, per_sequence):
        self.examples = len(examples)
        inputs = [values_of(example["input"]) for example in examples]
        self.input = torch.zeros(B, T, *inputs[0].shape[1:], dtype=inputs[0].dtype)
        graphs = [[tuple(edge) for edge in example["edges"]] for example in examples if "edges" in example]
        self.edges = graphs + [[]] * (B - len(graphs)) if graphs else None
        self.targets = torch.full((B,) if per_sequence else (B, T), IGNORED)
        self.lengths = torch.zeros(B, dtype=torch.long)
        for row, example in enumerate(examples):
            n = self.lengths[row] = len(example["input"])
            self.input[row, :n] = inputs[row]
            if per_sequence:
                self.targets[row] = example["target"]
            else:
                self.targets[row, :n] = torch.tensor(example["target"])


def macro_recall(predictions, targets):
    """Mean recall of the classes that a batch has as a target or, wrongly, as a prediction."""
    recalls = []
    for label in set(targets.tolist()) | set(predictions[predictions != targets].tolist()):
        of_label = targets == label
        recalls.append(float((predictions[of_label] == label).double().mean()) if of_label.any() else 0.0)
    return sum(recalls) / len(recalls) if recalls else 0.0


class Scores:
    """Losses weigh by scored targets, macro accuracies of batches by their examples."""

    def __init__(self):
        self.loss = self.macro = 0.0
        self.rows = []  # of each sequence: length, scored, right, whether the last is right
        self.positions = {}  # from 1 on: how many are scored there, and right

    def add(self, batch, loss, predictions):
        n = batch.examples
        targets, predictions = batch.targets[:n].reshape(n, -1), predictions[:n].reshape(n, -1)
        scored = targets != IGNORED
        for length, want, got, of in zip(batch.lengths.tolist(), targets, predictions, scored):
            right = (want == got)[of]
            for at, hit in zip((of.nonzero().flatten() + 1).tolist(), right.tolist()):
                of_all, hits = self.positions.get(at, (0, 0))
                self.positions[at] = of_all + 1, hits + hit
            self.rows.append((length, int(of.sum()), int(right.sum()), bool(right[-1]) if len(right) else False))
        self.loss += float(loss) * int(scored.sum())
        self.macro += macro_recall(predictions[scored], targets[scored]) * n

    def result(self, length=None):
        """All scores; of the sequences of one length those that belong to single sequences."""
        rows = [row for row in self.rows if length in (None, row[0])]
        scored, right = sum(row[1] for row in rows), sum(row[2] for row in rows)
        one_length = {
            "acc": right / scored if scored else 0.0,
            "seq_acc": sum(row[1] > 0 and row[1] == row[2] for row in rows) / len(rows),
            "last_acc": sum(row[3] for row in rows) / len(rows),
            "n": len(rows),
        }
        if length is not None:
            return one_length
        return {**one_length, "loss": self.loss / scored if scored else 0.0, "macro_acc": self.macro / len(rows)}

    def at(self, first, last):
        """Scores of some neighbouring positions of all sequences."""
        scored = [self.positions[at] for at in range(first, last + 1) if at in self.positions]
        n = sum(of for of, _ in scored)
        return {"n": n, "acc": sum(hits for _, hits in scored) / n}


class Training:
    """A run beside the program's: `run` is what program.Run has read of it."""

    def __init__(self, run):
        self.run, self.config = run, run.config
        self.weights = {name: w.clone().requires_grad_(trained(name)) for name, w in run.initial.items()}
        self.net = Net(self.config, self.weights)
        groups = {}
        for name, w in self.weights.items():
            if w.requires_grad:
                own = decays(name, self.net), rate_factor(name, self.net, self.config)
                groups.setdefault(own, []).append(w)
                run.expect_group(name, *own)
        decay = float(self.config["decay"])
        self.optimiser = torch.optim.AdamW(
            [{"params": params, "weight_decay": decay if decayed else 0.0, "factor": factor}
             for (decayed, factor), params in groups.items()],
            betas=(float(self.config["beta1"]), float(self.config["beta2"])), eps=1e-8, foreach=False)

    def loss(self, batch):
        logits = self.net.logits(batch, self.run.per_sequence)
        return cross_entropy(logits, batch.targets)

    def step(self, number):
        """Loss of the batch before the step, gradient norm, rate."""
        trainables = [w for w in self.weights.values() if w.requires_grad]
        lr = rate(self.config, number, self.run.steps, self.run.steps_per_epoch)
        for group in self.optimiser.param_groups:
            group["lr"] = lr * group["factor"]
        self.optimiser.zero_grad()
        self.net.training = True
        loss, _ = self.loss(self.run.batch_of(number))
        whole = loss + self.net.loss_terms()
        extra = self.run.extra_batch_of(number)
        if extra:
            whole = whole + self.loss(extra)[0]
        whole.backward()
        for w in trainables:
            w.grad = torch.zeros_like(w) if w.grad is None else w.grad
        clip = float(self.config["clip"])
        norm = torch.nn.utils.clip_grad_norm_(trainables, clip or math.inf, foreach=False)
        self.optimiser.step()
        return {"loss": loss.item(), "grad_norm": norm.item(), "lr": lr}

    @torch.no_grad()
    def scores(self, split):
        self.net.training = False
        scores = Scores()
        for batch in self.run.evaluation(split):
            scores.add(batch, *self.loss(batch))
        return scores

    def whole(self):
        """Log of the steps, validation scores at their steps, test scores at the best of these."""
        log, curve, best, test = [], [], -1.0, None
        for number in range(self.run.steps):
            log.append(self.step(number))
            if (number + 1) % self.run.eval_every and number + 1 < self.run.steps:
                continue
            since = curve[-1]["step"] if curve else 0
            validation = self.scores("val").result()
            losses = [row["loss"] for row in log[since:]]
            curve.append({"step": number + 1, "train_loss": sum(losses) / len(losses), **validation})
            if validation[self.run.metric] > best:
                best, test = validation[self.run.metric], self.scores("test")
        return log, curve, test
