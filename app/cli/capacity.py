"""How many streams this machine carries: latency, throughput and memory by number of streams, and where it bends.

    asrscope capacity --preset gmm-quick
    asrscope capacity --streams 1..32 --cores 2 --set stream.chunk_ms=80 --bound 0.4 --out calls
    asrscope capacity --preset dnn --streams 8 --audio calls/ --json

A stream is a process `asrscope run` of one thread, without a recorder, whose sound arrives on the clock whether or
not it keeps up. N streams share the cores. N is doubled until the p99 of the delay is over --bound, or a queue grows;
then the bend is bisected, and both sides of it are measured three times. The delay is the time from the end of a word
until it is first shown, without emission: what the search waits for at any load. No more streams are tried than fit
into free memory.

--out names a folder; the same command with the same --out goes on after a stop. Run nothing else meanwhile.
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.cli import _output, _pipeline
from app.model import capacity as model
from app.model import report_lines
from app.model.document import Document, Drawing, Notes, Table, number
from app.model.report import Tree
from pipelines import config as settings
from pipelines.config.presets import Preset
from pipelines.labs.chart import Axis, Chart, Layer, Line, Mark
from profiler.errors import BadInput, Cancelled
from profiler.machine import cpu_limit
from profiler.plain import counted

if TYPE_CHECKING:
    from app.model.capacity import Figures
    from pipelines.experiments.capacity.streams import Sound
    from pipelines.experiments.capacity.study import About, Kept, Study

CHUNK_MS: Final = 160  # Where the settings have no streaming
DELAY: Final = "without_emission"
MOST_STREAMS: Final = 4096
LONGEST_S: Final = 3600.0
MOST_SOUND_S: Final = 600.0  # Of the sound that is given; it is repeated anyway


def arguments(parser: argparse.ArgumentParser) -> None:
    _pipeline.add_arguments(parser, repeat=False)
    help, every = "how many streams to try (default: from 1 on until it bends)", (1, MOST_STREAMS)
    parser.add_argument("--streams", metavar="N|LO..HI", type=_streams, default=every, help=help)
    help = "processors that the streams share (default: all that this program may use)"
    _output.number_flag(parser, "--cores", 1, 1 << 16, help)
    help = f"most that the p99 of the delay may be (default: {model.BOUND_S:g})"
    parser.add_argument("--bound", metavar="SECONDS", type=_seconds, default=model.BOUND_S, help=help)
    help = "length of each measurement (default: as long as 400 words take, at least 20 s)"
    parser.add_argument("--seconds", metavar="S", type=_seconds, help=help)
    parser.add_argument("--out", metavar="FOLDER", help="folder of the study; a study that is there already goes on")
    _output.report_flags(parser)


def _streams(text: str) -> tuple[int, int]:
    low, dots, high = text.partition("..")
    read = _output.whole_number(1, MOST_STREAMS)
    ends = read(low), read(high if dots else low)
    if ends[0] > ends[1]:
        raise argparse.ArgumentTypeError(f"must be a range LO..HI, not {text!r}")
    return ends


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= LONGEST_S:
        raise argparse.ArgumentTypeError(f"must be seconds, above 0 and at most {LONGEST_S:g}, not {text!r}")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Measure and report."""
    cores = _cores(arguments.cores)
    preset = _preset(arguments)
    sound, about, notes = _sound(arguments, preset, len(cores))
    limit = cpu_limit.cores()
    from pipelines.experiments.capacity.streams import Bench, Machine, watts_of_idle
    from pipelines.experiments.capacity.study import Study, opened
    from profiler.files.paths import new_session_path
    from profiler.process import signals

    @functools.cache
    def figures(kept: Kept) -> Figures:
        streams = [model.read(kept.folder / f"{number + 1}.json") for number in range(kept.level.n)]
        decoded = [stream for stream in streams if stream is not None]
        if len(decoded) < len(streams):
            raise BadInput(f"{kept.folder.name}: a stream has decoded nothing.")
        return model.figures(kept.level, decoded, min(len(cores), limit or math.inf))

    named = Path(arguments.out) if arguments.out is not None else new_session_path("capacity").with_suffix(".capacity")
    folder = named.absolute()
    with (
        _output.Progress() as progress,
        signals.stopping() as stop,
        opened(folder, about),
        tempfile.TemporaryDirectory(prefix="asrscope-capacity-") as temporary,
    ):
        bench = Bench(
            command=lambda file: _command(arguments, preset, file),
            sound=sound,
            chunk_s=preset.config.stream.chunk_ms * 1e-3,
            machine=Machine(cores, watts_of_idle()),
            cancelled=stop.requested,
        )
        low, high = arguments.streams
        study = Study(folder, bench, low, high, arguments.seconds, lambda kept: figures(kept).holds(arguments.bound))
        once = Path(temporary) / "sound.wav"
        sound.write(once, sound.seconds, 0.0)
        try:
            study.run(_command(arguments, preset, once, pace=0), progress)
            status = 0
        except Cancelled:
            status = stop.status
        measured = {n: [*map(figures, kept)] for n, kept in study.measured.items()}
        tree = _report(study, measured, preset, arguments.bound, not status)
        tree["notes"] = [*notes, *tree["notes"]]
    _output.print_report(tree, arguments, document)
    if status:
        _output.complain("stopped; the same command with --out goes on with the study.")
    return status


def _cores(wanted: int | None) -> tuple[int, ...]:
    """The processors that the streams share. BadInput where there are not as many."""
    if not hasattr(os, "sched_getaffinity"):
        if wanted not in (None, os.cpu_count()):
            raise BadInput("--cores: this system does not let a program choose its processors; leave it out.")
        return tuple(range(os.cpu_count() or 1))
    there = sorted(os.sched_getaffinity(0))
    if wanted is not None and wanted > len(there):
        raise BadInput(f"--cores must be at most {len(there)}, the processors that this program may use; not {wanted}.")
    return tuple(there[:wanted])


def _preset(arguments: argparse.Namespace) -> Preset:
    preset = _pipeline.preset(arguments)
    set_keys = {settings.parse_assignment(text)[0] for text in arguments.set}
    if not preset.config.stream.chunk_ms:
        if "stream.chunk_ms" in set_keys:
            raise BadInput("A capacity is that of streams: stream.chunk_ms must be above 0.")
        preset = replace(preset, config=settings.replace(preset.config, "stream.chunk_ms", CHUNK_MS))
    for key, wanted in (("loop", False), ("threads", 1)):
        if settings.get(preset.config, key) != wanted:
            raise BadInput(f"Each stream is one process of one thread that ends: {key} must be {str(wanted).lower()}.")
    if "pace" in set_keys and preset.config.pace != 1.0:
        raise BadInput("The sound of a stream arrives on the clock: pace must be 1.")
    return replace(preset, config=settings.check(settings.replace(preset.config, "pace", 1.0)))


def _sound(arguments: argparse.Namespace, preset: Preset, cores: int) -> tuple[Sound, About, list[str]]:
    """What is said in the streams, what the folder of the study says of itself, and what is noted of the files."""
    if _pipeline.STANDARD_INPUT in arguments.audio:
        raise BadInput("--audio - can be read once, and every stream decodes it; name a file.")
    items = _pipeline.request(arguments, preset).playlist.items
    import hashlib
    import importlib.metadata

    from pipelines.audio import loading
    from pipelines.experiments.capacity.streams import Sound
    from pipelines.experiments.capacity.study import About
    from profiler.machine import describe
    from profiler.process import kernel_cache

    loaded: list[loading.Audio] = []
    noted: list[Tree] = []
    for item in items:
        loaded.append(loading.load(item.path, item.part))
        noted.append({"id": item.name, "notes": [*item.notes, *loaded[-1].notes]})
        if sum(sound.duration_s for sound in loaded) >= MOST_SOUND_S:
            break
    sound = Sound.of([each.samples for each in loaded], loaded[0].sample_rate)
    keys = [option.key for option in settings.options()]
    about = About(
        version=f"{importlib.metadata.version('asrscope')} {kernel_cache.digest()}",
        machine=str(describe.describe().get("cpu")),
        cores=cores,
        seconds=arguments.seconds,
        settings={key: settings.value_text(settings.get(preset.config, key)) for key in keys},
        sound=hashlib.sha256(sound.samples.tobytes()).hexdigest(),
    )
    return sound, about, report_lines.notes({"notes": [], "utterances": noted})


def _command(arguments: argparse.Namespace, preset: Preset, file: Path, pace: int = 1) -> list[str]:
    from profiler.process import children

    chunk = f"stream.chunk_ms={preset.config.stream.chunk_ms}"
    return [
        *children.python("-m", "app.cli.main", "run"),
        *_pipeline.source(arguments, preset),
        *("--set", chunk, "--set", f"pace={pace}", "--set", "loop=false"),
        *("--audio", str(file), "--no-profile", "--wait", "--json"),
    ]


def _report(
    study: Study, measured: Mapping[int, Sequence[Figures]], preset: Preset, bound_s: float, finished: bool
) -> Tree:
    from pipelines.experiments.capacity.study import capacity, first_failing, interval

    cores, limit = len(study.bench.machine.cores), cpu_limit.cores()
    failing = first_failing(study.outcomes)
    middle = {n: model.middle(each) for n, each in sorted(measured.items())}
    if failing is not None:
        why = model.reason(middle[min(middle)], middle[failing], cores, limit)
    elif not finished or not middle:
        why = "The study is not finished."
    elif study.short_of_memory:
        why = f"Memory is the limit, not time: {study.memory_text()}."
    else:
        why = f"All numbers of streams up to {max(middle)} hold; --streams asks for no more."
    return {
        "schema": 1,
        "study": str(study.folder),
        "finished": finished,
        "preset": preset.name,
        "cores": cores,
        "cpu_limit": limit,
        "threads_per_stream": 1,
        "chunk_ms": preset.config.stream.chunk_ms,
        "streams": [model.row(measured[n], bound_s) for n in middle],
        "capacity": capacity(study.outcomes),
        "capacity_range": list(interval(study.outcomes)),
        "bound_p99_s": bound_s,
        "why": why,
        "notes": [*filter(None, map(model.words_behind, middle.values()))],
        "bound_meaning": model.DELAY,
        "rtfx_meaning": model.RTFX,
        "memory_meaning": model.MEMORY,
    }


HEADLINE: Final = ("capacity", "capacity_range", "cores", "bound_p99_s", "finished", "cpu_limit")

LATENCIES: Final = {  # Of the table: title → key and quantiles
    "delay": (DELAY, ("p50", "p90", "p99")),
    "first shown": ("first_shown", ("p99",)),
    "stable": ("stable", ("p99",)),
    "final": ("final", ("p99",)),
    "chunk": ("chunk", ("p99",)),
}


def document(tree: Tree) -> Document:
    """How many streams hold, what limits them, and latency and costs by number of streams."""
    headline = model.headline(*(tree[key] for key in HEADLINE))
    headers = ["streams", *(f"{title} {q}, s" for title, (_, quantiles) in LATENCIES.items() for q in quantiles)]
    headers += ["RTF p50", "RTF p99", "RTFx", "memory, MB", "core-s per hour", "words", "queue grows", "held"]
    title = "Delay by number of streams"
    return Document(
        headline,
        [
            tree["why"],
            Notes(tree["notes"]),
            *([Drawing(title, chart(tree), headline)] if tree["streams"] else []),
            Table("Streams", headers, [*map(_cells, tree["streams"])]),
            f"Delay: {tree['bound_meaning']}.",
            f"RTFx: {tree['rtfx_meaning']}.",
            f"Memory: {tree['memory_meaning']}.",
            f"core-s: processor time. words: behind the percentiles. Chunks of {tree['chunk_ms']} ms.",
            f"Study: {tree['study']}",
        ],
    )


def _quantile(row: Tree, latency: str, quantile: str) -> float | None:
    return (row["latency_s"][latency] or {}).get(quantile)


def _cells(row: Tree) -> list[object]:
    seconds = [_quantile(row, key, quantile) for key, quantiles in LATENCIES.values() for quantile in quantiles]
    rtf = row["rtf"] or {}
    memory = None if row["memory_bytes"] is None else row["memory_bytes"] / 1e6
    return [
        row["n"],
        *(number(value, ".3f") for value in (*seconds, rtf.get("p50"), rtf.get("p99"))),
        number(row["rtfx"], ".1f"),
        number(memory, ".0f"),
        number(row["core_s_per_audio_hour"], ".0f"),
        row["words"],
        "yes" if row["queue_grows"] else "no",
        f"{row['held']} of {row['measurements']}",
    ]


def chart(tree: Tree) -> Chart:
    """p50 and p99 of the delay over the number of streams, with the bound; whiskers are the range of the repeats."""
    rows = [row for row in tree["streams"] if _quantile(row, DELAY, "p99") is not None]
    n = tuple(float(row["n"]) for row in rows)
    p50, p99 = (tuple(_quantile(row, DELAY, quantile) for row in rows) for quantile in ("p50", "p99"))
    low, high = (tuple((row["p99_range_s"] or (None, None))[end] for row in rows) for end in (0, 1))
    bound, found = tree["bound_p99_s"], tree["capacity"]
    layers: list[Layer] = [Line("p99", n, p99, low, high), Line("p50", n, p50), Mark(f"bound {bound:g} s", bound)]
    if found:
        layers.append(Mark(counted(found, "stream", "streams"), float(found), on="x"))
    x = Axis(f"streams on {counted(tree['cores'], 'core', 'cores')}", log=True)
    return Chart(x, Axis("delay", "s", log=True), tuple(layers))
