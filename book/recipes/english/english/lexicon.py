"""Nouns and verbs with their forms, their meaning (synonyms share it) and their kinds, read from ``words.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

WORDS: dict[str, str] = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Word:
    """An adjective or an adverb. Two words with the same ``concept`` mean the same."""

    lemma: str
    concept: str


@dataclass(frozen=True)
class Noun(Word):
    """``kinds`` are its hypernyms, the nearest first; ``gender`` is "m", "f" or "" where the noun doesn't tell."""

    plural: str = ""
    kinds: tuple[str, ...] = ()
    gender: str = ""


@dataclass(frozen=True)
class Verb(Word):
    """``subject`` and ``object`` are the kinds it takes; object "-": none, "+": two, "that": a clause."""

    past: str = ""
    participle: str = ""
    subject: str = ""
    object: str = ""

    @property
    def third(self) -> str:
        """The form after he, she or it."""
        return _add_s(self.lemma)


def _add_s(lemma: str) -> str:
    if lemma.endswith(("s", "x", "z", "ch", "sh")):
        return lemma + "es"
    return lemma[:-1] + "ies" if lemma[-1] == "y" and lemma[-2] not in "aeiou" else lemma + "s"


def _add_ed(lemma: str) -> str:
    if lemma.endswith("e"):
        return lemma + "d"
    return lemma[:-1] + "ied" if lemma[-1] == "y" and lemma[-2] not in "aeiou" else lemma + "ed"


def article(following: str) -> str:
    """``a`` or ``an``, by the sound of the next word.

    >>> article("owl"), article("useful"), article("honest"), article("uncle")
    ('an', 'a', 'an', 'an')
    """
    silent = following.startswith(("honest", "hour", "heir"))
    like_you = following.startswith(("useful", "unusual", "university", "unicorn", "european"))
    like_you = like_you and not following.startswith("unusual")
    return "an" if silent or (following[0] in "aeiou" and not like_you) else "a"


def _lines(table: str) -> list[str]:
    return [line for line in table.replace("\n ", " ").split("\n") if line]


def _nouns() -> dict[str, Noun]:
    parents: dict[str, tuple[str, ...]] = dict.fromkeys(("person", "animal", "object", "text", "building", "plant"), ())
    result = {k: Noun(k, k, "people" if k == "person" else _add_s(k)) for k in parents}
    parents["food"] = ()
    for line in _lines(WORDS["nouns"]):
        kind, members = line.split(": ")
        name, parent = kind.split(" < ")
        above = (parent, *parents[parent])
        if name != "-":
            lemma = name.split("/")[0]
            parents[lemma] = above
            result |= {n.lemma: n for n in _noun(name, above)}
            above = (lemma, *above)
        for entry in members.split():
            result |= {n.lemma: n for n in _noun(entry, above)}
    return result


def _noun(entry: str, kinds: tuple[str, ...]) -> list[Noun]:
    results: list[Noun] = []
    for form in entry.split("="):
        lemma, _, plural = form.partition("/")
        gender = "m" if lemma in WORDS["male"].split() else "f" if lemma in WORDS["female"].split() else ""
        concept = results[0].concept if results else lemma
        results.append(Noun(lemma, concept, plural or _add_s(lemma), kinds, gender))
    return results


def _verbs() -> list[Verb]:
    results: list[Verb] = []
    for line in [*_lines(WORDS["verbs"]), *("person > that: " + WORDS[kind] for kind in ("factive", "belief"))]:
        kinds, members = line.split(": ")
        subject, target = kinds.split(" > ")
        for entry in members.split():
            concept = entry.split("=")[0].split("/")[0]
            for form in entry.split("="):
                lemma, past, participle = (*form.split("/"), "", "")[:3]
                past = past or _add_ed(lemma)
                results.append(Verb(lemma, concept, past, participle or past, subject, target))
    return results


def _groups(table: str) -> list[Word]:
    return [Word(form, entry.split("=")[0]) for entry in table.split() for form in entry.split("=")]


def _phrases(table: str) -> list[Word]:
    return [Word(p, p) for p in (" ".join(p.split()) for p in table.split("|"))]


NOUNS = _nouns()
VERBS = _verbs()
ADJECTIVES = {line.split(": ")[0]: _groups(line.split(": ")[1]) for line in _lines(WORDS["adjectives"])}
MANNERS = _groups(WORDS["manners"])
PLACES = _phrases(WORDS["places"])
TIMES = _phrases(WORDS["times"])
