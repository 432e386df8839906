"""Fixed phrases: adverbs, times, conjunctions, numbers."""

from nmt.corpora.sample.lexicon import ENTRIES
from nmt.corpora.sample.lexicon.verbs import slots

MANNERS: dict[str, str] = ENTRIES["manners"]

ON_WEEKDAY = tuple("on/a {}/b = am/a {}/b".format(*entry.split()) for entry in ENTRIES["weekdays"].split(", "))
TODAY = ("today/a = heute/a", "this/a morning/b = heute/a Morgen/b", "this/a evening/b = heute/a Abend/b")
THIS_WEEK = (
    "this/a week/b = diese/a Woche/b",
    "this/a year/b = dieses/a Jahr/b",
)
HABIT: tuple[str, ...] = tuple(ENTRIES["habits"])
YESTERDAY = ("yesterday/a = gestern/a",)
TOMORROW = ("tomorrow/a = morgen/a",)
NOW = ("now/a = jetzt/a",)

WHO = "who/a = wer/a"
QUESTION_WORDS = {"place": "where/a = wo/a", "time": "when/a = wann/a", "reason": "why/a = warum/a",
                  "objects": "what/a = was/a"}  # fmt: skip
WHEREABOUTS = slots("in room building park garden village; at station beach lake airport")
DEPENDENT = ("because weil", "although obwohl", "if wenn")
REPORTED = "that dass"
COORDINATE = ("and und", "but aber")

FREQUENCY = ("often/a = oft/a", "always/a = immer/a", "never/a = nie/a", "sometimes/a = manchmal/a")
SO_FAR = ("often/a = oft/a", "never/a = nie/a", "already/a = schon/a")

MONTHS = dict(entry.split() for entry in ENTRIES["months"].split(", "))

# ------------------------------------------------------------------------------------------------------------ numbers

ENGLISH_ONES = ("one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
                "seventeen eighteen nineteen").split()  # fmt: skip
GERMAN_ONES = ("ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
               "siebzehn achtzehn neunzehn").split()  # fmt: skip
ENGLISH_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
GERMAN_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
ENGLISH_ORDINALS = {1: "first", 2: "second", 3: "third", 5: "fifth", 8: "eighth", 9: "ninth", 12: "twelfth"}
GERMAN_ORDINALS = {1: "ersten", 3: "dritten", 7: "siebten", 8: "achten"}
