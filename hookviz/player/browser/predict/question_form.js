// The form for the answer to a question: a field for numbers, or a button for each choice.

import { listen, makeElement, makeShape, makeTextButton, setAttributes } from "../common/dom.js";
import { SIGNS } from "../panel/signs.js";
import { isComposing } from "../common/key_bindings.js";
import { isTyped } from "./questions.js";

/** @import { Say } from "../common/labels.js" */
/** @import { Question } from "../common/payload" */
/** @import { Context } from "../common/types" */

/**
 * @param {Context} context
 * @param {Question} question
 * @param {{ choose: (index: number) => void, type: (text: string) => void, reveal: () => void, leave: () => void }} acts
 */
export function makeQuestionForm({ model, content, say, signal }, question, { choose, type, reveal, leave }) {
  const { text, choices } = question;
  const form = makeElement("form", "hv-ask", "", { "aria-label": text });
  const row = makeElement("div", "hv-row");
  const fields = choices ? makeChoiceFields(choices, text, choose, signal) : makeElement("div");
  const field = question.answer === undefined ? null : makeNumberField(say, question, fields, row);
  row.append(makeTextButton(say("ask_show"), reveal, signal));
  fields.append(row);
  // In a what-if, a question may be about another combination of switches than the one that is shown.
  if (question.run !== model.get("shown")) form.append(makeElement("p", "hv-hint", content.runs[question.run].label));
  // The reason is below the answers, which it must not push away under the pointer.
  form.append(makeElement("p", "hv-question", text), fields, makeElement("p", "hv-reason", "", { role: "status" }));
  listen(form, "submit", (event) => {
    event.preventDefault();
    if (field) type(field.value);
  }, signal);
  listen(form, "keydown", (event) => {
    // During a composition, Escape and Enter belong to the input method.
    const composing = event.target === field && isComposing(event);
    if (composing && event.key === "Enter") event.preventDefault();
    const leaves = event.key === "Escape" && !composing;
    if (leaves) leave();
    if (leaves || (event.target === field && isTyped(event))) event.stopPropagation();
  }, signal);
  return form;
}

/**
 * @param {Say} say
 * @param {Question} question
 * @param {HTMLElement} fields
 * @param {HTMLElement} row
 */
function makeNumberField(say, question, fields, row) {
  const { text } = question;
  const answer = question.answer ?? "";
  const count = answer.split(",").length;
  const hints = [say(count > 1 ? "ask_hint_many" : "ask_hint", { count })];
  if (/None/.test(text + answer)) hints.push(say("ask_hint_none"));
  const hint = hints.join(" ");
  const field = makeElement("input", "hv-field", "", { type: "text", autocomplete: "off", "aria-label": `${text} ${hint}` });
  row.append(field, makeElement("button", "hv-button", say("ask_check")));
  fields.append(makeElement("p", "hv-hint", hint));
  return field;
}

/**
 * @param {string[]} choices
 * @param {string} text
 * @param {(index: number) => void} choose
 * @param {AbortSignal} signal
 */
function makeChoiceFields(choices, text, choose, signal) {
  const fields = makeElement("div", "", "", { role: "group", "aria-label": text });
  choices.forEach((choice, i) => {
    const button = makeTextButton("", () => choose(i), signal);
    button.classList.add("hv-choice");
    button.append(makeElement("kbd", "", String(i + 1)), makeElement("span", "", choice));
    fields.append(button);
  });
  return fields;
}

/**
 * Marks a choice that is wrong.
 * @param {HTMLElement} form
 * @param {number} index
 * @param {Say} say
 */
export function markWrong(form, index, say) {
  const choice = /** @type {HTMLElement} */ (form.querySelectorAll(".hv-choice")[index]);
  if (choice.classList.contains("hv-wrong")) return;
  choice.classList.add("hv-wrong");
  // A digit chose it: the ring of the focus around another choice would look like a hint.
  choice.focus({ preventScroll: true });
  const sign = makeShape(SIGNS.silent, "hv-check");
  sign.removeAttribute("aria-hidden");
  setAttributes(sign, { role: "img", "aria-label": say("ask_wrong") });
  choice.append(sign);
}
