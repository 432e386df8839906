"""The bilingual grammar: from phrases with marks to sentences in both languages and the links between their words.

A sentence is built once, in both languages at the same time. The building block is the :class:`Phrase`: its English
words and its German words, each in its own order. Every word carries *marks*, one for each piece of meaning that it
expresses, and two words translate each other when they share a mark. A word that fuses several pieces of meaning
carries all of their marks, and that one rule accounts for

* compounds, ``kitchen table`` -> ``Küchentisch``, and contractions, ``in the`` -> ``im``;
* separable verbs, ``opens`` -> ``macht`` ... ``auf``, and their fused forms, ``..., weil er die Tür aufmacht``;
* ``not ... a`` -> ``kein``; and do-support, where ``does`` bears the finiteness of the German verb.

So the word links of an :class:`Example` are never guessed from the finished sentence: they hold by construction.
"""
