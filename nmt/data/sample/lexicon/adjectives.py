"""Adjectives, and which go with which group of nouns."""

from functools import cache
from typing import NamedTuple


class Adjective(NamedTuple):
    """An adjective: its English form, German predicate form (``teuer``) and the stem that takes endings (``teur-``)."""

    english: str
    german: str
    stem: str


_ADJECTIVES = """big groß, small klein, old alt, new neu, young jung, beautiful schön, red rot, blue blau, green grün,
    white weiß, black schwarz, brown braun, expensive teuer teur, cheap billig, cold kalt, warm warm, hot heiß,
    fresh frisch, good gut, delicious lecker, friendly freundlich, tired müde müd, hungry hungrig, happy glücklich,
    sad traurig, clever klug, ill krank, famous berühmt, rich reich, interesting interessant, boring langweilig,
    exciting spannend, long lang, short kurz, dirty schmutzig, clean sauber, heavy schwer, modern modern,
    quiet ruhig, dark dunkel dunkl, empty leer, full voll, broken kaputt"""

ADJECTIVES = {
    words[0]: Adjective(words[0], words[1], words[-1]) for words in (entry.split() for entry in _ADJECTIVES.split(","))
}
CHANGING = ("tired", "hungry", "happy", "sad", "ill")  # the adjectives that may be true today only

_ADJECTIVES_OF = {
    "person": "young old friendly tired hungry happy sad clever ill famous rich",
    "family": "old friendly tired happy sad clever ill rich",
    "animal": "big small old young hungry tired black white brown",
    "food": "big small fresh delicious cheap expensive good",
    "dish": "hot warm cold delicious good",
    "staple": "fresh delicious cheap expensive good",
    "drink": "cold warm good cheap expensive",
    "reading": "old new good interesting boring exciting long short",
    "clothes": "red blue green white black brown new old warm beautiful expensive cheap dirty clean",
    "vehicle": "new old red blue green white black expensive cheap modern dirty",
    "furniture": "new old big small white brown beautiful expensive heavy modern",
    "opening": "big small white green new old",
    "container": "heavy empty full big small black red old",
    "device": "new old modern expensive cheap broken",
    "thing": "new old beautiful small big cheap expensive",
    "gift": "beautiful expensive small big",
    "art": "old new good beautiful boring long short",
    "plant": "big small old green beautiful",
    "room": "big small cold warm dark clean dirty quiet",
    "building": "big small old new modern beautiful",
    "outdoors": "big small beautiful quiet old",
    "spot": "big small beautiful quiet",
}


@cache
def adjectives(group: str) -> tuple[Adjective, ...]:
    """Return the adjectives that go with a group of nouns."""
    return tuple(ADJECTIVES[name] for name in _ADJECTIVES_OF.get(group, "").split())
