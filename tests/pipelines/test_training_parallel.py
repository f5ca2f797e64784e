"""Training with several workers, against what it must equal: plain SGD, sums worked out apart, known optima."""

from itertools import combinations, pairwise

import msgspec
import numpy as np
import pytest
import torch

from pipelines.training.corpus import labels
from pipelines.training.module import Layers
from pipelines.training.parallel import lessons as labelled
from pipelines.training.parallel.balance import Stage, simulated, speed_up, split
from pipelines.training.parallel.job import DIVERGED, Job, Task
from pipelines.training.parallel.method import Admm, Asynchronous, Consensus, Pipelined, Setting, Synchronous
from profiler.errors import BadInput
from tests.each import each
from tests.pipelines.workers_in_threads import CLASSES, lessons, plain_descent, run_job, together, write_shard

CPU = torch.device("cpu")
WIDTHS = (8, 6, 7)
RATE = 0.1


def plain(batches, size):
    net, _ = plain_descent(lessons(), WIDTHS, RATE, batches, size)
    return torch.nn.utils.parameters_to_vector(net.parameters()).detach()


def trained(make, task, *batches):
    """Return the vector of the whole net after pieces of `batches` minibatches, and each worker's diary."""

    def work(world, group):
        torch.set_num_threads(1)
        back = group(task.ranks, world.diary)
        taught = lessons()
        training = make(task, Setting(world, back, taught, taught.card(WIDTHS, 0), CPU))
        found = [training.piece(n) for n in batches]
        return training.answers().vector.clone(), world.diary, found

    return together(task.ranks, work)


def task(method, workers, batch=16, **more):
    return Task(name=method, method=method, workers=workers, batch=batch, batches=1, rate=RATE, **more)


@pytest.mark.parametrize(
    ("make", "alone"), [(Pipelined, task("pipelined", 1, split=(0,))), (Synchronous, task("synchronous", 1))]
)
def test_one_worker_is_plain_descent_bit_for_bit(make, alone):
    [(found, diary, _)] = trained(make, alone, 7, 6)
    assert torch.equal(found, plain(13, 16))
    assert set(diary.delays) <= {0}


@each("rule, accumulate", [("constant", 1), ("by staleness", 1), ("constant", 3)])
def test_one_worker_with_a_server_is_plain_descent_as_no_gradient_is_late(rule, accumulate):
    """The mean gradient of 3 minibatches of 16 at one copy is that of one of 48: the same frames in the same order."""
    given = task("asynchronous", 1, rule=rule, accumulate=accumulate)
    [(found, diary, [piece]), _] = trained(Asynchronous, given, 12)
    assert piece.examples == 12 * 16
    assert piece.updates == 12 // accumulate == diary.delays[0]
    torch.testing.assert_close(found, plain(12 // accumulate, 16 * accumulate), rtol=1e-4, atol=1e-6)


@each("workers", [2, 3, 4])
def test_synchronous_workers_equal_one_with_the_whole_minibatch(workers):
    found = trained(Synchronous, task("synchronous", workers, batch=24), 9)
    for vector, diary, _ in found:
        torch.testing.assert_close(vector, plain(9, 24), rtol=1e-4, atol=1e-6)
        # A ring: (n − 1) / n of the vector to sum and again to share, each sent and received.
        assert diary.bytes == 9 * round(4 * 4 * len(vector) * (workers - 1) / workers)


@pytest.mark.parametrize("rule", ["constant", "by staleness"])
def test_the_server_takes_each_gradient_as_late_as_it_is(rule):
    """Gradients of ones with the versions of their copies, sent by hand: what is gone then says the rates."""
    versions = [0, 0, 1, 0]
    late = [0, 1, 1, 3]

    def work(world, group):
        taught = lessons()
        setting = Setting(world, world, taught, taught.card(WIDTHS, 0), CPU)
        if world.rank == 0:
            server = Asynchronous(task("asynchronous", 1, rule=rule), setting)
            before = server._net.vector.clone()
            server.piece(len(versions))
            return before - server.answers().vector, world.diary.delays
        got = torch.empty(len(Layers(setting.card, 1, CPU).vector) + 1)
        for version in versions:
            world.receive(got, 0).wait()
            sent = torch.ones_like(got)
            sent[-1] = version
            world.send(sent, 0).wait()
        world.receive(got, 0).wait()
        return None

    (gone, delays), _ = together(2, work)
    rates = [RATE / (1 + n) if rule == "by staleness" else RATE for n in late]
    torch.testing.assert_close(gone, torch.full_like(gone, sum(rates)), rtol=1e-3, atol=1e-6)
    assert delays == {0: 1, 1: 2, 3: 1}


def test_workers_of_a_server_take_different_minibatches():
    def work(world, group):
        world.diary.begin_piece(traced=True)
        taught = lessons()
        setting = Setting(world, world, taught, taught.card(WIDTHS, 0), CPU)
        Asynchronous(task("asynchronous", 2, accumulate=2), setting).piece(12)
        return [span.batch for span in world.diary.spans if span.kind == "gradient"]

    first, second = together(3, work)[1:]
    for own in (first, second):
        assert own == list(range(own[0], own[0] + 2 * len(own), 2))
    assert len({*first, *second}) == len(first) + len(second) >= 12


def reference_pipeline(stages, batches, size):
    """Late gradients worked out without workers: tick by tick, each stage's forward and backward at its own weights."""
    taught = lessons()
    card = taught.card(WIDTHS, 0)
    ends = [*stages[1:], None]
    parts = [Layers(card, 1, CPU, a, b) for a, b in zip(stages, ends, strict=True)]
    k = len(parts)
    said, heard, grads = {}, {}, {}
    at, due = [0] * k, [0] * k
    while due[0] < batches:
        for w, part in enumerate(parts):
            late = at[w] - due[w] > 2 * (k - 1 - w) or at[w] == batches
            n = due[w] if late else at[w]
            if late and n < batches and (w == k - 1 or (w, n) in grads):
                if w == k - 1:
                    y = taught.batch(n, size)[1]
                    torch.nn.functional.cross_entropy(said[w, n], y).backward()
                else:
                    said[w, n].backward(grads[w, n])
                if w:
                    grads[w - 1, n] = heard[w, n].grad
                part.step(RATE)
                due[w] += 1
            elif not late and (w == 0 or (w - 1, n) in said):
                x = taught.batch(n, size)[0] if w == 0 else said[w - 1, n].detach().requires_grad_()
                heard[w, n] = x
                said[w, n] = part(x, stale=True)
                at[w] += 1
    return torch.cat([part.vector for part in parts])


@each("first", [(0, 2), (0, 1, 3), (0, 1, 2, 3)])
def test_a_pipeline_learns_from_late_gradients_as_worked_out_without_workers(first):
    workers = len(first)
    found = trained(Pipelined, task("pipelined", workers, split=first), 14)
    torch.testing.assert_close(found[0][0], reference_pipeline(first, 14, 16), rtol=1e-5, atol=1e-7)
    for rank, (_, diary, _) in enumerate(found):
        delay = 2 * (workers - 1 - rank)
        assert diary.delays[delay] == 14 - delay
        assert max(diary.delays) == delay


def test_admm_comes_to_the_optimum_of_the_sum():
    """f_k(w) = |A_k w − b_k|² / 2: the minimum of the sum solves the normal equations; each step is solved exactly."""
    draw = np.random.default_rng(3)
    a, b = draw.normal(0, 1, (3, 6, 4)), draw.normal(0, 1, (3, 6))
    best = np.linalg.solve(sum(m.T @ m for m in a), sum(m.T @ v for m, v in zip(a, b, strict=True)))
    rho = 2.0

    def work(world, group):
        mine, target = torch.tensor(a[world.rank]), torch.tensor(b[world.rank])

        def local(w, multipliers, z):
            left = mine.T @ mine + rho * torch.eye(4, dtype=torch.float64)
            w.copy_(torch.linalg.solve(left, mine.T @ target - multipliers + rho * z))

        admm = Admm(world, torch.zeros(4, dtype=torch.float64), rho)
        residuals = [admm.round(local) for _ in range(120)]
        return admm.z.numpy(), residuals

    for z, residuals in together(3, work):
        np.testing.assert_allclose(z, best, atol=1e-9)
        assert max(residuals[-1]) < 1e-8 < min(residuals[0])


def test_consensus_of_several_goes_as_the_formulas_say():
    """Each w by SGD with the gradient of the augmented Lagrangian on its own minibatches, without workers."""
    workers, local, rho, rounds = 3, 2, 0.5, 4
    given = task("consensus", workers, rho=rho, local=local)
    taught = lessons()
    card = taught.card(WIDTHS, 0)
    nets = [Layers(card, 1, CPU) for _ in range(workers)]
    z = nets[0].vector.clone()
    duals = [torch.zeros_like(z) for _ in nets]
    residuals = []
    for exchange in range(rounds):
        for k, net in enumerate(nets):
            for i in range(local):
                x, y = taught.batch((exchange * local + i) * workers + k, given.batch)
                net.gradient.zero_()
                torch.nn.functional.cross_entropy(net(x), y).backward()
                pulled = net.gradient + duals[k] + rho * (net.vector - z)
                with torch.no_grad():
                    net.vector -= RATE * pulled
        before, z = (z, torch.stack([n.vector + d / rho for n, d in zip(nets, duals, strict=True)]).mean(0))
        for net, dual in zip(nets, duals, strict=True):
            dual += rho * (net.vector - z)
        primal = torch.stack([net.vector - z for net in nets]).square().mean().sqrt()
        residuals.append((float(primal), rho * float((z - before).square().mean().sqrt())))
    for found, _, [piece] in trained(Consensus, given, rounds * workers * local):
        assert (piece.updates, piece.examples) == (rounds, rounds * workers * local * given.batch)
        torch.testing.assert_close(found, z, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(piece.residuals, residuals, rtol=1e-3)


@each("workers", [1, 2, 3, 5])
def test_layers_are_split_so_that_the_dearest_share_is_smallest(workers):
    draw = np.random.default_rng(workers)
    for _ in range(20):
        costs = draw.random(6).tolist()
        every = ((0, *cuts) for cuts in combinations(range(1, 6), workers - 1))

        def dearest(first, costs=costs):
            ends = [*first[1:], 6]
            return max(sum(costs[a:b]) for a, b in zip(first, ends, strict=True))

        assert dearest(split(costs, workers)) == pytest.approx(min(map(dearest, every)))
    with pytest.raises(ValueError, match="6 layers cannot"):
        split(costs, 7)


def test_a_simulated_pipeline_goes_at_the_pace_of_its_slowest_worker():
    even = [Stage(1.0, 2.0)] * 4
    assert speed_up(even, 4000) == pytest.approx(4.0, rel=1e-2)
    assert speed_up([Stage(1.0, 2.0)], 10) == pytest.approx(1.0)
    uneven = [Stage(1.0, 2.0), Stage(2.0, 4.0)]
    assert speed_up(uneven, 4000) == pytest.approx(9 / 6, rel=1e-2)
    # Full: nobody does two things at once, and a batch goes back only after it went forward above.
    slots = simulated([Stage(1.0, 1.0, 0.5), Stage(2.0, 1.0, 0.5), Stage(1.0, 1.0)], 12)
    assert len(slots) == 2 * 3 * 12
    begun = {(s.worker, s.batch, s.backward): s for s in slots}
    for s in slots:
        source = begun.get((s.worker + (1 if s.backward else -1), s.batch, s.backward))
        assert source is None or s.begin >= source.end + 0.5 - 1e-9
    for worker in range(3):
        # As in `pipelined`: as many minibatches ahead as updates are late.
        ways = [s.backward for s in slots if s.worker == worker]
        assert ways.index(True) == 2 * (2 - worker) + 1
        own = sorted((s.begin, s.end) for s in slots if s.worker == worker)
        assert all(a[1] <= b[0] for a, b in pairwise(own))


def test_a_job_gives_a_piece_of_each_task_in_each_round():
    tasks = [
        task("synchronous", 1),
        msgspec.structs.replace(task("pipelined", 2, split=(0, 2)), batches=5),
        msgspec.structs.replace(task("asynchronous", 2), batches=4),
        task("consensus", 3, rho=0.1),
    ]
    job = Job(tasks=tasks, data="", rounds=3, widths=WIDTHS, context=1)
    pieces = run_job(job)
    assert sorted((p.task, p.round) for p in pieces) == [(t, r) for t in range(4) for r in range(3)]
    for piece in pieces:
        assert len(piece.reports) == tasks[piece.task].ranks
        assert all(np.isfinite(piece.segments))
        assert all(bool(r.spans) == (piece.round == 2) for r in piece.reports)
    piped = [p for p in pieces if p.task == 1]
    # Up 16 × 6 values a minibatch and as many gradients down, in both workers' books.
    assert [sum(r.bytes for r in p.reports) for p in piped] == [5 * 4 * 16 * 6 * 4] * 3
    rates = [piece.segments for piece in pieces if piece.task == 0]
    assert np.mean(rates[-1]) < np.mean(rates[0])


def test_minibatches_are_the_same_wherever_they_are_taken_and_go_over_all_frames():
    taught = lessons()
    whole, classes = taught.batch(3, 24)
    shares = [taught.batch(3, 24, share, 3) for share in range(3)]
    assert torch.equal(torch.cat([x for x, _ in shares]), whole)
    assert torch.equal(torch.cat([y for _, y in shares]), classes)
    epoch = torch.cat([taught.batch(n, 24)[0][:, 1] for n in range(4)])
    frames = torch.from_numpy(taught.taught.pool.frames.heard)
    assert torch.equal(epoch.sort(0).values, frames.sort(0).values)
    assert not torch.equal(taught.batch(4, 24)[1], taught.batch(0, 24)[1])
    with pytest.raises(BadInput, match="97 needs as many examples, and there are 96"):
        taught.batch(0, 97)


def test_a_loss_that_is_no_number_is_that_of_a_net_that_diverged():
    for said, loss in ((torch.nan, DIVERGED), (0.0, np.log(CLASSES))):
        found = lessons().losses(lambda x, said=said: torch.full((len(x), CLASSES), said), CPU)
        assert found == pytest.approx([loss] * len(found))


def test_all_workers_have_the_first_ones_data():
    own = lessons()

    def work(world, group):
        got = labelled.shared(world, own if world.rank == 0 else None)
        return [t.numpy() for t in got.batch(2, 16)], got.examined, got.classes

    for (x, y), known, classes in together(3, work):
        for mine, right in zip((x, y), own.batch(2, 16), strict=True):
            np.testing.assert_array_equal(mine, right)
        np.testing.assert_array_equal(known, own.examined)
        assert classes == CLASSES


def test_data_are_read_with_their_labels(tmp_path):
    write_shard(tmp_path, [3, 4, labels.UNLABELLED, 4])
    found, states = (labelled.read(tmp_path, classes, 0, 1) for classes in ("senones", "states"))
    assert found.taught.known.tolist() == found.examined.tolist() == [0, 1, 3]
    assert found.taught.targets[found.taught.known].tolist() == [3, 4, 4]
    assert states.classes < found.classes
    assert len(states) == 3
