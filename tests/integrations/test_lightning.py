"""The monitor in Lightning: in the same training, and with no hook left behind."""

import pytest
import tiny
import torch
from torch.utils.data import DataLoader, TensorDataset

from isonb.errors import InputError
from isonb.integrations.hidden_states import Pooling
from isonb.integrations.monitor import Gate, IsotropyMonitor

pytestmark = pytest.mark.filterwarnings("ignore")  # its own, on workers and loggers
OFF = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)


@pytest.fixture(params=["lightning.pytorch", "pytorch_lightning"])
def pl(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return pytest.importorskip(request.param)


def net_of(pl, interrupted=False):
    class Net(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.inner = tiny.model().float().eval()  # as from_pretrained gives it

        def training_step(self, batch, index):
            if interrupted and index == 1:
                raise KeyboardInterrupt
            return self.inner(input_ids=batch[0], labels=batch[1]).loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    return Net()


def fit(pl, net, *callbacks, parts=1):
    """Six batches of four sentences, an update each ``parts`` of them."""
    draw = torch.Generator().manual_seed(0)
    data = TensorDataset(torch.randint(1, 40, (24, 5), generator=draw), torch.randint(2, (24,), generator=draw))
    trainer = pl.Trainer(
        max_epochs=1, accelerator="cpu", accumulate_grad_batches=parts, callbacks=list(callbacks), **OFF
    )
    trainer.fit(net, DataLoader(data, batch_size=4))
    return trainer


def test_it_counts_from_zero_and_leaves_no_hook(pl, tmp_path):
    monitor = IsotropyMonitor(every=1, stop=[Gate("mean_cosine", high=-1.0, patience=7)])
    others = IsotropyMonitor(every=1, pooling=Pooling("mean")), IsotropyMonitor(["mean_cosine"], every=1)
    net, callbacks = net_of(pl), [item.lightning() for item in (monitor, *others)]  # three in one training
    for _ in range(2):
        trainer = fit(pl, net, *callbacks)
        assert (trainer.global_step, monitor.counts, tiny.hooks(net)) == (6, [6], 0)
    assert [event.step for event in monitor.events] == [1, 2, 3, 4, 5, 6] * 2
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    assert monitor.state_key in torch.load(tmp_path / "last.ckpt", weights_only=False)["callbacks"]
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        fit(pl, net := net_of(pl, interrupted=True), *callbacks)
    assert tiny.hooks(net) == 0


@pytest.mark.parametrize("parts", [1, 2])
def test_training_is_the_same_with_it_and_its_values_are_logged(pl, parts):
    monitor, net, plain = IsotropyMonitor(every=1), net_of(pl), net_of(pl)
    trainer = fit(pl, net, monitor.lightning(), parts=parts)
    fit(pl, plain, parts=parts)
    assert [event.step for event in monitor.events] == list(range(1, 6 // parts + 1))
    assert not monitor.events[0].undefined
    assert "isonb/mean_cosine" in trainer.callback_metrics
    assert torch.equal(tiny.weights(net), tiny.weights(plain))


def test_a_gate_ends_the_fit_and_its_counts_go_through_a_checkpoint(pl):
    monitor = IsotropyMonitor(every=1, stop=[Gate("mean_cosine", high=-1.0, patience=2)])
    callback = monitor.lightning()
    assert fit(pl, net_of(pl), callback).global_step == 2
    again = IsotropyMonitor(every=1, stop=monitor.stop)
    again.lightning().load_state_dict(callback.state_dict())
    assert again.counts == [2]
    with pytest.raises(InputError, match="module must name a submodule of Net"):
        fit(pl, net_of(pl), IsotropyMonitor(module="outer").lightning())
