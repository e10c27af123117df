// Norms of gradients as colours, on a logarithmic scale. The node tests run this file.

/** @import { Norm, View } from "./payload" */
/** @import { Scale, Step } from "./types" */

/** The scale covers at least this many powers of ten, so that similar norms get similar colours. */
const DECADES = 4;

/** @typedef {[step: number, norm: number | string]} Arrival */

/**
 * Returns the scale of all norms above 0; null if there are none.
 * @param {{ norm: Norm }[]} steps
 * @returns {Scale | null}
 */
export function normScale(steps) {
  let [low, high] = [Infinity, -Infinity];
  for (const { norm } of steps) {
    if (typeof norm === "number" && norm > 0) [low, high] = [Math.min(low, norm), Math.max(high, norm)];
  }
  if (low > high) return null;
  const [from, to] = [low, high].map(Math.log10);
  const room = Math.max(0, (DECADES - (to - from)) / 2);
  return { low, high, from: from - room, to: to + room };
}

/**
 * Formats a norm with two digits; the longest text is like `2.6e-18`.
 * @param {number} norm
 */
export function formatNorm(norm) {
  const short = Number(norm.toPrecision(2));
  return short < 1e5 ? `${short}` : short.toExponential();
}

/**
 * Returns the position of a norm on the scale, from 0 to 1.
 * @param {number} norm
 * @param {Scale} scale
 */
export const positionOnScale = (norm, { from, to }) => Math.min(1, Math.max(0, (Math.log10(norm) - from) / (to - from)));

/**
 * Returns the colour of a position on the scale: a light `tint` behind text, or a strong `tone`.
 * @param {number} position
 * @param {"tint" | "tone"} kind
 */
export function colourAt(position, kind) {
  const end = position < 0.5 ? "small" : "large";
  return `color-mix(in srgb, var(--hv-${end}-${kind}) ${Math.round(Math.abs(position - 0.5) * 200)}%, var(--hv-middle-${kind}))`;
}

/**
 * Returns box → arriving gradients with their steps: those of a node, or of all nodes inside a closed box.
 * @param {Step[]} steps
 * @param {Pick<View, "steps" | "spans">} view
 * @param {(id: string) => boolean} isNode
 * @returns {Map<string, Arrival[]>}
 */
export function arrivalsByBox(steps, view, isNode) {
  /** @param {[number, number][]} spans */
  const inside = (spans) => spans.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => first + i));
  /** @type {[string, number[]][]} */
  const boxes = Object.entries(view.spans).map(([id, spans]) => [id, inside(spans)]);
  const nodes = Object.entries(view.steps).filter(([id]) => isNode(id));
  return new Map([...nodes, ...boxes].map(([id, all]) => [id, all.flatMap((step) => arrivalAt(steps, step))]));
}

/**
 * @param {Step[]} steps
 * @param {number} step
 * @returns {Arrival[]}
 */
function arrivalAt(steps, step) {
  const { norm } = steps[step];
  return norm === null ? [] : [[step, norm]];
}

/**
 * Returns the smallest and largest norm that arrived up to a step, and whether some were zero, NaN or infinite.
 * @param {Arrival[]} arrivals
 * @param {number} now
 */
export function normSpread(arrivals, now) {
  const spread = { low: Infinity, high: -Infinity, zero: false, bad: false };
  for (const [step, norm] of arrivals) {
    if (step > now) break;
    if (typeof norm === "string") spread.bad = true;
    else if (norm > 0) [spread.low, spread.high] = [Math.min(spread.low, norm), Math.max(spread.high, norm)];
    else spread.zero = true;
  }
  return spread;
}
