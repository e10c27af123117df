// Predict: before some steps the panel shows a question; the step is shown when it is answered.

import { findElement, focusedElement, listen, makeElement, makeTextButton, setAttributes } from "./dom.js";
import { actionOf, digitOf } from "./key_bindings.js";
import { makeHookSource } from "./panel.js";
import { makeQuestionForm } from "./question_form.js";
import { addAnswer, judgeChoice, judgeNumbers, questionBetween } from "./questions.js";

/** @import { Panel } from "./panel.js" */
/** @import { Question } from "./payload" */
/** @import { Verdict, Unread } from "./questions.js" */
/** @import { Actions, Changes, Context } from "./types" */

/** A rule of the driver that stops the player at each open question. */
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
    this.button = makeTextButton(language.say("player.predict"), () => this.toggle(), signal);
    this.score = makeScore(context);
    // Digits flip switches, but while a question with choices is open, they choose an answer.
    listen(root, "keydown", (event) => this.#chooseByDigit(event), signal);
    driver.onChange("change:predict", () => this.afterChange());
  }

  /** The step whose question is open; -1 for none. */
  #openStep = -1;
  /** @type {HTMLFormElement | null} */
  #form = null;
  /** Whether the first answer was wrong. */
  #hasFailedOnce = false;
  /** Whether the user has moved since the last change. */
  #hasMoved = false;

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

  /** Whether the panel shows a question. */
  get isAsking() {
    return this.#form !== null;
  }

  /**
   * @param {Changes} changes
   * @returns {Changes}
   */
  limit(changes) {
    this.#hasMoved = changes.step !== undefined;
    if (changes.step === undefined) return changes;
    const answered = { ...this.#answered, ...changes.answered };
    const next = this.#isOn ? questionBetween(this.context.run.steps, answered, this.step, changes.step) : -1;
    if (next !== this.#openStep) this.#drop();
    this.#openStep = next;
    return next < 0 ? changes : { ...changes, step: next - 1, playing: false };
  }

  /**
   * Stops a move that did not go through the driver, such as one of a linked slider. Returns whether it did.
   * @param {number} step
   */
  holdAtQuestion(step) {
    const { run, driver } = this.context;
    if (!this.#isOn || questionBetween(run.steps, this.#answered, this.step, step) < 0) return false;
    // A link between widgets ignores changes during its own change, so move back after it.
    queueMicrotask(() => driver.goTo(step));
    return true;
  }

  afterChange() {
    const asking = this.#isOn && this.#openStep >= 0 && this.step === this.#openStep - 1;
    const refusal = this.#refusal();
    this.context.root.classList.toggle("hv-predicting", this.#isOn);
    setAttributes(this.button, { "aria-pressed": this.#isOn, "aria-disabled": refusal !== "", title: refusal });
    this.panel.pane.classList.toggle("hv-asking", asking);
    if (asking) this.#ask();
    else this.#drop();
    this.#hasMoved = false;
  }

  /** @param {number} step */
  paint(step) {
    this.step = step;
    this.afterChange();
  }

  toggle() {
    const refusal = this.#refusal();
    if (refusal) this.panel.showMessage(refusal);
    else this.context.driver.setTraits({ predict: !this.#isOn, step: this.step });
  }

  #drop() {
    const { root } = this.context;
    // Removing the focused element would move the focus out of the player.
    if (this.#form?.contains(focusedElement(root))) root.focus({ preventScroll: true });
    this.#form?.remove();
    this.#form = null;
  }

  /** The question that is open. */
  #question() {
    const { question } = this.context.run.steps[this.#openStep] ?? {};
    if (!question) throw new Error(`Step ${this.#openStep} has no question.`);
    return question;
  }

  #ask() {
    const { root, language } = this.context;
    this.#form ??= this.#newForm();
    if (!this.#form.isConnected) this.panel.head.after(this.#form);
    if (!this.#hasMoved) return;
    if (root.contains(focusedElement(root))) findElement(this.#form, "input, button").focus();
    else this.panel.announce(language.read(this.#question().text));
  }

  #newForm() {
    const { run, root, language, content } = this.context;
    const question = this.#question();
    this.#hasFailedOnce = false;
    const form = makeQuestionForm(this.context, question, {
      choose: (index) => this.#judge(judgeChoice(question, index)),
      type: (text) => this.#judge(judgeNumbers(question, text)),
      reveal: () => this.#close(false, ""),
      leave: () => root.focus(),
    });
    const { hook } = run.steps[this.#openStep];
    // If the question is which hook is next, the source would give the answer.
    if (hook !== null && (question.shows_source || !question.choices)) form.append(...makeHookSource(content.hooks[hook], language));
    return form;
  }

  /** @param {Verdict | Unread} judged */
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
    if (this.#hasFailedOnce) {
      this.#close(false, reason);
      return;
    }
    this.#hasFailedOnce = true;
    this.#explain(`${reason} ${language.say("player.ask_again")}`);
  }

  /** @param {string} text */
  #explain(text) {
    if (!this.#form) return;
    findElement(this.#form, ".hv-reason").textContent = text;
    this.#form.querySelector("input")?.select();
  }

  /**
   * Stores the result and goes to the step.
   * @param {boolean} right
   * @param {string} text
   */
  #close(right, text) {
    const { language, driver, run } = this.context;
    const step = this.#openStep;
    const message = [text, this.#answerTo(this.#question())].filter(Boolean).join(" ");
    driver.setTraits({ ...addAnswer(this.#answered, step, right && !this.#hasFailedOnce), step });
    const { words } = run.steps[step];
    this.panel.showMessage(message, `${message} ${words ? language.read(words.sentence) : ""}`);
  }

  /**
   * Returns a sentence with the right choice; empty for numbers, which the step shows.
   * @param {Question} question
   */
  #answerTo({ choices, right }) {
    if (!choices || right === undefined) return "";
    const { language } = this.context;
    return language.say("player.ask_it_is", { choice: language.read(choices[right]) });
  }

  /** Why predicting cannot be switched on; empty if it can, or if it is on. */
  #refusal() {
    const { language, model, run, content } = this.context;
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
 * Makes the score, which replaces the legend while predicting.
 * @param {Context} context
 */
function makeScore({ model, language, driver, signal }) {
  const pane = makeElement("p", "hv-score");
  const count = makeElement("span");
  const again = makeTextButton(language.say("player.again"), () => driver.setTraits({ answered: {}, asked: 0, right: 0, step: 0 }), signal);
  const paint = () => { count.textContent = language.say("player.score", { right: model.get("right"), asked: model.get("asked") }); };
  pane.append(count, again);
  driver.onChange("change:asked change:right", paint);
  paint();
  return pane;
}
