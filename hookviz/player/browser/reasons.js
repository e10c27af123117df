// The reasons for a gradient: its formula with values, and for experts PyTorch's own text of the formula.

import { makeElement } from "./dom.js";

/** @import { Language } from "./language.js" */
/** @import { Step } from "./types" */
/** @import { Reason, StepWords } from "./payload" */

const MAX_TITLE_VALUE = 12;

/**
 * Returns the title of the reasons. It contains the gradient if there is only one and its text is short.
 * @param {string} kind
 * @param {Pick<StepWords, "after" | "gradients">} words
 * @param {Language} language
 */
export function reasonsTitle(kind, { after, gradients }, language) {
  const message = kind === "arrive" ? after : gradients.length === 1 ? gradients[0][1] : null;
  const value = message === null ? "" : language.read(message);
  return value && value.length <= MAX_TITLE_VALUE ? language.say("player.why_value", { value }) : language.say("player.why");
}

/**
 * Lists the lines of the reasons: a class and a text. A remark that holds for several formulas in a row, such as that
 * their values need PyTorch, stands once, below the last of them.
 * @param {Reason[]} reasons
 * @param {Language} language
 */
export function reasonLines(reasons, language) {
  const remarks = reasons.map(({ note }) => language.read(note));
  return reasons.flatMap(({ text }, index) => [
    ["hv-formula", language.read(text)],
    ...(remarks[index] && remarks[index] !== remarks[index + 1] ? [["hv-source", remarks[index]]] : []),
  ]);
}

/**
 * Makes the reasons of a step; hidden if there are none.
 * @param {Step} step
 * @param {StepWords} words
 * @param {Language} language
 */
export function makeReasons(step, words, language) {
  const pane = makeElement("div", "hv-why");
  const reasons = words.reasons ?? [];
  pane.hidden = !reasons.length;
  if (!reasons.length) return pane;
  pane.append(makeElement("p", "hv-label", reasonsTitle(step.kind, words, language)));
  for (const [name, text] of reasonLines(reasons, language)) pane.append(makeElement("p", name, text));
  return pane;
}

/**
 * Makes a line for PyTorch's own text of each formula.
 * @param {StepWords} words
 * @param {Language} language
 */
export function makeFormulaSources({ reasons = [] }, language) {
  const sources = reasons.map(({ source }) => source).filter(Boolean);
  return sources.map((source) => makeElement("p", "hv-source", language.say("player.why_source", { source })));
}
