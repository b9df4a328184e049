"""What the lab's engine adds to a fine-tuning when nothing is measured: the same run by the plain Trainer beside it."""

from __future__ import annotations

import copy
import dataclasses
import tempfile
from pathlib import Path

from isonb.lab.data.batches import Collator
from isonb.lab.engines import trainer
from isonb.lab.engines.finetune import prepare
from isonb.lab.engines.stages import EVALUATED, Finetuning
from isonb.lab.runs.settings import resolve
from tests.benchmarks.harness import Row, taken

PLAIN = {"group_by_length": False, "track_every": 0, "cloud_examples": 0, "validations": 1, "epochs": 1}


def by_the_engine(run_: Finetuning, folder: str) -> int:
    """Train a fresh copy of the model, validate, predict; the number of predictions."""
    fresh = dataclasses.replace(run_, model=copy.deepcopy(run_.model))
    return len(trainer.train(fresh, Path(folder), resumable=False, progress=False)[0])


def by_the_trainer(run_: Finetuning, folder: str) -> int:
    """The same updates, validation and predictions by transformers alone."""
    from transformers import PrinterCallback, Trainer, TrainingArguments

    settings, material = run_.settings, run_.material
    arguments = TrainingArguments(
        output_dir=folder,
        max_steps=len(material.train.tokens) // settings.batch_size,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=EVALUATED,
        learning_rate=settings.learning_rate,
        warmup_steps=settings.warmup,
        optim="adamw_torch_fused",
        bf16=False,
        use_cpu=run_.device.type == "cpu",
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=10,
        dataloader_pin_memory=False,
        remove_unused_columns=False,
        label_names=["labels"],
        report_to="none",
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=copy.deepcopy(run_.model),
        args=arguments,
        data_collator=Collator(run_.encoder.tokenizer),
        train_dataset=material.train.tokens,
        eval_dataset=material.validation.tokens,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return len(trainer.predict(material.validation.tokens).predictions[0])


def fine_tuning(small: bool = False) -> list[Row]:
    """A pass over the generated reviews with ``tiny``, float32."""
    size = {"train_examples": 64, "eval_examples": 48} if small else {"train_examples": 1000}
    given = {"task": "english_sentiment", "model": "tiny", "method": "none", "protocol": "embedded"}
    run_ = prepare(resolve(given | PLAIN | size | {"precision": "float32"}), None)
    with tempfile.TemporaryDirectory() as folder:
        missing = abs(by_the_engine(run_, folder) - by_the_trainer(run_, folder))
        ours, theirs = taken(
            lambda: by_the_engine(run_, folder),
            lambda: by_the_trainer(run_, folder),
            rounds=1 if small else 7,
            least=0.0,
        )
    what, rows = "a fine-tuning run in which nothing is measured", len(run_.material.train.tokens)
    limit = "the callbacks of the lab, and the sentence vectors that a validation collects"
    return [Row(what, f"{rows} rows", "plain Trainer", ours, theirs, 1.05, float(missing), 0.0, True, limit)]


SUITES = {"fine_tuning": fine_tuning}
