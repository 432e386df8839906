// What is put in beyond the limit of characters: whole words are taken, and the page says how much is left out.

/** Take as many whole words as there is room for; the browser would cut in mid-word, without a word. */
function limitInsertion(event) {
  const area = event.target;
  const text = (event.data ?? event.dataTransfer?.getData("text/plain") ?? "").replaceAll(/\r\n?/g, "\n");
  const room = data.characters - area.value.length + area.selectionEnd - area.selectionStart;
  if (text.length <= room || !event.cancelable) return;
  event.preventDefault();
  const head = wholeWords(text, room, area.lang);
  if (head) document.execCommand("insertText", false, head); // the one way that can be undone
  const left = (text.length - head.length).toLocaleString("en");
  showCut(`A text has at most ${data.characters.toLocaleString("en")} characters: the last ${left} of what you put in are left out.`);
}

/** The words of a text, from the first one on, that have room. */
function wholeWords(text, room, language) {
  const words = new Intl.Segmenter(language, { granularity: "word" }).segment(text.slice(0, room + 1_000));
  const ends = Array.from(words, ({ index }) => index).filter((index) => index <= room);
  return text.slice(0, ends.at(-1));
}

function showCut(text) {
  element("cut").textContent = text;
  element("cut").hidden = !text;
  if (text) element("announcement").textContent = text;
}
