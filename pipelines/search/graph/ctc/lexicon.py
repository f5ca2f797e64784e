"""Words in the units of a CTC net, and L, the transducer from units to words.

Units are phones (pronounced by a lexicon, by the table that ships, by the G2P net of the wheel hama, or by a dictionary
in CMU's phones) or pieces of words, which spell them: pieces are joined in the order in which the net lists them, as
byte pair encoding does.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, pairwise, product
from typing import Final

from pipelines.models import dictionary as dictionaries
from pipelines.models.ctc.layouts import Units
from pipelines.models.dictionary import Dictionary, Pronunciation, listed
from pipelines.search.graph.ctc import g2p
from pipelines.search.graph.lexicon import Arc, add_chain, disambiguate, of_arcs
from pipelines.search.graph.openfst import Fst
from pipelines.search.graph.recipe import Recipe
from pipelines.search.graph.sources import FILLER, MARKS, NOTED

IPA: Final[Mapping[str, tuple[str, ...]]] = {
    "AA": ("ɑ",), "AE": ("æ",), "AH": ("ʌ", "ə"), "AO": ("ɔ",), "AW": ("aʊ",), "AY": ("aɪ",), "B": ("b",),
    "CH": ("t͡ʃ",), "D": ("d",), "DH": ("ð",), "EH": ("ɛ",), "ER": ("ɝ",), "EY": ("eɪ",), "F": ("f",), "G": ("ɡ",),
    "HH": ("h",), "IH": ("ɪ",), "IY": ("i",), "JH": ("d͡ʒ",), "K": ("k",), "L": ("l",), "M": ("m",), "N": ("n",),
    "NG": ("ŋ",), "OW": ("oʊ",), "OY": ("ɔɪ",), "P": ("p",), "R": ("ɹ",), "S": ("s",), "SH": ("ʃ",), "T": ("t",),
    "TH": ("θ",), "UH": ("ʊ",), "UW": ("u",), "V": ("v",), "W": ("w",), "Y": ("j",), "Z": ("z",), "ZH": ("ʒ",),
}  # fmt: skip
"""The phones of CMU's dictionary as the net of hama writes them."""
MOST_VARIANTS = 8  # Pronunciations that one of the dictionary gives rise to
MOST_MADE = 2000  # Words whose pronunciations are made although the dictionary has them: 45 s of work, kept afterwards
WORD_START = "▁"  # What pieces of words begin a word with (SentencePiece)


def phonetic(units: Units) -> bool:
    """Whether the units are phones as hama writes them."""
    return {phone for choice in IPA.values() for phone in choice} <= set(units.symbols)


class Lexicon:
    """How words are said in `units`; `missing`: words looked up that have no way."""

    def __init__(self, recipe: Recipe, units: Units, progress: Callable[[str, float], None]) -> None:
        silent = (units.blank, units.boundary)
        self._symbols = {symbol: n for n, symbol in enumerate(units.symbols) if n not in silent}
        self._words = dictionaries.read(recipe.dictionary) if recipe.dictionary else Dictionary({})
        self._table = dictionaries.read(recipe.table) if recipe.table else Dictionary({})
        self._g2p, self._progress = bool(recipe.g2p), progress
        begun = any(symbol[0] == WORD_START and symbol != WORD_START for symbol in self._symbols if symbol)
        self._start = WORD_START if begun or WORD_START in self._symbols else ""
        self._spells = not recipe.dictionary
        self.missing: list[str] = []

    def find(self, word: str) -> str | None:
        """The dictionary's entry of `word`, or the word; None where nothing says it, and for sentence marks."""
        if word.lower() in MARKS or FILLER.fullmatch(word):
            return None
        if (entry := self._words.find(word)) is not None:
            return entry
        if self._g2p or word in self._table or self._spelled(word):
            return word
        self.missing.append(word)
        return None

    def pronunciations(self, shown: Mapping[str, str]) -> tuple[Dictionary, list[str]]:
        """Return the words in `shown` (displayed word → entry) in units, the best way first, and notes.

        DictionaryError where the dictionary has phones that are none of the units.
        """
        made = self._made(shown)
        found: dict[str, tuple[Pronunciation, ...]] = {}
        notes = []
        for word, entry in shown.items():
            ways = list(made.get(word, ()))
            ways += [way for way in self._table.pronunciations.get(word, ()) if self._symbols.keys() >= set(way)]
            if entry in self._words:
                ways += self._in_units(self._words[entry])
            if not ways and (spelled := self._spelled(word)):
                ways.append(spelled)
            if ways:
                found[word] = tuple(dict.fromkeys(ways))
        words = Dictionary(found, self._words.path)
        words.check_phones(self._symbols)
        if lost := [word for word in shown if word not in found]:
            notes.append(f"words that the G2P net does not pronounce are left out: {listed(lost, NOTED, quote='')}")
        if self._words.has_probabilities:
            notes.append("probabilities of pronunciations in the dictionary are left out")
        return words, notes

    def _made(self, shown: Mapping[str, str]) -> Mapping[str, tuple[Pronunciation, ...]]:
        """Pronunciations by the G2P net: of words that only it can say, and of others if they are few."""
        if not self._g2p:
            return {}
        unlisted = [word for word in shown if word not in self._table]
        if len(unlisted) > MOST_MADE:
            unlisted = [word for word in unlisted if shown[word] not in self._words]
        return g2p.pronounce(unlisted, self._symbols, self._progress)

    def _in_units(self, ways: Iterable[Pronunciation]) -> Iterator[Pronunciation]:
        """Pronunciations of the dictionary in units: as they stand, or CMU's phones in IPA."""
        for way in ways:
            choices = [(p,) if p in self._symbols else IPA.get(p.rstrip("012"), (p,)) for p in way]
            yield from islice(product(*choices), MOST_VARIANTS)

    def _spelled(self, word: str) -> Pronunciation:
        """`word` in pieces; empty where there are none for it, or a lexicon or dictionary says what is said how."""
        if not self._spells:
            return ()
        forms = dict.fromkeys((word, word.upper(), word.lower()))
        return next(filter(None, (pieces(self._start + form, self._symbols) for form in forms)), ())


def pieces(text: str, rank: Mapping[str, int]) -> Pronunciation:
    """`text` in pieces by byte pair encoding: of neighbours that are a piece together, the one of least rank is joined.

    Empty where a character remains that is no piece.
    """
    parts = list(text)
    while joined := [(rank[a + b], n) for n, (a, b) in enumerate(pairwise(parts)) if a + b in rank]:
        _, n = min(joined)
        parts[n : n + 2] = [parts[n] + parts[n + 1]]
    return tuple(parts) if all(part in rank for part in parts) else ()


def transducer(ways: Iterable[tuple[int, tuple[int, ...], float]], units: Units, backoff_word: int) -> Fst:
    """L: `ways` are a word's label, the units and the cost of each pronunciation.

    Input labels are unit + 1, then `#0` (for back-off arcs of G, whose label is `backoff_word`), `#1` …, which tell
    homophones, and words that begin others, apart. Where the net has a unit between words it may stand there.
    """
    entries = list(ways)
    marks = disambiguate([units_of for _, units_of, _ in entries])
    backoff = len(units.symbols) + 1
    begin, between, n_states = 0, 1, 2
    arcs: list[Arc] = [(begin, backoff, backoff_word, 0.0, begin), (between, 0, 0, 0.0, begin)]
    if units.boundary is not None:
        arcs.append((between, units.boundary + 1, 0, 0.0, begin))
    for (word, units_of, cost), mark in zip(entries, marks, strict=True):
        labels = [unit + 1 for unit in units_of] + ([backoff + mark] if mark else [])
        n_states = add_chain(arcs, n_states, labels, (begin, between), word, cost)
    return of_arcs(arcs, n_states, begin, begin)
