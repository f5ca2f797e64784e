"""Settings of the sound that is decoded, and of how it arrives."""

from typing import Annotated, ClassVar, Literal

import msgspec

from pipelines.config.options import Condition, Traits, setting

CHANNEL = setting(
    "Channel",
    "Of files with several channels: mix decodes their mean, left and right the first or second alone, each "
    "decodes every channel as an utterance of its own (calls with one speaker on each).",
)
RAW = setting(
    "Raw sound",
    "How sound lies in .raw and .pcm files, which have no header: rate:format or rate:format:channels, with "
    "formats u8, s8, s16le, s16be, s24le, s24be, s32le, s32be, f32le, f32be, f64le, f64be, mulaw and alaw. "
    "Folders and patterns then match these files as well.",
    like="16000:s16le",
)


class Audio(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which sound of a file is decoded."""

    channel: Annotated[Literal["mix", "left", "right", "each"], CHANNEL] = "mix"
    raw: Annotated[str, RAW] = ""


SOUND = ("audio.channel", "audio.raw")  # settings that decide what is decoded, and not how
LONGEST_MS = 5000
ON: Condition = {"stream.chunk_ms": range(1, LONGEST_MS + 1)}
ONE_PATH: Condition = {**ON, "search.device": ("cpu",), "search.lattice": (False,)}
"""An endpoint begins a new search, and so another lattice; only the search on the CPU knows its silence."""
COST = "Highest cost of the best complete path above that of the best path."


def _rule(title: str, help: str, most: float = 60.0, unit: str = "s") -> msgspec.Meta:
    return setting(f"Rule {title}", help, ge=0.0, le=most, unit=unit, switched_by="stream.endpoint", when=ONE_PATH)


CHUNK_MS = setting(
    "Chunk",
    "Audio arrives in chunks of this length on the clock and is decoded as it arrives, with a running cepstral "
    "mean; the session then has the latency of every word. At pace 0 nothing is waited for: the clock jumps to "
    "the arrival of the next chunk. Smaller chunks wait less and cost more. 0 is off.",
    unit="ms",
    words={0: "off"},
    steps=(0.0, 40.0, 80.0, 160.0, 320.0, 640.0),
    ge=0,
    le=LONGEST_MS,
)
ENDPOINT = setting(
    "Endpointing",
    "The words become final, and the search begins anew, when one of Kaldi's five rules finds an endpoint.",
    when=ONE_PATH,
)


class Stream(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How audio arrives. The rules of the endpoint and their defaults are Kaldi's (online2/online-endpoint.h)."""

    TRAITS: ClassVar = Traits(layer="Streaming")

    chunk_ms: Annotated[int, CHUNK_MS] = 0
    endpoint: Annotated[bool, ENDPOINT] = True
    rule1_silence_s: Annotated[
        float, _rule("1: silence", "Endpoint after this silence, with or without a word before.")
    ] = 5.0
    rule2_silence_s: Annotated[
        float, _rule("2: silence", "Endpoint after a word and this silence, at rule 2's cost.")
    ] = 0.5
    rule2_cost: Annotated[float, _rule("2: cost", COST, 100.0, "nat")] = 2.0
    rule3_silence_s: Annotated[
        float, _rule("3: silence", "Endpoint after a word and this silence, at rule 3's cost.")
    ] = 1.0
    rule3_cost: Annotated[float, _rule("3: cost", COST, 100.0, "nat")] = 8.0
    rule4_silence_s: Annotated[float, _rule("4: silence", "Endpoint after a word and this silence, at any cost.")] = 2.0
    rule5_length_s: Annotated[
        float, _rule("5: length", "Endpoint after this time, with or without silence.", 3600.0)
    ] = 20.0
