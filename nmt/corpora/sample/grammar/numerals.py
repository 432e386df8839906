"""Numbers, ordinals, dates and the clock, spelled in both languages."""

from nmt.corpora.sample.grammar.phrases import Phrase, aligned
from nmt.corpora.sample.lexicon import expressions


def english_number(number: int) -> str:
    """Spell 1 to 99: ``twenty-three``."""
    if number < 20:
        return expressions.ENGLISH_ONES[number - 1]
    tens, ones = divmod(number, 10)
    return expressions.ENGLISH_TENS[tens - 2] + (f"-{expressions.ENGLISH_ONES[ones - 1]}" if ones else "")


def german_number(number: int) -> str:
    """Spell 1 to 99, the ones before the tens: ``dreiundzwanzig``."""
    if number < 20:
        return expressions.GERMAN_ONES[number - 1]
    tens, ones = divmod(number, 10)
    return (f"{expressions.GERMAN_ONES[ones - 1]}und" if ones else "") + expressions.GERMAN_TENS[tens - 2]


def english_ordinal(number: int) -> str:
    """Spell an ordinal, which changes only the last part of the number: ``twenty-third``."""
    head, hyphen, last = english_number(number).rpartition("-")
    irregular = expressions.ENGLISH_ORDINALS.get(number if number < 20 else number % 10)
    regular = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return head + hyphen + (irregular or regular)


def german_ordinal(number: int) -> str:
    """Spell an ordinal in the dative, with *-ten* below twenty and *-sten* from there: ``dreiundzwanzigsten``."""
    regular = german_number(number) + ("ten" if number < 20 else "sten")
    return expressions.GERMAN_ORDINALS.get(number, regular)


def date(day: int, month: str) -> Phrase:
    """``on the third of May`` -> ``am dritten Mai``; *of* has no counterpart."""
    names = english_ordinal(day), month, german_ordinal(day), expressions.MONTHS[month]
    return aligned("on/a the/b {}/c of/ {}/d = am/ab {}/c {}/d".format(*names))


def clock(hour: int) -> Phrase:
    """``at five o'clock`` -> ``um fünf Uhr``."""
    return aligned(f"at/a {english_number(hour)}/b o'clock/c = um/a {german_number(hour)}/b Uhr/c")
