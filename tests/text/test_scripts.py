"""Which text is written without spaces."""

import pytest

from nmt.text.scripts import join_texts, lacks_spaces, split_characters, splitter, word_spans

RAW = """ねこがにわにいます。|はい。|Tom Smithさんはどこにいますか。|这是一本书。|แมวอยู่ในสวน หมาอยู่ในบ้านหลังใหญ่ของฉัน|ແມວຢູ່ໃນສວນ|ឆ្មានៅក្នុងសួន
ကြောင်ကခြံထဲမှာရှိတယ်|བྱི་ལ་ཚལ་ཁང་ལ་ཡོད།""".replace("\n", "|").split("|")
SPACED = """A cat is in the garden.|Ja.|고양이가 정원에 있습니다.|ねこ が にわ に い ます 。|这 是 一 本 书 。|แมว อยู่ ใน สวน
The word ねこ means cat.""".replace("\n", "|").split("|")


def test_text_as_it_is_written_in_these_scripts_lacks_spaces() -> None:
    assert [text for text in RAW if not lacks_spaces(text)] == []
    assert [text for text in ("", *SPACED) if lacks_spaces(text)] == []
    assert lacks_spaces("\n".join(["ねこ がいます。", *RAW])), "a whole text is judged by most of it"
    assert not lacks_spaces("\n".join(["はい。", *SPACED]))


def test_a_text_is_split_at_spaces_or_into_characters() -> None:
    assert splitter(["ねこ が いる", "はい"])("はい どうぞ") == ["はい", "どうぞ"]
    split = splitter(RAW[:2])
    assert split("Tom Smithさんは3時。") == ["Tom", "Smith", "さ", "ん", "は", "3", "時", "。"]
    assert split("ที่นี่") == ["ที่", "นี่"], "a mark belongs to its character"
    assert splitter([])("a b") == ["a", "b"]


def test_parts_of_a_line_cover_its_words() -> None:
    parts = [" ", "ねこ", "が", "", " To", "m", "時", "。"]  # an empty part: the rest of a character's bytes
    assert split_characters("".join(parts)) == ["ね", "こ", "が", "Tom", "時", "。"]
    assert word_spans(parts) == [(0, 0), (0, 2), (2, 3), (2, 3), (3, 4), (3, 4), (4, 5), (5, 6)]


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (["A first.", "", "A second."], "A first. A second."),
        (["これは文です。", "それも文です。"], "これは文です。それも文です。"),
        (["他说：", "“NASA很大”", "对"], "他说：“NASA很大”对"),
        (["他说：“对。”", "“不对。”"], "他说：“对。”“不对。”"),
        (["我喜欢 New York 和 LA。", "你呢？"], "我喜欢 New York 和 LA。你呢？"),
        (["我用iPhone", "Apple的"], "我用iPhone Apple的"),
        (["หมาวิ่ง", "แมวนอน"], "หมาวิ่ง แมวนอน"),
        (["ခွေးပြေးသည်။", "ကြောင်အိပ်သည်။"], "ခွေးပြေးသည်။ ကြောင်အိပ်သည်။"),
        (["これ は 文 です 。", "それ も 文 です 。"], "これ は 文 です 。 それ も 文 です 。"),
        (["한국어 문장", "하나 더"], "한국어 문장 하나 더"),
        (["He lives in 東京", "and works there."], "He lives in 東京 and works there."),
        ([], ""),
    ],
)
def test_sentences_are_joined_by_a_space_where_their_script_has_one(parts: list[str], text: str) -> None:
    assert join_texts(parts) == text
