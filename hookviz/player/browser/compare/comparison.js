// Several runs of one program: which run is shown, its baseline, and what differs. The node tests run this file.

import { setAttributes } from "../common/dom.js";
import { oldTextIfChanged } from "../common/stepping.js";

/** @import { Content, FiringRow } from "../common/payload" */

/** @typedef {FiringRow & { was?: string, isMissing?: boolean }} Row a row of the table of firings; `was`: the change in the baseline */

/**
 * Returns the index of the run that the shown run is compared with; null for none.
 * @param {Content} content
 * @param {number} shown
 * @param {boolean} flipped
 */
export function baselineIndex(content, shown, flipped) {
  // After a switch was flipped, the baseline is the run with all hooks on, which is the first.
  if (flipped) return shown ? 0 : null;
  return content.runs[shown]?.baseline ?? null;
}

/**
 * Returns the indices of the switches that are off in a run.
 * @param {Content["combinations"]} combinations
 * @param {number} shown
 */
export function switchesOff(combinations, shown) {
  const key = Object.keys(combinations).find((off) => combinations[off] === shown);
  return key ? key.split(",").map(Number) : [];
}

/**
 * Returns the run to show after a switch is flipped. If that combination was not recorded, all other hooks go back on.
 * @param {Content["combinations"]} combinations
 * @param {number} shown
 * @param {number} index
 */
export function flipSwitch(combinations, shown, index) {
  const off = switchesOff(combinations, shown);
  const next = off.includes(index) ? off.filter((other) => other !== index) : [...off, index].sort((a, b) => a - b);
  const recorded = combinations[next.join(",")];
  return recorded === undefined ? { shown: combinations[index], resetsOthers: true } : { shown: recorded, resetsOthers: false };
}

/**
 * Returns the rows of the table: the firings of the run with their changes in the baseline, and firings of the baseline alone.
 * @param {FiringRow[]} firings
 * @param {FiringRow[] | undefined} baseline
 * @returns {Row[]}
 */
export function compareFirings(firings, baseline) {
  if (!baseline) return firings;
  /**
   * @param {FiringRow[]} rows
   * @param {number} step
   */
  const at = (rows, step) => rows.find((row) => row.step === step);
  const here = firings.map((row) => ({ ...row, was: oldTextIfChanged(at(baseline, row.step)?.change ?? "", row.change) }));
  const missing = baseline.filter((row) => !at(firings, row.step)).map((row) => ({ ...row, isMissing: true }));
  return [...here, ...missing].sort((one, other) => one.step - other.step);
}

/**
 * Splits two texts into their common beginning, the rest of the old one and the rest of the new one.
 * @param {string} was
 * @param {string} now
 */
export function splitTexts(was, now) {
  const [old, fresh] = [was.split(" "), now.split(" ")];
  const end = fresh.findIndex((word, i) => word !== old[i]);
  const alike = end < 0 ? fresh.length : end;
  return [fresh.slice(0, alike), old.slice(alike), fresh.slice(alike)].map((words) => words.join(" "));
}

/**
 * Shows both texts in an element: the words that only the old one has are struck through.
 * @param {Element} element
 * @param {string} was
 * @param {string} text
 */
export function strikeOldText(element, was, text) {
  const [alike, gone, fresh] = splitTexts(was, text);
  const old = document.createElementNS(element.namespaceURI, "tspan");
  setAttributes(old, { class: "hv-was", "text-decoration": "line-through" });
  old.textContent = gone;
  element.replaceChildren(alike && `${alike} `, old, fresh && ` ${fresh}`);
}
