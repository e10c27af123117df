// The cards of a step: what it begins with and what it ends with, side by side and with bars at one scale.

import { appendNames, makeElement } from "../common/dom.js";
import { oldTextIfChanged } from "../common/stepping.js";

/** @import { Say } from "../common/labels.js" */
/** @import { Amount, Card, StepWords } from "../common/payload" */
/** @import { Sign } from "../common/types" */

/** Up to these lengths a value is as large as a number, or as a title. */
const [LARGE, MEDIUM] = [8, 12];

/**
 * Makes the row of the cards, and the card of what else a hook was given.
 * @param {Card[]} cards
 * @param {Card[]} before the cards of the baseline
 * @param {Sign | null} sign what the hook of the step did
 */
export function makeCards(cards, before, sign) {
  const room = makeElement("div", "hv-cards-room");
  if (!cards.length) return room;
  const row = makeElement("div", "hv-cards");
  row.classList.toggle("hv-differ", sign === "changed");
  row.classList.toggle("hv-same", sign === "looked");
  const sizes = cards.filter(({ role }) => role !== "extra").flatMap(({ amounts }) => amounts.map(({ size }) => size ?? 0));
  // One bar alone compares nothing.
  const largest = sizes.length > 1 ? Math.max(...sizes) : 0;
  for (const card of cards) {
    const was = before.find(({ role, label }) => role === card.role && label === card.label);
    row.append(makeCard(card, was?.amounts ?? [], largest));
  }
  room.append(row);
  return room;
}

/**
 * @param {Card} card
 * @param {Amount[]} was the amounts in the baseline
 * @param {number} largest the size that fills a bar
 */
function makeCard({ role, label, amounts }, was, largest) {
  const several = amounts.length > 1 ? " hv-several" : "";
  const card = makeElement("div", `hv-card hv-${role}${several}`);
  const title = makeElement("div", "hv-label");
  appendNames(title, label);
  card.append(title);
  amounts.forEach((amount, i) => {
    const part = makeElement("div", "hv-amount");
    const name = makeElement("span", "hv-label");
    appendNames(name, amount.name);
    if (amount.name) part.append(name);
    const old = oldTextIfChanged(was[i]?.value ?? "", amount.value);
    if (old) part.append(makeElement("s", "hv-was", old));
    part.append(makeValue(amount.value, amounts.length > 1 || role === "extra"));
    if (role !== "extra" && amount.size !== null && largest) part.append(makeBar(amount.size / largest));
    if (amount.note) part.append(makeElement("span", "hv-label", keepShapesTogether(amount.note)));
    card.append(part);
  });
  return card;
}

/**
 * Returns the text with spaces that do not break inside shapes such as (8, 16): in a Chinese sentence, which has few
 * other spaces, a line would often end there.
 * @param {string} text
 */
export function keepShapesTogether(text) {
  return text.replaceAll(/\((\d+, )*\d+\)/g, (shape) => shape.replaceAll(" ", "\u00A0"));
}

/**
 * Makes a value: a number is large; a list may end a line behind a comma, and no number breaks.
 * @param {string} value
 * @param {boolean} isOneOfMany
 */
function makeValue(value, isOneOfMany) {
  const element = makeElement("div", `hv-value hv-size-${isOneOfMany ? "small" : valueSize(value)}`);
  value.split(/(?<=, )/).forEach((part) => element.append(makeElement("span", "", part)));
  return element;
}

/**
 * Returns the size class of a value by its length.
 * @param {string} value
 */
export function valueSize(value) {
  if (value.length > MEDIUM) return "small";
  return value.length > LARGE ? "medium" : "large";
}

/** @param {number} share of the whole bar */
function makeBar(share) {
  const bar = makeElement("div", "hv-amount-bar");
  const filled = makeElement("div");
  filled.style.width = `${100 * share}%`;
  bar.append(filled);
  return bar;
}

/**
 * Returns the numbers behind the cards: a title, and all numbers or statistics; nothing if the cards show all of them.
 * @param {Pick<StepWords, "cards" | "before" | "after" | "gradients">} words
 * @returns {[title: string, numbers: string][]}
 */
export function hiddenNumbers({ cards, before, after, gradients }) {
  const labelOf = (/** @type {string} */ role) => cards.find((card) => card.role === role)?.label ?? "";
  /** @type {[string, string][]} */
  const all = [[labelOf("before"), before ?? ""], [labelOf("after"), after ?? ""], ...gradients];
  const shown = new Set(cards.flatMap(({ amounts }) => amounts.map(({ value }) => value)));
  const numbers = all.filter(([, text]) => text);
  return numbers.some(([, text]) => text.includes("\n") || !shown.has(text)) ? numbers : [];
}

/**
 * Makes what shows the numbers behind the cards, statistics beside each other and matrices below each other.
 * @param {[title: string, numbers: string][]} numbers
 * @param {Say} say
 * @param {boolean} isOpen
 */
export function makeNumbers(numbers, say, isOpen) {
  const details = makeElement("details", "hv-numbers");
  details.open = isOpen;
  details.append(makeElement("summary", "", say("numbers")));
  const list = makeElement("div", "hv-number-list");
  for (const [title, text] of numbers) {
    const part = makeElement("div");
    part.append(makeElement("div", "hv-label", title), makeElement("pre", "", text, { tabindex: 0, "aria-label": title }));
    list.append(part);
  }
  details.append(list);
  return details;
}
