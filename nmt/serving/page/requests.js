// Asking the server, and what it has answered.

const HYPOTHESES = 5;
const PASSING = [429, 502, 503, 504]; // statuses that pass
const MOST_REMEMBERED = 500; // lines

class Refusal extends Error {
  /** `passes`: whether it may be worth asking again. */
  constructor(message, passes) {
    super(message);
    this.passes = passes;
  }
}

/** Paths are relative, so that the page works below any path of a proxy. */
async function ask(path, content, signal) {
  const headers = { "Content-Type": "application/json" };
  if (element("key")?.value) headers["X-API-Key"] = element("key").value;
  let answer;
  try {
    answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(content), signal });
  } catch (error) {
    throw error.name === "AbortError" ? error : new Refusal("The server does not answer.", true);
  }
  if (answer.ok) return answer;
  const { error } = await answer.json().catch(() => ({ error: `The server answers ${answer.status}.` }));
  throw new Refusal(error, PASSING.includes(answer.status));
}

/** What a column asks, once at a time. If the server cannot answer now, it is asked again on demand. */
class Errand {
  constructor(column, action) {
    Object.assign(this, { column, action, abort: null });
  }

  stop() {
    this.abort?.abort();
  }

  async start() {
    this.stop();
    this.abort = new AbortController();
    try {
      await this.action(this.column, this.abort.signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof Refusal)) throw error;
      complain(this.column, error.message, error.passes ? () => this.start() : null);
    }
  }
}

// --- what is known of lines -----------------------------------------------------------------------------------------

const remembered = new Map(); // hypotheses by model and line

const keyOf = (model, line) => `${model.name}\n${line}`;

function recall(model, line) {
  return remembered.get(keyOf(model, line));
}

function remember(model, line, hypotheses) {
  remembered.delete(keyOf(model, line));
  remembered.set(keyOf(model, line), hypotheses);
  if (remembered.size > MOST_REMEMBERED) remembered.delete(remembered.keys().next().value);
}

/** Ask for the hypotheses of lines, unless they are known. */
async function fetchLines(model, lines, alignment, signal) {
  const isKnown = (line) => recall(model, line) && (!alignment || recall(model, line)[0]?.alignment !== undefined);
  const missing = [...new Set(lines)].filter((line) => line.trim() && !isKnown(line));
  if (!missing.length) return;
  const content = { q: missing, model: model.name, n_best: HYPOTHESES, alignment };
  const answer = await (await ask("translate", content, signal)).json();
  answer.lines.forEach(([line], at) => {
    if (!alignment) for (const hypothesis of line?.hypotheses ?? []) delete hypothesis.alignment; // null: not asked for
    remember(model, missing[at], Object.assign(line?.hypotheses ?? [], { unknown: answer.unknownCharacters[at] }));
  });
}
