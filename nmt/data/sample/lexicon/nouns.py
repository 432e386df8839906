"""Nouns by group, and the compounds that German makes of them."""

from typing import NamedTuple

from nmt.data.sample.lexicon.function_words import Case


class Noun(NamedTuple):
    """A noun; an English noun of several words (``kitchen table``) is one German compound (``Küchentisch``)."""

    english: str
    english_plural: str
    gender: str
    german: str
    german_plural: str
    weak: bool
    group: str

    def inflect(self, case: Case, plural: bool) -> str:
        """Return the German form: dative plurals end in *-n* or *-s*, weak nouns in *-n* outside the nominative."""
        if plural:
            needs_n = case == "dat" and self.german_plural[-1] not in "ns"
            return self.german_plural + "n" * needs_n
        return self.german_plural if self.weak and case != "nom" else self.german


_NOUNS = {
    "name": "Anna - f Anna -, Lisa - f Lisa -, Maria - f Maria -, Peter - m Peter -, Max - m Max -, Paul - m Paul -",
    "place": "Berlin - n Berlin -, Hamburg - n Hamburg -, Munich - n München -, Vienna - n Wien -, Cologne - n Köln -",
    "person": """man men m Mann Männer, woman women f Frau Frauen, child children n Kind Kinder,
        boy boys w Junge Jungen, girl girls n Mädchen Mädchen, teacher teachers m Lehrer Lehrer,
        doctor doctors m Arzt Ärzte, student students w Student Studenten, neighbour neighbours w Nachbar Nachbarn,
        baker bakers m Bäcker Bäcker, gardener gardeners m Gärtner Gärtner, guest guests m Gast Gäste""",
    "family": """mother - f Mutter -, father - m Vater -, brother brothers m Bruder Brüder,
        sister sisters f Schwester Schwestern, uncle uncles m Onkel Onkel, aunt aunts f Tante Tanten,
        grandmother - f Großmutter -, grandfather - m Großvater -, friend friends m Freund Freunde""",
    "animal": """dog dogs m Hund Hunde, cat cats f Katze Katzen, horse horses n Pferd Pferde,
        bird birds m Vogel Vögel, mouse mice f Maus Mäuse, cow cows f Kuh Kühe, pig pigs n Schwein Schweine""",
    "food": """apple apples m Apfel Äpfel, egg eggs n Ei Eier, orange oranges f Orange Orangen,
        tomato tomatoes f Tomate Tomaten, potato potatoes f Kartoffel Kartoffeln, sausage sausages f Wurst Würste,
        cake cakes m Kuchen Kuchen""",
    "dish": "soup soups f Suppe Suppen, salad salads m Salat Salate",
    "staple": """bread - n Brot -, cheese - m Käse -, meat - n Fleisch -, chocolate - f Schokolade -,
        rice - m Reis -, butter - f Butter -""",
    "drink": """water - n Wasser -, milk - f Milch -, coffee - m Kaffee -, tea - m Tee -, wine - m Wein -,
        beer - n Bier -, juice - m Saft -""",
    "reading": """book books n Buch Bücher, newspaper newspapers f Zeitung Zeitungen, letter letters m Brief Briefe,
        story stories f Geschichte Geschichten, novel novels m Roman Romane""",
    "clothes": """coat coats m Mantel Mäntel, dress dresses n Kleid Kleider, shirt shirts n Hemd Hemden,
        hat hats m Hut Hüte, jacket jackets f Jacke Jacken, skirt skirts m Rock Röcke""",
    "vehicle": """car cars n Auto Autos, bicycle bicycles n Fahrrad Fahrräder, bus buses m Bus Busse,
        train trains m Zug Züge, boat boats n Boot Boote""",
    "furniture": """table tables m Tisch Tische, chair chairs m Stuhl Stühle, bed beds n Bett Betten,
        cupboard cupboards m Schrank Schränke, shelf shelves n Regal Regale""",
    "opening": "door doors f Tür Türen, window windows n Fenster Fenster",
    "container": "bag bags f Tasche Taschen, suitcase suitcases m Koffer Koffer, box boxes f Kiste Kisten",
    "device": """lamp lamps f Lampe Lampen, radio radios n Radio Radios, computer computers m Computer Computer,
        camera cameras f Kamera Kameras, clock clocks f Uhr Uhren""",
    "thing": """key keys m Schlüssel Schlüssel, picture pictures n Bild Bilder, cup cups f Tasse Tassen,
        plate plates m Teller Teller, knife knives n Messer Messer, glass glasses n Glas Gläser,
        ball balls m Ball Bälle, bottle bottles f Flasche Flaschen, umbrella umbrellas m Regenschirm Regenschirme""",
    "gift": "gift gifts n Geschenk Geschenke, flower flowers f Blume Blumen",
    "art": "song songs n Lied Lieder, film films m Film Filme",
    "plant": "tree trees m Baum Bäume",
    "room": "kitchen kitchens f Küche Küchen, room rooms n Zimmer Zimmer, cellar cellars m Keller Keller, "
    "office offices n Büro Büros",
    "building": """house houses n Haus Häuser, school schools f Schule Schulen, museum museums n Museum Museen,
        hotel hotels n Hotel Hotels, restaurant restaurants n Restaurant Restaurants, church churches f Kirche Kirchen,
        library libraries f Bibliothek Bibliotheken, supermarket supermarkets m Supermarkt Supermärkte,
        hospital hospitals n Krankenhaus Krankenhäuser""",
    "outdoors": """garden gardens m Garten Gärten, park parks m Park Parks, forest forests m Wald Wälder,
        village villages n Dorf Dörfer, city cities f Stadt Städte""",
    "spot": """station stations m Bahnhof Bahnhöfe, beach beaches m Strand Strände, lake lakes m See Seen,
        airport airports m Flughafen Flughäfen""",
}

# The first part of a German compound, and the heads that it joins: the compound inherits all else from its head.
_COMPOUNDS = {
    "kitchen": ("Küchen", "table chair cupboard door window clock lamp knife"),
    "garden": ("Garten", "table chair door"),
    "apple": ("Apfel", "juice cake tree"),
    "orange": ("Orangen", "juice"),
    "chocolate": ("Schokoladen", "cake"),
    "tomato": ("Tomaten", "soup salad"),
    "potato": ("Kartoffel", "soup salad"),
    "school": ("Schul", "bag book bus"),
    "winter": ("Winter", "coat jacket"),
    "summer": ("Sommer", "dress hat"),
    "coffee": ("Kaffee", "cup"),
    "tea": ("Tee", "cup"),
    "wine": ("Wein", "glass bottle"),
    "house": ("Haus", "key"),
    "car": ("Auto", "key door"),
    "office": ("Büro", "chair key"),
    "city": ("Stadt", "park museum"),
    "village": ("Dorf", "church school"),
}


def _noun(entry: str, group: str) -> Noun:
    """Parse one dictionary entry, as ``"man men m Mann Männer"``."""
    english, plural, gender, german, german_plural = entry.split()
    weak = gender == "w"
    return Noun(english, plural.strip("-"), "m" if weak else gender, german, german_plural.strip("-"), weak, group)


def _compound(modifier: str, prefix: str, head: Noun) -> Noun:
    """Join a modifier to its head: ``kitchen`` + ``table`` -> ``Küchentisch``."""
    return head._replace(
        english=f"{modifier} {head.english}",
        english_plural=head.english_plural and f"{modifier} {head.english_plural}",
        german=prefix + head.german.lower(),
        german_plural=head.german_plural and prefix + head.german_plural.lower(),
    )


def _read_nouns() -> dict[str, Noun]:
    """Return every noun by its English singular, simple nouns first."""
    simple = [_noun(entry, group) for group, entries in _NOUNS.items() for entry in entries.split(",")]
    heads = {noun.english: noun for noun in simple}
    compounds = [
        _compound(modifier, prefix, heads[head])
        for modifier, (prefix, names) in _COMPOUNDS.items()
        for head in names.split()
    ]
    return heads | {noun.english: noun for noun in compounds}


NOUNS = _read_nouns()


def nouns(names: str) -> tuple[Noun, ...]:
    """Return the nouns of groups (``food``) or by head (``cake``: also ``apple cake``), each once, in order."""
    keys = names.split()
    return tuple(noun for noun in NOUNS.values() if noun.group in keys or noun.english.split()[-1] in keys)
