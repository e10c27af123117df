// Find the entry of the look-up page for a line of code from an article, as hookviz/course/article_index.py does.

const SHOWN = 3;
const LONGEST_GAP = 14;
const STRING = /'[^'\n]*'|"[^"\n]*"/g;
const COMMENT = /#.*/g;
const TOKEN = /[A-Za-z_][A-Za-z0-9_]*|[0-9]+(?:\.[0-9]+)?|\.\.\.|[-+*/]=|[^\sA-Za-z0-9_]/gu;
const NAME = /^[A-Za-z0-9_"]/;
const KEYWORDS = new Set(
  ("and as class def else for from global if import in is lambda nonlocal not or print return with").split(" "),
);

function splitCode(code, usualNames = new Map()) {
  const tokens = code.replace(STRING, '"').replace(COMMENT, "").match(TOKEN) ?? [];
  return tokens.map((token) => usualNames.get(token) ?? token);
}

function fits(token, wanted) {
  if (wanted === "_") return NAME.test(token) && !KEYWORDS.has(token);
  return token === wanted;
}

function startsWith(tokens, at, pattern, part) {
  if (part === pattern.length) return true;
  if (pattern[part] === "...") {
    for (let end = at; end <= Math.min(tokens.length, at + LONGEST_GAP); end += 1) {
      if (startsWith(tokens, end, pattern, part + 1)) return true;
    }
    return false;
  }
  return at < tokens.length && fits(tokens[at], pattern[part]) && startsWith(tokens, at + 1, pattern, part + 1);
}

function contains(tokens, pattern) {
  return tokens.some((_, start) => startsWith(tokens, start, pattern, 0));
}

function patternLength(pattern) {
  const fixed = pattern.filter((token) => token !== "_" && token !== "...");
  return fixed.reduce((length, token) => length + (NAME.test(token) ? 1 : 0.25), 0);
}

// The entries that fit best, the best first.
function lookUp(index, code) {
  const usualNames = new Map(
    Object.entries(index.usual_names).flatMap(([name, usual]) => usual.map((other) => [other, name])),
  );
  const tokens = splitCode(code, usualNames);
  const patterns = index.entries.map((entry) => new Map(entry.code.map((part) => [splitCode(part).join(" "), splitCode(part)])));
  const counts = new Map();
  for (const key of patterns.flatMap((own) => [...own.keys()])) counts.set(key, (counts.get(key) ?? 0) + 1);
  const found = index.entries.map((entry, at) => {
    let score = 0;
    for (const [key, pattern] of patterns[at]) {
      if (!contains(tokens, pattern)) continue;
      score += patternLength(pattern) * Math.log(1 + index.entries.length / counts.get(key));
    }
    return { entry, score };
  });
  const fitting = found.filter(({ score }) => score > 0).sort((one, other) => other.score - one.score);
  return fitting.slice(0, SHOWN).map(({ entry }) => entry);
}

globalThis.lookUp = lookUp;

// Put text between backquotes into <code>.
function addText(element, text) {
  text.split("`").forEach((part, at) => {
    if (at % 2 === 0) element.append(part);
    else element.append(Object.assign(document.createElement("code"), { textContent: part }));
  });
}

function showEntries(list, entries, texts) {
  list.replaceChildren();
  for (const { id, heading, says, today } of entries) {
    const item = document.createElement("li");
    const link = Object.assign(document.createElement("a"), { href: `#cell-id=${id}-text` });
    addText(link, heading);
    item.append(link);
    addText(item, `: ${says} → ${today}`);
    list.append(item);
  }
  if (!entries.length) list.append(Object.assign(document.createElement("li"), { textContent: texts.none, className: "none" }));
}

function startLookUp(box) {
  const index = JSON.parse(box.querySelector("script").textContent);
  const field = box.querySelector("textarea");
  const list = box.querySelector("ol");
  field.addEventListener("input", () => {
    if (field.value.trim()) showEntries(list, lookUp(index, field.value), index.texts);
    else list.replaceChildren();
  });
}

if (typeof document !== "undefined") {
  addEventListener("DOMContentLoaded", () => document.querySelectorAll(".look-up").forEach(startLookUp));
}
