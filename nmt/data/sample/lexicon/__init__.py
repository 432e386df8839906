"""The bilingual lexicon: what a dictionary knows, and nothing about syntax.

Every entry pairs one English word with one German word, so that a translation never has to choose. The tables are
written the way a learner's dictionary prints them and are parsed once, on import:

* nouns    ``"boy boys w Junge Jungen"``: English singular and plural, gender (``m f n``, or ``w`` for a masculine noun
  of the weak declension), German singular and plural; ``-`` stands for "has no plural";
* verbs    ``"turn+on turns turned", "ein+schalten schaltet hat geschaltet"``: the principal parts, with ``+`` behind
  a particle, which the other forms do not repeat, and the auxiliary of the perfect before the participle;
* phrases  ``"in/a the/b evening/c = am/ab Abend/c"``: the letters after the slash say which words translate each other.
"""
