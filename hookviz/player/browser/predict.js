// Predict: before a hook's step its question stands in the panel, and the step shows when it is answered.

import { actionOf, isComposing, say } from "./logic.js";
import { answeredWith, isTyped, judge, questionBetween } from "./asking.js";
import { focused, listen, make, mark, textButton } from "./dom.js";
import { hookOf } from "./panel.js";

/** A rule of the driver: it keeps the player from going past a question. */
export function makePredict({ model, words, frames, hooks, panel, root, driver, signal }) {
  let [at, open, form, tried, moved] = [driver.now().step, -1, null, false, false];
  const on = () => Boolean(model.get("predict"));
  const answered = () => model.get("answered") ?? {};
  const limit = (changes) => {
    moved = "step" in changes;
    if (!moved) return changes;
    const next = on() ? questionBetween(frames, { ...answered(), ...changes.answered }, at, changes.step) : -1;
    if (next !== open) drop();
    open = next;
    return open < 0 ? changes : { ...changes, step: open - 1, playing: false };
  };
  const drop = () => {
    // What has the keyboard and goes away would take it along, out of the player.
    if (form?.contains(focused(root))) root.focus({ preventScroll: true });
    form?.remove();
    form = null;
  };
  /** What moved may have come from elsewhere, such as a linked slider: then it is held, too. */
  const holds = (step) => {
    if (!on() || questionBetween(frames, answered(), at, step) < 0) return false;
    // A link between widgets passes nothing back while it passes something on.
    queueMicrotask(() => driver.go(step));
    return true;
  };
  const settle = () => {
    const asking = on() && open >= 0 && at === open - 1;
    root.classList.toggle("hv-predicting", on());
    mark(button, { "aria-pressed": on(), "aria-disabled": refusal() !== "", title: refusal() });
    panel.pane.classList.toggle("hv-asking", asking);
    if (asking) ask();
    else drop();
    moved = false;
  };
  const ask = () => {
    form ??= newForm();
    if (!form.isConnected) panel.pane.querySelector(".hv-head-line").after(form);
    if (!moved) return;
    if (root.contains(focused(root))) form.querySelector("input, button").focus();
    else panel.say(frames[open].ask.text);
  };
  const newForm = () => {
    const { ask, hook } = frames[open];
    tried = false;
    const made = askForm(ask, words, { answer, reveal, leave: () => root.focus() }, signal);
    // Which hook is next must not be read from its source.
    if (ask.source || !ask.choices) made.append(...hookOf(hooks[hook]));
    return made;
  };
  const close = (right, text) => {
    const [step, { choices, right: place }] = [open, frames[open].ask];
    const told = choices ? `${text} ${say(words, "ask_it_is", { choice: choices[place] })}` : text;
    driver.put({ ...answeredWith(answered(), step, right && !tried), step });
    panel.tell(told, `${told} ${frames[step].sentence}`);
  };
  const reveal = () => close(false, "");
  const answer = (given) => {
    const { unread, count, right, reason = say(words, "ask_other") } = judge(frames[open].ask, given);
    if (right) return close(true, say(words, "ask_right"));
    if (tried && !unread) return close(false, reason);
    tried ||= !unread;
    const text = unread ? say(words, unread, { count }) : `${reason} ${say(words, "ask_again")}`;
    form.querySelector(".hv-reason").textContent = text;
    form.querySelector("input")?.select();
  };
  /** Why nothing can be asked here; empty where something can, or where one can stop. */
  const refusal = () => {
    if (on() || frames.some((frame) => frame.ask)) return "";
    const [variants, switches] = [model.get("variants"), model.get("switches")].map((list) => list?.length);
    if (switches && model.get("shown")) return say(words, "ask_elsewhere");
    return say(words, variants && !switches ? "ask_compared" : "ask_none");
  };
  const toggle = () => {
    if (refusal()) panel.tell(refusal());
    else driver.put({ predict: !on(), step: at });
  };
  listen(root, "keydown", (event) => {
    const choices = form?.isConnected && frames[open].ask.choices;
    const [, digit] = /^flip(.)/.exec(actionOf(event)) ?? [];
    if (!choices || !digit) return;
    // Where hooks are switches, a digit flips one: not while it is an answer.
    event.stopImmediatePropagation();
    if (choices[digit - 1]) answer(digit - 1);
  }, signal);
  const paint = (step) => {
    at = step;
    settle();
  };
  const button = textButton(say(words, "predict"), toggle, signal);
  driver.onChange("change:predict", settle);
  const score = makeScore(model, words, driver, signal);
  return { limit, holds, settle, paint, score, button, asks: () => form !== null, actions: { predict: toggle } };
}

function askForm(ask, words, { answer, reveal, leave }, signal) {
  const form = make("form", "hv-ask", "", { "aria-label": ask.text });
  const fields = ask.choices ? askChoices(ask, words, answer, signal) : askNumber(ask, words);
  const show = textButton(say(words, "ask_show"), reveal, signal);
  fields.lastChild.append(show);
  form.append(make("p", "hv-question", ask.text), make("p", "hv-reason", "", { role: "status" }), fields);
  listen(form, "submit", (event) => {
    event.preventDefault();
    if (!ask.choices) answer(form.querySelector("input").value);
  }, signal);
  listen(form, "keydown", (event) => {
    // Escape and Enter first end what an input method composes.
    const composing = event.target.matches("input") && isComposing(event);
    if (composing && event.key === "Enter") event.preventDefault();
    const leaves = event.key === "Escape" && !composing;
    if (leaves) leave();
    if (leaves || (event.target.matches("input") && isTyped(event))) event.stopPropagation();
  }, signal);
  return form;
}

function askNumber(ask, words) {
  const count = ask.answer.split(",").length;
  const none = /None/.test(ask.text + ask.answer);
  const hint = say(words, count > 1 ? "ask_hint_many" : "ask_hint", { count }) + (none ? ` ${say(words, "ask_hint_none")}` : "");
  const [fields, row] = [make("div"), make("div", "hv-row")];
  const field = make("input", "hv-field", "", { type: "text", autocomplete: "off", "aria-label": `${ask.text} ${hint}` });
  const check = make("button", "hv-button", say(words, "ask_check"));
  row.append(field, check);
  fields.append(make("p", "hv-hint", hint), row);
  return fields;
}

function askChoices(ask, words, answer, signal) {
  const fields = make("div", "", "", { role: "group", "aria-label": ask.text });
  ask.choices.forEach((choice, i) => {
    const button = textButton("", () => answer(i), signal);
    button.classList.add("hv-choice");
    button.append(make("kbd", "", String(i + 1)), make("span", "", choice));
    fields.append(button);
  });
  fields.append(make("div", "hv-row"));
  return fields;
}

/** How many were right so far, in the place of the legend while one predicts. */
function makeScore(model, words, driver, signal) {
  const pane = make("p", "hv-score");
  const count = make("span");
  const again = textButton(say(words, "again"), () => driver.put({ answered: {}, asked: 0, right: 0, step: 0 }), signal);
  const paint = () => count.textContent = say(words, "score", { right: model.get("right") ?? 0, asked: model.get("asked") ?? 0 });
  pane.append(count, again);
  driver.onChange("change:asked change:right", paint);
  paint();
  return pane;
}
