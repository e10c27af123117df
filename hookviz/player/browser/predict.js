// Predict: before a hook's step its question stands in the panel, and the step is shown when it is answered.

import { find, focused, listen, make, mark, textButton } from "./dom.js";
import { actionOf, digitOf } from "./keys.js";
import { hookSource } from "./panel.js";
import { makeQuestionForm } from "./question_form.js";
import { answeredWith, judgeChoice, judgeNumbers, questionBetween } from "./questions.js";

/** @import { Panel } from "./panel.js" */
/** @import { Question } from "./payload" */
/** @import { Judged, Unread } from "./questions.js" */
/** @import { Actions, Changes, Context } from "./types" */

/** A rule of the driver: it keeps the player from going past a question. */
export class Predict {
  /**
   * @param {Context} context
   * @param {Panel} panel
   */
  constructor(context, panel) {
    const { language, root, driver, signal } = context;
    this.context = context;
    this.panel = panel;
    this.step = driver.position().step;
    this.button = textButton(language.say("player.predict"), () => this.toggle(), signal);
    this.score = makeScore(context);
    // Where hooks are switches, a digit flips one: not while it is an answer.
    listen(root, "keydown", (event) => this.#chooseByDigit(event), signal);
    driver.onChange("change:predict", () => this.settle());
  }

  /** The step whose question is open; -1 for none. */
  #open = -1;
  /** @type {HTMLFormElement | null} */
  #form = null;
  /** Whether one answer was wrong. */
  #tried = false;
  /** Whether somebody has moved since the driver settled. */
  #moved = false;

  /** @returns {Actions} */
  get actions() {
    return { predict: () => this.toggle() };
  }

  get #isOn() {
    return Boolean(this.context.model.get("predict"));
  }

  get #answered() {
    return this.context.model.get("answered") ?? {};
  }

  /** Whether a question stands in the panel. */
  get isAsking() {
    return this.#form !== null;
  }

  /**
   * @param {Changes} changes
   * @returns {Changes}
   */
  limit(changes) {
    this.#moved = changes.step !== undefined;
    if (changes.step === undefined) return changes;
    const answered = { ...this.#answered, ...changes.answered };
    const next = this.#isOn ? questionBetween(this.context.run.steps, answered, this.step, changes.step) : -1;
    if (next !== this.#open) this.#drop();
    this.#open = next;
    return next < 0 ? changes : { ...changes, step: next - 1, playing: false };
  }

  /**
   * What moved may have come from elsewhere, such as a linked slider: then it is held, too.
   * @param {number} step
   */
  holds(step) {
    const { run, driver } = this.context;
    if (!this.#isOn || questionBetween(run.steps, this.#answered, this.step, step) < 0) return false;
    // A link between widgets passes nothing back while it passes something on.
    queueMicrotask(() => driver.go(step));
    return true;
  }

  settle() {
    const asking = this.#isOn && this.#open >= 0 && this.step === this.#open - 1;
    const refusal = this.#refusal();
    this.context.root.classList.toggle("hv-predicting", this.#isOn);
    mark(this.button, { "aria-pressed": this.#isOn, "aria-disabled": refusal !== "", title: refusal });
    this.panel.pane.classList.toggle("hv-asking", asking);
    if (asking) this.#ask();
    else this.#drop();
    this.#moved = false;
  }

  /** @param {number} step */
  paint(step) {
    this.step = step;
    this.settle();
  }

  toggle() {
    const refusal = this.#refusal();
    if (refusal) this.panel.tell(refusal);
    else this.context.driver.put({ predict: !this.#isOn, step: this.step });
  }

  #drop() {
    const { root } = this.context;
    // What has the keyboard and goes away would take it along, out of the player.
    if (this.#form?.contains(focused(root))) root.focus({ preventScroll: true });
    this.#form?.remove();
    this.#form = null;
  }

  /** The question that is open. */
  #question() {
    const { question } = this.context.run.steps[this.#open] ?? {};
    if (!question) throw new Error(`Step ${this.#open} has no question.`);
    return question;
  }

  #ask() {
    const { root, language } = this.context;
    this.#form ??= this.#newForm();
    if (!this.#form.isConnected) this.panel.head.after(this.#form);
    if (!this.#moved) return;
    if (root.contains(focused(root))) find(this.#form, "input, button").focus();
    else this.panel.say(language.read(this.#question().text));
  }

  #newForm() {
    const { run, root, language, open: { content } } = this.context;
    const question = this.#question();
    this.#tried = false;
    const form = makeQuestionForm(this.context, question, {
      choose: (place) => this.#judge(judgeChoice(question, place)),
      type: (text) => this.#judge(judgeNumbers(question, text)),
      reveal: () => this.#close(false, ""),
      leave: () => root.focus(),
    });
    const { hook } = run.steps[this.#open];
    // Which hook is next must not be read from its source.
    if (hook !== null && (question.shows_source || !question.choices)) form.append(...hookSource(content.hooks[hook], language));
    return form;
  }

  /** @param {Judged | Unread} judged */
  #judge(judged) {
    const { language } = this.context;
    if ("unread" in judged) {
      this.#explain(language.say(`player.${judged.unread}`, { count: judged.count }));
      return;
    }
    if (judged.right) {
      this.#close(true, language.say("player.ask_right"));
      return;
    }
    const reason = judged.reason ? language.read(judged.reason) : language.say("player.ask_other");
    if (this.#tried) {
      this.#close(false, reason);
      return;
    }
    this.#tried = true;
    this.#explain(`${reason} ${language.say("player.ask_again")}`);
  }

  /** @param {string} text */
  #explain(text) {
    if (!this.#form) return;
    find(this.#form, ".hv-reason").textContent = text;
    this.#form.querySelector("input")?.select();
  }

  /**
   * Goes on to the step.
   * @param {boolean} right
   * @param {string} text
   */
  #close(right, text) {
    const { language, driver, run } = this.context;
    const step = this.#open;
    const told = [text, this.#answerTo(this.#question())].filter(Boolean).join(" ");
    driver.put({ ...answeredWith(this.#answered, step, right && !this.#tried), step });
    const { words } = run.steps[step];
    this.panel.tell(told, `${told} ${words ? language.read(words.sentence) : ""}`);
  }

  /**
   * Which choice was right; a number is seen in the step.
   * @param {Question} question
   */
  #answerTo({ choices, right }) {
    if (!choices || right === undefined) return "";
    const { language } = this.context;
    return language.say("player.ask_it_is", { choice: language.read(choices[right]) });
  }

  /** Why nothing can be asked here; empty where something can, or where one can stop. */
  #refusal() {
    const { language, model, run, open: { content } } = this.context;
    if (this.#isOn || run.steps.some((step) => step.question)) return "";
    if (content.switches.length && model.get("shown")) return language.say("player.ask_elsewhere");
    const isComparison = content.runs.length > 1 && !content.switches.length;
    return language.say(isComparison ? "player.ask_compared" : "player.ask_none");
  }

  /** @param {KeyboardEvent} event */
  #chooseByDigit(event) {
    const digit = digitOf(actionOf(event));
    if (!digit || !this.#form?.isConnected) return;
    const question = this.#question();
    if (!question.choices) return;
    event.stopImmediatePropagation();
    if (digit <= question.choices.length) this.#judge(judgeChoice(question, digit - 1));
  }
}

/**
 * How many were right so far, in the place of the legend while one predicts.
 * @param {Context} context
 */
function makeScore({ model, language, driver, signal }) {
  const pane = make("p", "hv-score");
  const count = make("span");
  const again = textButton(language.say("player.again"), () => driver.put({ answered: {}, asked: 0, right: 0, step: 0 }), signal);
  const paint = () => { count.textContent = language.say("player.score", { right: model.get("right"), asked: model.get("asked") }); };
  pane.append(count, again);
  driver.onChange("change:asked change:right", paint);
  paint();
  return pane;
}
