#!/usr/bin/env python3
# examples/gpu/train.py -- a training script that knows nothing of dibs: it takes the device that
# CUDA_VISIBLE_DEVICES names, and fits a line by gradient descent.
#
#   train.py SLOPE [STEPS]
#
# It uses PyTorch if that is installed and sees the device, and plain Python if not.
# SPDX-License-Identifier: Apache-2.0
import os
import sys


def points(slope: float) -> list[tuple[float, float]]:
    return [(x / 50, slope * x / 50 + 1) for x in range(100)]


def train_plain(pairs: list[tuple[float, float]], steps: int) -> tuple[float, float]:
    a = b = 0.0
    for _ in range(steps):
        errors = [(a * x + b - y, x) for x, y in pairs]
        a -= 0.5 * sum(error * x for error, x in errors) / len(pairs)
        b -= 0.5 * sum(error for error, _ in errors) / len(pairs)
    return a, b


def train_torch(torch, pairs: list[tuple[float, float]], steps: int) -> tuple[float, float]:
    x, y = (torch.tensor(column, device="cuda") for column in zip(*pairs))
    line = torch.zeros(2, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([line], lr=0.25)
    for _ in range(steps):
        optimizer.zero_grad()
        ((line[0] * x + line[1] - y) ** 2).mean().backward()
        optimizer.step()
    return line[0].item(), line[1].item()


def main() -> None:
    device = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if not device:
        sys.exit("train.py: no device: run me as  dibs exec gpu -- train.py ...")
    slope = float(sys.argv[1])
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    try:
        import torch
        usable = torch.cuda.is_available()
    except ImportError:
        usable = False
    a, b = train_torch(torch, points(slope), steps) if usable else train_plain(points(slope), steps)
    # One write, whatever the buffering: other trainings write to the same place.
    sys.stdout.write(f"device {device}: y = {a:.3f} x + {b:.3f}\n")


if __name__ == "__main__":
    main()
