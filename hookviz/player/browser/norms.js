// Norms of gradients as colours, on a scale of powers of ten. The node tests run this file.

/** So many powers of ten the scale has at least: where all norms are alike, none stands out. */
const DECADES = 4;

/** The ends of the scale of all norms above 0; null where there are none. */
export function scaleOf(frames) {
  let [low, high] = [Infinity, -Infinity];
  for (const { norm } of frames) if (norm > 0) [low, high] = [Math.min(low, norm), Math.max(high, norm)];
  if (low > high) return null;
  const [from, to] = [low, high].map(Math.log10);
  const room = Math.max(0, (DECADES - (to - from)) / 2);
  return { low, high, from: from - room, to: to + room };
}

/** A norm in two digits: none is longer than `2.6e-18`. */
export function shortNorm(norm) {
  const short = Number(norm.toPrecision(2));
  return short < 1e5 ? `${short}` : short.toExponential();
}

/** Where a norm stands between the ends: from 0 to 1. */
export const placeOf = (norm, { from, to }) => Math.min(1, Math.max(0, (Math.log10(norm) - from) / (to - from)));

/** The colour of a place on the scale: `tint` for what has text on it, `tone` for what has none. */
export function colourAt(place, kind) {
  const end = place < 0.5 ? "small" : "large";
  return `color-mix(in srgb, var(--hv-${end}-${kind}) ${Math.round(Math.abs(place - 0.5) * 200)}%, var(--hv-middle-${kind}))`;
}

/** Id of what is seen → [step, norm] of each gradient that arrives in it. */
export function arrivalsIn(frames, { steps, spans }) {
  const inside = (rows) => rows.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => first + i));
  const found = [...steps].filter(([id]) => /^n\d+$/.test(id)).concat([...spans].map(([id, rows]) => [id, inside(rows)]));
  const arrived = (steps) => steps.map((step) => [step, frames[step].norm]).filter(([, norm]) => (norm ?? "") !== "");
  return new Map(found.map(([id, all]) => [id, arrived(all)]));
}

/** What has arrived up to a step: the smallest and largest norm, and whether some were zero, NaN or infinite. */
export function spreadOf(arrivals, now) {
  const spread = { low: Infinity, high: -Infinity, zero: false, bad: false };
  for (const [step, norm] of arrivals) {
    if (step > now) break;
    if (norm > 0) [spread.low, spread.high] = [Math.min(spread.low, norm), Math.max(spread.high, norm)];
    else spread[norm === 0 ? "zero" : "bad"] = true;
  }
  return spread;
}
