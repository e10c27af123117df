// Searching a trace: what a query asks for, and what answers it. The node tests run this file.

import { normalizeText } from "./keys.js";

/** @import { Language } from "./language.js" */
/** @import { IndexChunk, Norm } from "./payload" */
/** @import { Step } from "./types" */

/** No more hits than this are listed. */
export const MAX_HITS = 12;

/**
 * @typedef {object} Entry a thing that has a name
 * @property {string} kind
 * @property {string} label
 * @property {string} note
 * @property {number} number a node's; else -1
 * @property {string} view the picture in which it is seen
 * @property {number[]} steps
 * @property {string} name what a query is compared with
 * @property {string} text
 */
/** @typedef {Entry & { step?: number, norm?: Norm }} Hit */

/** @type {{ [query: string]: (norm: number) => boolean }} */
const NORM_QUERIES = { nan: Number.isNaN, inf: (norm) => norm === Infinity, zero: (norm) => norm === 0 };
/** @type {{ [sign: string]: (norm: number, limit: number) => boolean }} */
const COMPARISONS = {
  "<": (norm, limit) => norm < limit,
  "<=": (norm, limit) => norm <= limit,
  ">": (norm, limit) => norm > limit,
  ">=": (norm, limit) => norm >= limit,
  "=": (norm, limit) => norm === limit,
};

/**
 * The entries of an index, with what a query is compared with.
 * @param {IndexChunk} part
 * @param {Language} language
 * @returns {Entry[]}
 */
export function readIndex(part, language) {
  return part.kind.map((kind, i) => {
    const [label, note] = [part.label[i], part.note[i]].map((message) => language.read(message));
    const [number, view, steps] = [part.number[i], part.view[i], part.steps[i]];
    return { kind, label, note, number, view, steps, name: label.toLowerCase(), text: `${label} ${note}`.toLowerCase() };
  });
}

/**
 * Which norms are asked for; undefined where a query is no such question.
 * @param {string} query
 * @returns {((norm: number) => boolean) | undefined}
 */
export function parseNormQuery(query) {
  const bare = normalizeText(query).replace(/\s/g, "");
  const [, sign, limit] = /^norm([<>]=?|=)((?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)$/.exec(bare) ?? [];
  if (sign) return (norm) => COMPARISONS[sign](norm, Number(limit));
  return Object.hasOwn(NORM_QUERIES, bare) ? NORM_QUERIES[bare] : undefined;
}

/**
 * How well an entry answers: 0 is its name or number, 1 begins with the query, 2 has a part that does, 3 holds it; else
 * -1.
 * @param {Pick<Entry, "name" | "text" | "number">} entry
 * @param {string} query
 */
export function rankEntry({ name, text, number }, query) {
  if (name === query || query.replace(/^#/, "") === String(number)) return 0;
  if (!query.split(" ").every((word) => text.includes(word))) return -1;
  if (name.startsWith(query)) return 1;
  return [".", " ", "(", "_", "#"].some((before) => text.includes(before + query)) ? 2 : 3;
}

/**
 * The first hits, gradients before names and the better names before others, and how many there are in all.
 * @param {Entry[]} entries
 * @param {Step[]} steps
 * @param {string} typed
 * @returns {{ hits: Hit[], count: number }}
 */
export function search(entries, steps, typed) {
  const query = typed.toLowerCase().trim().replace(/\s+/g, " ");
  if (!query) return { hits: [], count: 0 };
  const asked = parseNormQuery(query);
  const gradients = asked ? entries.flatMap((entry) => matchingGradients(entry, steps, asked)) : [];
  gradients.sort((one, other) => one.step - other.step);
  /** @type {Entry[][]} */
  const ranks = [[], [], [], []];
  for (const entry of entries) ranks[rankEntry(entry, query)]?.push(entry);
  const named = ranks.flat().map((entry) => ({ ...entry, step: entry.steps[0] }));
  return { hits: [...gradients, ...named].slice(0, MAX_HITS), count: gradients.length + named.length };
}

/**
 * The gradients that arrive at a node, of those that are asked for.
 * @param {Entry} entry
 * @param {Step[]} steps
 * @param {(norm: number) => boolean} asked
 */
function matchingGradients(entry, steps, asked) {
  if (entry.number < 0) return [];
  const found = entry.steps.filter((step) => steps[step].norm !== null && asked(normNumber(steps[step].norm)));
  return found.map((step) => ({ ...entry, kind: "value", step, norm: steps[step].norm }));
}

/**
 * In an outline a norm that is no finite number is in words.
 * @param {Norm} norm
 */
const normNumber = (norm) => (typeof norm === "number" ? norm : norm === "inf" ? Infinity : NaN);
