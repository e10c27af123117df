// Several passes of one program: which one is shown, and what differs from the one that it is compared with.

import { wasUnlike } from "./logic.js";
import { mark } from "./dom.js";

/** What is shown: frames and firings, what they are compared with, and the words for both. A plain trace has no variants. */
export function chosen(model) {
  const [frames, firings, variants, shown] = ["frames", "firings", "variants", "shown"].map((name) => model.get(name));
  const variant = variants?.[shown];
  if (!variant) return { frames, firings, notes: [], label: "", beside: null };
  const take = (one) => ({ frames: one.frames.map((number) => frames[number]), firings: one.firings, label: one.label });
  // Once a switch was flipped, the world with every hook on is what one wants to compare with.
  const beside = variants[model.get("flipped") ? (shown ? 0 : null) : variant.beside];
  return { ...take(variant), notes: variant.notes, beside: beside ? take(beside) : null };
}

/** The places of the hooks that are off. */
export function offAt(combinations, shown) {
  const key = Object.keys(combinations).find((off) => combinations[off] === shown);
  return key ? key.split(",").map(Number) : [];
}

/** Where a switch leads. Where that combination was not recorded, the other hooks go back on. */
export function flip(combinations, shown, place) {
  const off = offAt(combinations, shown);
  const next = off.includes(place) ? off.filter((other) => other !== place) : [...off, place].sort((a, b) => a - b);
  const known = combinations[next.join(",")];
  return known === undefined ? { shown: combinations[place], alone: true } : { shown: known, alone: false };
}

/** The table's rows: what fired here, with what it was there, and what fired only there. */
export function rowsBeside(firings, beside) {
  if (!beside) return firings;
  const at = (rows, step) => rows.find((row) => row.step === step);
  const here = firings.map((row) => ({ ...row, was: wasUnlike(at(beside, row.step)?.change, row.change) }));
  const missing = beside.filter((row) => !at(firings, row.step)).map((row) => ({ ...row, missing: true }));
  return [...here, ...missing].sort((one, other) => one.step - other.step);
}

/** What two texts begin with, what only the old one has, and what only the new one has. */
export function parted(was, now) {
  const [old, fresh] = [was.split(" "), now.split(" ")];
  const end = fresh.findIndex((word, i) => word !== old[i]);
  const alike = end < 0 ? fresh.length : end;
  return [fresh.slice(0, alike), old.slice(alike), fresh.slice(alike)].map((words) => words.join(" "));
}

/** Both texts in one: what only the old one has is struck through. */
export function strike(element, was, text) {
  const [alike, gone, fresh] = parted(was, text);
  const old = document.createElementNS(element.namespaceURI, "tspan");
  mark(old, { class: "hv-was", "text-decoration": "line-through" });
  old.textContent = gone;
  element.replaceChildren(alike && `${alike} `, old, fresh && ` ${fresh}`);
}
