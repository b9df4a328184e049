"""What cached lower layers save: CPU seconds of a training step, memory and disk.

``python -m tests.benchmarks.lower_layers smollm2 30 4`` (model, layers, of which so many are trained) trains the whole
model, the last layers on frozen ones, and the last layers on states from the disk, on batches of 32 texts of 24 tokens.
CPU time, since others may use the machine. Losses stand beside the times.
"""

import resource
import sys
import tempfile
import time

import torch
from torch.nn import functional as F

from isonb.models.loading import load_for_training
from isonb.points import mean_pool
from isonb_lab.encoders import state_files
from isonb_lab.encoders.lower_layers import first_layers, layer_list, trained_above

TEXTS, LENGTH, STEPS = 32, 24, 3


def batches(vocabulary):
    draw = torch.Generator().manual_seed(0)
    return [torch.randint(10, vocabulary, (TEXTS, LENGTH), generator=draw) for _ in range(STEPS + 1)]


def train(model, inputs):
    """CPU seconds of a step, and the losses; the first step warms up."""
    torch.manual_seed(0)
    head = torch.nn.Linear(model.config.hidden_size, 2)
    weights = [*(weight for weight in model.parameters() if weight.requires_grad), *head.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=1e-5)
    losses, began = [], 0.0
    for step, ids in enumerate(inputs):
        if step == 1:
            began = time.process_time()
        mask = torch.ones_like(ids)
        states = model(input_ids=ids, attention_mask=mask).last_hidden_state
        loss = F.cross_entropy(head(mean_pool(states, mask)), torch.arange(TEXTS) % 2)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 6))
    return (time.process_time() - began) / STEPS, losses


def prepared(way, name, layers, trained, inputs):
    encoder = first_layers(load_for_training(name, dropout=0.0), layers)
    if way == "frozen":
        encoder.model.requires_grad_(False)
        layer_list(encoder.model)[-trained:].requires_grad_(True)
    if way == "cached":
        encoder, lower = trained_above(encoder, trained)
        began = time.process_time()
        lower.read([{"input_ids": row.tolist()} for ids in inputs for row in ids], progress=False)
        print(f"states of {len(inputs) * TEXTS} texts: {time.process_time() - began:.1f} s, once", flush=True)
        size = sum(file.stat().st_size for file in state_files.states_folder().glob("*.npy"))
        print(f"on the disk: {size / 1e6:.1f} MB, {size / len(inputs) / TEXTS / LENGTH:.0f} bytes a token", flush=True)
    return encoder.model


def main(name="smollm2", layers="30", trained="4", ways="cached frozen whole"):
    with tempfile.TemporaryDirectory() as folder:
        state_files.states_folder = lambda: state_files.Path(folder)
        for way in ways.split():
            encoder = load_for_training(name, dropout=0.0)
            inputs = batches(encoder.model.config.vocab_size)
            del encoder
            seconds, losses = train(prepared(way, name, int(layers), int(trained), inputs), inputs)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            print(f"{way}: {seconds:.2f} s a step, losses {losses}, at most {memory:.1f} GB so far", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
