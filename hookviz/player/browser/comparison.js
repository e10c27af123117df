// Several runs of one program: which one is shown, what it is compared with, and what differs. The node tests run this file.

import { setAttributes } from "./dom.js";
import { oldTextIfChanged } from "./stepping.js";

/** @import { Content, FiringRow } from "./payload" */

/** @typedef {FiringRow & { was?: string, isMissing?: boolean }} Row a row of the table of hooks; `was`: what it was there */

/**
 * The place of the run that is compared with the one shown; null for none.
 * @param {Content} content
 * @param {number} shown
 * @param {boolean} flipped
 */
export function baselineIndex(content, shown, flipped) {
  // Once a switch was flipped, the run with every hook on is what one wants to compare with.
  if (flipped) return shown ? 0 : null;
  return content.runs[shown]?.baseline ?? null;
}

/**
 * The places of the switches that are off.
 * @param {Content["combinations"]} combinations
 * @param {number} shown
 */
export function switchesOff(combinations, shown) {
  const key = Object.keys(combinations).find((off) => combinations[off] === shown);
  return key ? key.split(",").map(Number) : [];
}

/**
 * Where a switch leads. Where that combination was not recorded, the other hooks go back on.
 * @param {Content["combinations"]} combinations
 * @param {number} shown
 * @param {number} place
 */
export function flipSwitch(combinations, shown, place) {
  const off = switchesOff(combinations, shown);
  const next = off.includes(place) ? off.filter((other) => other !== place) : [...off, place].sort((a, b) => a - b);
  const known = combinations[next.join(",")];
  return known === undefined ? { shown: combinations[place], resetsOthers: true } : { shown: known, resetsOthers: false };
}

/**
 * The rows of the table: those that fired here, with what they did there, and those that fired only there.
 * @param {FiringRow[]} firings
 * @param {FiringRow[] | undefined} baseline
 * @param {(message: FiringRow["change"]) => string} read
 * @returns {Row[]}
 */
export function compareFirings(firings, baseline, read) {
  if (!baseline) return firings;
  /**
   * @param {FiringRow[]} rows
   * @param {number} step
   */
  const at = (rows, step) => rows.find((row) => row.step === step);
  const here = firings.map((row) => ({ ...row, was: oldTextIfChanged(read(at(baseline, row.step)?.change ?? ""), read(row.change)) }));
  const missing = baseline.filter((row) => !at(firings, row.step)).map((row) => ({ ...row, isMissing: true }));
  return [...here, ...missing].sort((one, other) => one.step - other.step);
}

/**
 * What two texts begin with, what only the old one has, and what only the new one has.
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
 * Both texts in one: what only the old one has is strikesOldTexts through.
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
