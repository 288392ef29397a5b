"""Train and evaluate a text recogniser (CNN + LSTM + CTC) on images that it draws itself.

python train.py                                      train, then evaluate
python train.py --resume runs/ocr/last.pt            go on from a checkpoint
python train.py --mode eval --checkpoint runs/ocr/last.pt
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
from model import Recogniser, ctc_loss, decode
from synth import TextImages, text_of
from torch.utils.data import DataLoader

TARGET = 98.0  # percent of the evaluation strings read without one mistake; README.md has the measured values
EVAL_SEED, EVAL_SIZE, EVAL_BATCH = 1_000_003, 2048, 128
LOG_EVERY = 50
PEAK_LEARNING_RATE = 4e-3


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=("train", "eval"), default="train")
    parser.add_argument("--checkpoint", type=Path, help="the checkpoint that --mode eval reads")
    parser.add_argument("--resume", type=Path, help="a checkpoint to go on from; give the same seed, batch and length")
    parser.add_argument("--epochs", type=int, default=2, help="passes of --train-size images (default 2)")
    parser.add_argument("--train-size", type=int, default=25_600, help="images an epoch; every epoch draws new ones")
    parser.add_argument("--steps", type=int, help="train for so many batches instead of --epochs")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2, help="DataLoader processes (default 2)")
    parser.add_argument("--out", type=Path, default=Path("runs/ocr"), help="folder for checkpoints")
    parser.add_argument("--save-every", type=int, default=0, metavar="STEPS", help="also keep a checkpoint every STEPS")
    parser.add_argument("--metrics", type=Path, help="write the metrics to this JSON file")
    parser.add_argument("--target", type=float, nargs="?", const=TARGET, metavar="PERCENT",
                        help=f"exit with 1 below this accuracy (without a value: {TARGET})")  # fmt: skip
    parser.add_argument("--no-amp", action="store_true", help="float32 throughout")
    parser.add_argument("--cudnn-benchmark", action="store_true", help="faster, not reproducible")
    arguments = parser.parse_args()
    if arguments.mode == "eval" and arguments.checkpoint is None:
        parser.error("--mode eval needs --checkpoint")
    return arguments


def make_loader(images: TextImages, first: int, batch_size: int, workers: int) -> DataLoader:
    return DataLoader(
        images,
        batch_size=batch_size,
        sampler=range(first, len(images)),
        num_workers=workers,
        pin_memory=torch.cuda.is_available(),
        generator=torch.Generator(),  # its own: starting a loader must not move the random numbers of the model
    )


class Trainer:
    """The model with all that a checkpoint holds.

    ``chunk`` is how many images go through the device at a time.  It starts as the batch size and is halved when the
    device runs out of memory; the gradient is still that of the whole batch.
    """

    def __init__(self, arguments: argparse.Namespace, device: torch.device) -> None:
        self.arguments = arguments
        self.device = device
        self.steps = arguments.steps or max(1, arguments.epochs * arguments.train_size // arguments.batch_size)
        self.step = 0
        self.chunk = arguments.batch_size
        self.model = Recogniser().to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=PEAK_LEARNING_RATE, weight_decay=1e-3)
        self.amp = device.type == "cuda" and not arguments.no_amp
        self.amp_dtype = torch.bfloat16 if self.amp and torch.cuda.is_bf16_supported() else torch.float16
        self.scaler = torch.amp.GradScaler("cuda", enabled=self.amp)

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        state = {
            "step": self.step,
            "chunk": self.chunk,
            "seed": self.arguments.seed,
            "batch_size": self.arguments.batch_size,
            "steps": self.steps,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "cpu_rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        }
        partial = path.with_name(path.name + ".partial")
        torch.save(state, partial)
        os.replace(partial, path)  # a run that is killed while it writes leaves the old checkpoint whole

    def resume(self, path: Path) -> None:
        state = torch.load(path, map_location=self.device)
        given = {"seed": self.arguments.seed, "batch_size": self.arguments.batch_size, "steps": self.steps}
        for name, value in given.items():
            if state[name] != value:
                raise SystemExit(f"{path} was made with {name} {state[name]}, this run has {name} {value}")
        self.step, self.chunk = state["step"], state["chunk"]
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if state["scaler"] and self.amp:  # empty when the run before had no AMP
            self.scaler.load_state_dict(state["scaler"])
        torch.set_rng_state(state["cpu_rng"].cpu())
        if torch.cuda.is_available() and len(state["cuda_rng"]) == torch.cuda.device_count():
            torch.cuda.set_rng_state_all([rng.cpu() for rng in state["cuda_rng"]])

    def gradients(self, batch: list[torch.Tensor]) -> torch.Tensor:
        """Forward and backward over the batch, a chunk at a time; return its mean loss."""
        size = len(batch[0])
        total = torch.zeros((), device=self.device)
        for parts in zip(*(part.split(self.chunk) for part in batch)):
            images, targets, lengths = (part.to(self.device, non_blocking=True) for part in parts)
            with torch.autocast(self.device.type, dtype=self.amp_dtype, enabled=self.amp):
                log_probabilities = self.model(images)
            loss = ctc_loss(log_probabilities, targets, lengths) / size
            self.scaler.scale(loss).backward()
            total += loss.detach()
        return total

    def train_batch(self, batch: list[torch.Tensor]) -> torch.Tensor:
        while True:
            self.optimizer.zero_grad(set_to_none=True)
            try:
                loss = self.gradients(batch)
                break
            except torch.cuda.OutOfMemoryError:
                if self.chunk == 1:
                    raise
            # Here and not in the except block: there the traceback still holds the tensors of the failed attempt.
            print(f"out of memory with {self.chunk} images at a time, trying {self.chunk // 2}", flush=True)
            self.chunk //= 2
            torch.cuda.empty_cache()
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.step, self.steps)
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.step += 1
        return loss

    def train(self) -> dict[str, Any]:
        arguments = self.arguments
        images = TextImages(arguments.seed, self.steps * arguments.batch_size)
        loader = make_loader(images, self.step * arguments.batch_size, arguments.batch_size, arguments.workers)
        first, losses = self.step, []
        started = time.perf_counter()
        self.model.train()
        for batch in loader:
            losses.append(self.train_batch(batch))
            if self.step % LOG_EVERY == 0 or self.step == self.steps:
                speed = (self.step - first) * arguments.batch_size / (time.perf_counter() - started)
                print(f"step {self.step}/{self.steps}  loss {losses[-1].item():.4f}  {speed:.0f} images/s", flush=True)
            if arguments.save_every and self.step % arguments.save_every == 0:
                self.save(arguments.out / f"step{self.step:06d}.pt")
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        seconds = time.perf_counter() - started
        self.save(arguments.out / "last.pt")
        return {
            "first_step": first,
            "losses": [loss.item() for loss in losses],
            "chunk": self.chunk,
            "train_seconds": seconds,
            "images_per_second": len(losses) * arguments.batch_size / seconds,
        }


def learning_rate(step: int, steps: int) -> float:
    """A short linear warm-up, then a straight line down to a hundredth."""
    warm_up = max(1, steps // 10)
    if step < warm_up:
        return PEAK_LEARNING_RATE * (step + 1) / warm_up
    return PEAK_LEARNING_RATE * max(0.01, (steps - step) / (steps - warm_up))


def edit_distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (left != right))
    return row[-1]


@torch.no_grad()
def evaluate(model: Recogniser, device: torch.device, workers: int) -> dict[str, Any]:
    """Accuracy on the fixed evaluation set, in float32."""
    torch.backends.cudnn.allow_tf32 = False
    model.eval()
    exact = mistakes = characters = 0
    loss = 0.0
    for images, targets, lengths in make_loader(TextImages(EVAL_SEED, EVAL_SIZE), 0, EVAL_BATCH, workers):
        log_probabilities = model(images.to(device, non_blocking=True))
        loss += ctc_loss(log_probabilities, targets.to(device), lengths.to(device)).item()
        for classes, target in zip(decode(log_probabilities), targets.tolist()):
            read, truth = text_of(classes), text_of(target)
            exact += read == truth
            mistakes += edit_distance(read, truth)
            characters += len(truth)
    return {
        "accuracy": 100 * exact / EVAL_SIZE,
        "character_accuracy": 100 * (1 - mistakes / characters),
        "eval_loss": loss / EVAL_SIZE,
    }


def main() -> int:
    arguments = parse_arguments()
    torch.manual_seed(arguments.seed)
    torch.cuda.manual_seed_all(arguments.seed)
    torch.backends.cudnn.benchmark = arguments.cudnn_benchmark
    torch.backends.cudnn.deterministic = not arguments.cudnn_benchmark
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    metrics: dict[str, Any] = {}
    if arguments.mode == "train":
        trainer = Trainer(arguments, device)
        if arguments.resume:
            trainer.resume(arguments.resume)
        metrics.update(trainer.train())
        model = trainer.model
    else:
        model = Recogniser().to(device)
        model.load_state_dict(torch.load(arguments.checkpoint, map_location=device)["model"])
    metrics.update(evaluate(model, device, arguments.workers))
    metrics["target"] = TARGET if arguments.target is None else arguments.target
    metrics["device"] = str(next(model.parameters()).device)
    metrics["peak_memory_bytes"] = torch.cuda.max_memory_allocated()
    if arguments.metrics:
        arguments.metrics.parent.mkdir(parents=True, exist_ok=True)
        arguments.metrics.write_text(json.dumps(metrics, indent=1) + "\n")
    if arguments.mode == "train":
        print(f"{metrics['images_per_second']:.0f} images/s, character accuracy {metrics['character_accuracy']:.2f}%")
    print(
        f"accuracy {metrics['accuracy']:.2f}% (target {metrics['target']:.2f}%) device {metrics['device']} "
        f"peak memory {metrics['peak_memory_bytes'] / 2**20:.1f} MiB"
    )
    return int(arguments.target is not None and metrics["accuracy"] < arguments.target)


if __name__ == "__main__":
    sys.exit(main())
