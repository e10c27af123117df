// The reasons for a gradient: its formula with values, and for experts PyTorch's own text of the formula.

import { makeElement } from "../common/dom.js";

/** @import { Say } from "../common/labels.js" */
/** @import { Step } from "../common/types" */
/** @import { Reason, StepWords } from "../common/payload" */

const MAX_TITLE_VALUE = 12;

/**
 * Returns the title of the reasons. It contains the gradient if there is only one and its text is short.
 * @param {string} kind
 * @param {Pick<StepWords, "after" | "gradients">} words
 * @param {Say} say
 */
export function reasonsTitle(kind, { after, gradients }, say) {
  const value = kind === "arrive" ? after : gradients.length === 1 ? gradients[0][1] : null;
  return value && value.length <= MAX_TITLE_VALUE ? say("why_value", { value }) : say("why");
}

/**
 * Lists the lines of the reasons: a class and a text. A remark that holds for several formulas in a row, such as that
 * their values need PyTorch, stands once, below the last of them.
 * @param {Reason[]} reasons
 */
export function reasonLines(reasons) {
  return reasons.flatMap(({ text, note }, index) => [
    ["hv-formula", text],
    ...(note && note !== reasons[index + 1]?.note ? [["hv-source", note]] : []),
  ]);
}

/**
 * Returns what the formulas call the inputs of an operation; empty if they name none.
 * @param {Reason[]} reasons
 * @param {Say} say
 */
export function explainNames(reasons, say) {
  const named = (/** @type {string} */ name) => reasons.some(({ text }) => new RegExp(`\\b${name}\\b`).test(text));
  return ["self", "other"].filter(named).map((name) => say(`why_${name}`)).join(" · ");
}

/**
 * Makes the reasons of a step; hidden if there are none.
 * @param {Step} step
 * @param {StepWords} words
 * @param {Say} say
 */
export function makeReasons(step, words, say) {
  const pane = makeElement("div", "hv-why");
  const reasons = words.reasons ?? [];
  pane.hidden = !reasons.length;
  if (!reasons.length) return pane;
  pane.append(makeElement("p", "hv-label", reasonsTitle(step.kind, words, say)));
  for (const [name, text] of reasonLines(reasons)) pane.append(makeElement("p", name, text));
  pane.append(makeElement("p", "hv-source", explainNames(reasons, say)));
  return pane;
}

/**
 * Makes a line for PyTorch's own text of each formula.
 * @param {StepWords} words
 * @param {Say} say
 */
export function makeFormulaSources({ reasons = [] }, say) {
  const sources = reasons.map(({ source }) => source).filter(Boolean);
  return sources.map((source) => makeElement("p", "hv-source", say("why_source", { source })));
}
