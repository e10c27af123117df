// Searching a large trace: what a query asks for, and what answers it. The node tests run this file.

import { plain } from "./logic.js";

export const MOST = 12;
const NORMS = { nan: Number.isNaN, inf: (norm) => norm === Infinity, zero: (norm) => norm === 0 };
const COMPARED = {
  "<": (norm, limit) => norm < limit,
  "<=": (norm, limit) => norm <= limit,
  ">": (norm, limit) => norm > limit,
  ">=": (norm, limit) => norm >= limit,
  "=": (norm, limit) => norm === limit,
};

/** The rows of index.py, with what is compared with a query. */
export function readIndex(columns) {
  const names = Object.keys(columns);
  return columns.kind.map((_, i) => {
    const row = Object.fromEntries(names.map((name) => [name, columns[name][i]]));
    return { ...row, name: row.label.toLowerCase(), text: `${row.label} ${row.note}`.toLowerCase() };
  });
}

/** Which norms are asked for; undefined where a query is no such question. */
export function normsAsked(query) {
  const bare = plain(query).replace(/\s/g, "");
  const [, sign, limit] = /^norm([<>]=?|=)((?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)$/.exec(bare) ?? [];
  if (sign) return (norm) => COMPARED[sign](norm, Number(limit));
  return Object.hasOwn(NORMS, bare) ? NORMS[bare] : undefined;
}

/** How well a row answers: 0 is its name or number, 1 begins with the query, 2 has a part that does, 3 holds it; else -1. */
export function rankOf({ name, text, number }, query) {
  if (name === query || query.replace(/^#/, "") === String(number)) return 0;
  if (!query.split(" ").every((word) => text.includes(word))) return -1;
  if (name.startsWith(query)) return 1;
  return [".", " ", "(", "_", "#"].some((before) => text.includes(before + query)) ? 2 : 3;
}

/** The first hits, values before names and the better ones before others, and how many there are in all. */
export function seek(rows, frames, typed) {
  const query = typed.toLowerCase().trim().replace(/\s+/g, " ");
  if (!query) return { hits: [], count: 0 };
  const asked = normsAsked(query);
  const values = asked ? rows.flatMap((row) => valuesIn(row, frames, asked)).sort((one, other) => one.step - other.step) : [];
  const ranks = [[], [], [], []];
  for (const row of rows) ranks[rankOf(row, query)]?.push(row);
  const named = ranks.flat().map((row) => ({ ...row, step: row.steps[0] }));
  return { hits: [...values, ...named].slice(0, MOST), count: values.length + named.length };
}

/** The gradients that arrive at a node, of those that are asked for. */
function valuesIn(row, frames, asked) {
  if (row.number < 0) return [];
  const found = row.steps.filter((step) => frames[step].norm !== null && asked(numberOfNorm(frames[step].norm)));
  return found.map((step) => ({ ...row, kind: "value", step, norm: frames[step].norm }));
}

/** As outline has it: what is no finite number is in words. */
const numberOfNorm = (norm) => ({ nan: NaN, inf: Infinity })[norm] ?? norm;
