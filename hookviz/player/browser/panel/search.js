// Searching a trace by names and norms. The node tests run this file.

import { normalizeText } from "../common/key_bindings.js";

/** @import { IndexChunk, Norm } from "../common/payload" */
/** @import { Step } from "../common/types" */

/** The most hits that are listed. */
export const MAX_HITS = 12;

/**
 * @typedef {object} Entry an entry of the search index
 * @property {string} kind
 * @property {string} label
 * @property {string} note
 * @property {number} number the number of a node; else -1
 * @property {string} view the picture that shows it
 * @property {number[]} steps
 * @property {string} name the label in lower case
 * @property {string} text label and note in lower case
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
 * Reads the entries of an index, and adds the lower-case texts that queries are compared with.
 * @param {IndexChunk} chunk
 * @returns {Entry[]}
 */
export function readIndex(chunk) {
  return chunk.kind.map((kind, i) => {
    const [label, note] = [chunk.label[i], chunk.note[i]];
    const [number, view, steps] = [chunk.number[i], chunk.view[i], chunk.steps[i]];
    return { kind, label, note, number, view, steps, name: label.toLowerCase(), text: `${label} ${note}`.toLowerCase() };
  });
}

/**
 * Parses a query for norms into a predicate; undefined if it is another query.
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
 * Returns the rank of an entry: 0 its name or number is the query, 1 its name begins with it, 2 a word begins with it,
 * 3 it contains the query; -1 for no match.
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
 * Returns the first hits, gradients before names and lower ranks before higher, and the number of all hits.
 * @param {Entry[]} entries
 * @param {Step[]} steps without norms where these are hidden
 * @param {string} typed
 * @returns {{ hits: Hit[], count: number }}
 */
export function search(entries, steps, typed) {
  const query = typed.toLowerCase().trim().replace(/\s+/g, " ");
  if (!query) return { hits: [], count: 0 };
  const isAskedNorm = parseNormQuery(query);
  const gradients = isAskedNorm ? entries.flatMap((entry) => matchingGradients(entry, steps, isAskedNorm)) : [];
  gradients.sort((one, other) => one.step - other.step);
  /** @type {Entry[][]} */
  const ranks = [[], [], [], []];
  for (const entry of entries) ranks[rankEntry(entry, query)]?.push(entry);
  const named = ranks.flat().map((entry) => ({ ...entry, step: entry.steps[0] }));
  return { hits: [...gradients, ...named].slice(0, MAX_HITS), count: gradients.length + named.length };
}

/**
 * Returns a hit for each gradient that arrives at a node and fulfils the predicate.
 * @param {Entry} entry
 * @param {Step[]} steps
 * @param {(norm: number) => boolean} isAskedNorm
 */
function matchingGradients(entry, steps, isAskedNorm) {
  if (entry.number < 0) return [];
  const matching = entry.steps.filter((step) => steps[step].norm !== null && isAskedNorm(normNumber(steps[step].norm)));
  return matching.map((step) => ({ ...entry, kind: "value", step, norm: steps[step].norm }));
}

/**
 * Converts the norms that an overview has as text: "nan" and "inf".
 * @param {Norm} norm
 */
const normNumber = (norm) => (typeof norm === "number" ? norm : norm === "inf" ? Infinity : NaN);
