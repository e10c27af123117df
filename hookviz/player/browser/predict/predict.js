// Predict: before some steps the panel shows a question; the step, and all later ones, are shown when it is answered.

import { findElement, focusedElement, listen, makeElement, makeTextButton, setAttributes } from "../common/dom.js";
import { actionOf, digitOf } from "../common/key_bindings.js";
import { makeHookSource } from "../panel/panel.js";
import { makeQuestionForm, markWrong } from "./question_form.js";
import {
  addAnswer, closeSeen, firstOpenStep, hasAnswers, judgeChoice, judgeNumbers, openQuestion, reopenPassed, withScore,
} from "./questions.js";

/** @import { Panel } from "../panel/panel.js" */
/** @import { Question } from "../common/payload" */
/** @import { Verdict, Unread } from "./questions.js" */
/** @import { Actions, Changes, Context, KeyedQuestion } from "../common/types" */

/** @typedef {{ step: number, question: KeyedQuestion }} Open a question with the step that it hides */

/** A rule of the driver that stops the player at each open question. While predicting, no step after one is shown. */
export class Predict {
  /**
   * @param {Context} context
   * @param {Panel} panel
   */
  constructor(context, panel) {
    const { say, root, driver, signal } = context;
    this.context = context;
    this.panel = panel;
    this.step = driver.position().step;
    this.button = makeTextButton(say("predict"), () => this.toggle(), signal);
    this.score = makeScore(context);
    // A flipped switch rebuilds the player: a question that is next is asked at once.
    if (this.#isOn) this.#openUpTo(this.step + 1);
    // Digits flip switches, but while a question with choices is open, they choose an answer.
    listen(root, "keydown", (event) => this.#chooseByDigit(event), signal);
    driver.onChange("change:predict", () => this.#switched());
  }

  /** @type {Open | null} */
  #open = null;
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

  get #steps() {
    return this.context.run.steps;
  }

  /** Whether the panel shows a question. */
  get isAsking() {
    return this.#form !== null;
  }

  /** The question that the panel shows; null for none. */
  get asked() {
    return this.isAsking ? this.#open : null;
  }

  /**
   * Opens the first open question before a step, up to `to`; returns the step, -1 for none.
   * @param {number} to
   * @param {import("./questions.js").Answered} [answered]
   */
  #openUpTo(to, answered = this.#answered) {
    const step = firstOpenStep(this.#steps, answered, to);
    const question = step < 0 ? undefined : openQuestion(this.#steps[step], answered);
    if (question?.key !== this.#open?.question.key) this.#drop();
    this.#open = question ? { step, question } : null;
    return step;
  }

  /**
   * @param {Changes} changes
   * @returns {Changes}
   */
  limit(changes) {
    const { step } = changes;
    this.#hasMoved = step !== undefined;
    if (step === undefined || !this.#isOn) return changes;
    const before = changes.answered ?? this.#answered;
    const answered = reopenPassed(this.#steps, before, step, this.context.model.get("shown"));
    const next = this.#openUpTo(step, answered);
    if (this.isAsking && next - 1 === this.step) this.#askFirst();
    const moved = answered === before ? changes : { ...changes, answered };
    return next < 0 ? moved : { ...moved, step: Math.max(0, next - 1), playing: false };
  }

  /** Says why a move did nothing, unless a reason stands there. */
  #askFirst() {
    if (this.#form && !findElement(this.#form, ".hv-reason").textContent) this.#explain(this.context.say("ask_first"));
  }

  /**
   * Stops a move that did not go through the driver, such as one of a linked slider. Returns whether it did.
   * @param {number} step
   */
  holdAtQuestion(step) {
    if (!this.#isOn || firstOpenStep(this.#steps, this.#answered, step) < 0) return false;
    // A link between widgets ignores changes during its own change, so move back after it.
    queueMicrotask(() => this.context.driver.goTo(step));
    return true;
  }

  afterChange() {
    const asking = this.#isOn && this.#open !== null && this.step === this.#open.step - 1;
    const refusal = this.#refusal();
    const { say } = this.context;
    this.context.root.classList.toggle("hv-predicting", this.#isOn);
    const title = refusal || `${say("does_predict")} (P)`;
    setAttributes(this.button, { "aria-pressed": this.#isOn, "aria-disabled": refusal !== "", title });
    this.panel.pane.classList.toggle("hv-asking", asking);
    if (asking) this.#ask();
    else this.#drop();
    this.#hasMoved = false;
  }

  /** @param {number} step */
  paint(step) {
    this.step = step;
    if (!this.#isOn && hasAnswers(this.#answered)) this.#closeSeen();
    this.afterChange();
  }

  /** Closes the questions whose steps the user has seen while not predicting. */
  #closeSeen() {
    const answered = closeSeen(this.#steps, this.#answered, this.step);
    if (answered !== this.#answered) this.context.driver.setTraits(withScore(answered));
  }

  #switched() {
    if (this.#isOn) this.#closeSeen();
    this.#open = null;
    this.afterChange();
  }

  toggle() {
    const { driver, say } = this.context;
    const refusal = this.#refusal();
    if (refusal) {
      this.panel.showMessage(refusal);
      return;
    }
    // Who leaves at an open question can see the answer.
    const given = this.asked ? addAnswer(this.#answered, this.asked.question.key, false) : {};
    driver.setTraits({ ...given, predict: !this.#isOn });
    const isOver = this.#isOn && hasAnswers(this.#answered) && firstOpenStep(this.#steps, this.#answered, Infinity) < 0;
    if (isOver) this.panel.showMessage(say("ask_over"));
    else if (this.#isOn && !this.isAsking) this.panel.showMessage(say("ask_start"));
  }

  /** Switches predicting on and goes to the next question; returns whether there is one. */
  goToQuestion() {
    if (!this.#isOn) this.toggle();
    if (!this.#isOn || firstOpenStep(this.#steps, this.#answered, Infinity) < 0) return false;
    this.context.driver.goTo(this.#steps.length - 1);
    return this.isAsking;
  }

  #drop() {
    const { root } = this.context;
    // Removing the focused element would move the focus out of the player.
    if (this.#form?.contains(focusedElement(root))) root.focus({ preventScroll: true });
    this.#form?.remove();
    this.#form = null;
  }

  #ask() {
    const { root } = this.context;
    if (!this.#open) return;
    const { question } = this.#open;
    if (!this.#form) this.panel.showMessage("");
    this.#form ??= this.#newForm(question);
    if (!this.#form.isConnected) this.panel.told.after(this.#form);
    if (!this.#hasMoved) return;
    if (root.contains(focusedElement(root))) findElement(this.#form, "input, button").focus();
    else this.panel.announce(question.text);
  }

  /** @param {KeyedQuestion} question */
  #newForm(question) {
    const { root, content } = this.context;
    this.#hasFailedOnce = false;
    const form = makeQuestionForm(this.context, question, {
      choose: (index) => this.#choose(question, index),
      type: (text) => this.#judge(judgeNumbers(question, text)),
      reveal: () => this.close(false, ""),
      leave: () => root.focus(),
    });
    if (question.hook !== undefined) form.append(...makeHookSource(content.hooks[question.hook]));
    return form;
  }

  /**
   * @param {Question} question
   * @param {number} index
   */
  #choose(question, index) {
    const verdict = judgeChoice(question, index);
    if (this.#form && !verdict.right) markWrong(this.#form, index, this.context.say);
    this.#judge(verdict);
  }

  /** @param {Verdict | Unread} judged */
  #judge(judged) {
    const { say } = this.context;
    if ("unread" in judged) {
      this.#explain(say(`${judged.unread}`, { count: judged.count }));
      return;
    }
    if (judged.right) {
      this.close(true, say("ask_right"));
      return;
    }
    const reason = judged.reason || say("ask_other");
    if (this.#hasFailedOnce) {
      this.close(false, reason);
      return;
    }
    this.#hasFailedOnce = true;
    this.#explain(`${reason} ${say("ask_again")}`);
  }

  /** @param {string} text */
  #explain(text) {
    if (!this.#form) return;
    findElement(this.#form, ".hv-reason").textContent = text;
    this.#form.querySelector("input")?.select();
  }

  /**
   * Stores the result and goes to the step, or to the next question before it.
   * @param {boolean} right
   * @param {string} text
   */
  close(right, text) {
    const { driver } = this.context;
    if (!this.#open) return;
    const { step, question } = this.#open;
    const message = [text, right ? "" : this.#answerTo(question)].filter(Boolean).join(" ");
    driver.setTraits({ ...addAnswer(this.#answered, question.key, right && !this.#hasFailedOnce), step });
    const words = this.isAsking ? null : this.#steps[step].words;
    const next = this.#open ? this.#open.question.text : "";
    this.panel.showMessage(message, `${message} ${words ? words.sentence : next}`, right ? "hv-right" : "");
  }

  /**
   * Returns a sentence with the right answer.
   * @param {Question} question
   */
  #answerTo({ choices, right: index, answer }) {
    const choice = choices && index !== undefined ? choices[index] : answer;
    return choice ? this.context.say("ask_it_is", { choice }) : "";
  }

  /** Why predicting cannot be switched on; empty if it can, or if it is on. */
  #refusal() {
    const { say, content } = this.context;
    if (this.#isOn || this.#steps.some((step) => step.questions.length)) return "";
    const isComparison = content.runs.length > 1 && !content.switches.length;
    return say(isComparison ? "ask_compared" : "ask_none");
  }

  /** @param {KeyboardEvent} event */
  #chooseByDigit(event) {
    const digit = digitOf(actionOf(event));
    const question = this.#form?.isConnected ? this.#open?.question : undefined;
    if (!digit || !question?.choices) return;
    event.stopImmediatePropagation();
    if (digit <= question.choices.length) this.#choose(question, digit - 1);
  }
}

/**
 * Makes the score, which replaces the legend while predicting.
 * @param {Context} context
 */
function makeScore({ model, say, driver, signal }) {
  const pane = makeElement("p", "hv-score");
  const count = makeElement("span");
  const again = makeTextButton(say("again"), () => driver.setTraits({ answered: {}, asked: 0, right: 0, step: 0 }), signal);
  const paint = () => {
    const [right, asked] = [model.get("right"), model.get("asked")];
    count.textContent = asked ? say("score", { right, asked }) : "";
  };
  pane.append(count, again);
  driver.onChange("change:asked change:right", paint);
  paint();
  return pane;
}
