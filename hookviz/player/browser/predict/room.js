// The room mode of Predict: the open question over the whole screen, with letters, votes and a key that reveals the answer.

import { escapeBidi, findElement, listen, makeElement, makeTextButton, setAttributes } from "../common/dom.js";
import { keyOf } from "../common/key_bindings.js";
import { makeHookSource, makeTick } from "../panel/panel.js";
import { choicesOf, isRoomRight, readVotes, sharesOf } from "./room_votes.js";

/** @import { Panel } from "../panel/panel.js" */
/** @import { Open, Predict } from "./predict.js" */
/** @import { Choice } from "./room_votes.js" */
/** @import { Actions, Context } from "../common/types" */

/** The scales of the text that are tried until the question fits the screen. */
const SCALES = [1, 0.9, 0.8, 0.7, 0.62];

/** A dialog with the question that is open. The lecturer types the votes; nothing of it leaves the browser. */
export class Room {
  /**
   * @param {Context} context
   * @param {Panel} panel
   * @param {Predict} predict
   */
  constructor(context, panel, predict) {
    const { say, signal } = context;
    this.context = context;
    this.panel = panel;
    this.predict = predict;
    this.dialog = makeElement("dialog", "hv-room", "", { "aria-label": say("room") });
    this.button = makeTextButton(say("room"), () => this.open(), signal);
    this.button.classList.add("hv-room-button");
    listen(this.dialog, "keydown", (event) => this.#press(event), signal);
    listen(this.dialog, "input", () => this.#paintVotes(), signal);
    // A "close" event comes later than the next key may, which may have opened the dialog again.
    listen(this.dialog, "cancel", (event) => {
      event.preventDefault();
      this.#leave();
    }, signal);
    listen(this.dialog, "close", () => this.dialog.open || this.#leave(), signal);
    listen(window, "resize", () => this.#fit(), signal);
  }

  /** @type {Open | null} */
  #open = null;
  /** @type {Choice[]} */
  #choices = [];
  #isRevealed = false;

  /** @returns {Actions} */
  get actions() {
    return { room: () => this.open() };
  }

  /** Shows the question that is open; if there is none, it goes to the next one first. */
  open() {
    const { say } = this.context;
    const next = this.predict.asked ?? (this.predict.goToQuestion() ? this.predict.asked : null);
    if (!next) {
      if (this.context.model.get("predict")) this.panel.showMessage(say("room_over"));
      return;
    }
    if (next.question.key !== this.#open?.question.key) this.#build(next);
    this.context.root.append(this.dialog);
    this.dialog.showModal();
    this.#fit();
    this.#focusFirst();
  }

  get #fields() {
    return [...this.dialog.querySelectorAll("input")];
  }

  get #votes() {
    return this.#fields.map((field) => readVotes(field.value));
  }

  #focusFirst() {
    const empty = this.#fields.find((field) => !field.value && !field.readOnly);
    (empty ?? findElement(this.dialog, ".hv-room-next")).focus();
  }

  /** @param {Open} open */
  #build(open) {
    const { say, content, model, signal } = this.context;
    const { question } = open;
    const choices = choicesOf(question);
    [this.#open, this.#isRevealed, this.#choices] = [open, false, choices.length > 1 ? choices : []];
    const label = question.run === model.get("shown") ? "" : content.runs[question.run].label;
    const head = makeElement("div", "hv-room-head");
    head.append(makeElement("p", "hv-hint", label), makeElement("p", "hv-room-question", question.text));
    const list = makeElement("ol", "hv-room-choices");
    list.append(...this.#choices.map((choice) => this.#makeChoice(choice)));
    const body = makeElement("div", "hv-room-body");
    body.append(list);
    if (question.hook !== undefined) {
      const source = makeElement("div", "hv-room-source");
      source.append(...makeHookSource(content.hooks[question.hook]));
      body.append(source);
    }
    if (!this.#choices.length) head.append(makeElement("p", "hv-hint", say("room_few")));
    const foot = makeElement("div", "hv-room-foot");
    const goOn = () => (this.#isRevealed ? this.#leave() : this.#reveal());
    const next = makeTextButton(say("room_reveal"), goOn, signal);
    next.classList.add("hv-room-next");
    const close = makeTextButton(say("close"), () => this.#leave(), signal);
    const hint = this.#choices.length ? say("room_hint") : "";
    foot.append(makeElement("p", "hv-room-result", hint, { role: "status" }), close, next);
    this.dialog.replaceChildren(head, body, foot);
    this.#paintVotes();
  }

  /** @param {Choice} choice */
  #makeChoice({ letter, text }) {
    const { say } = this.context;
    const item = makeElement("li", "hv-room-choice");
    const words = makeElement("div", "hv-room-words");
    const bar = makeElement("div", "hv-room-bar");
    bar.append(makeElement("div", "hv-room-share"));
    words.append(makeElement("p", "hv-room-text", text), bar, makeElement("p", "hv-room-reason"));
    const label = say("room_votes", { letter });
    const digits = { type: "text", inputmode: "numeric", maxlength: 5, autocomplete: "off", "aria-label": label };
    const field = makeElement("input", "hv-field", "", digits);
    item.append(makeElement("span", "hv-room-letter", letter), words, makeElement("span", "hv-room-percent"), field);
    return item;
  }

  #paintVotes() {
    const shares = sharesOf(this.#votes);
    const hasVotes = shares.some(Boolean);
    [...this.dialog.querySelectorAll(".hv-room-choice")].forEach((item, i) => {
      findElement(item, ".hv-room-share").style.width = `${shares[i]}%`;
      findElement(item, ".hv-room-percent").textContent = hasVotes ? `${shares[i]} %` : "";
    });
  }

  /** Gives the focus back; after the answer was revealed, the player goes on to the step. */
  #leave() {
    if (!this.dialog.isConnected) return;
    this.dialog.close();
    this.dialog.remove();
    this.context.root.focus({ preventScroll: true });
    if (!this.#open || !this.#isRevealed) return;
    this.#open = null;
    this.predict.close(this.#choices.length > 0 && isRoomRight(this.#choices, this.#votes), "");
  }

  #reveal() {
    const { say } = this.context;
    this.#isRevealed = true;
    this.dialog.querySelectorAll(".hv-room-choice").forEach((item, i) => {
      const { isRight, reason } = this.#choices[i];
      item.classList.toggle("hv-right", isRight);
      if (isRight) findElement(item, ".hv-room-text").prepend(makeTick());
      const why = isRight ? "" : reason || say("room_not");
      findElement(item, ".hv-room-reason").textContent = escapeBidi(why);
    });
    for (const field of this.#fields) field.readOnly = true;
    const result = findElement(this.dialog, ".hv-room-result");
    result.textContent = escapeBidi(this.#result());
    result.classList.add("hv-right");
    const next = findElement(this.dialog, ".hv-room-next");
    next.textContent = say("room_on");
    next.focus();
    this.#fit();
  }

  /** The right answer, and how many votes it got. */
  #result() {
    const { say } = this.context;
    const right = this.#choices.findIndex((choice) => choice.isRight);
    if (right < 0) return say("ask_it_is", { choice: this.#open?.question.answer ?? "" });
    const [votes, total] = [this.#votes[right], this.#votes.reduce((sum, count) => sum + count, 0)];
    const { letter, text } = this.#choices[right];
    const counted = total ? say("room_counted", { votes, total }) : "";
    return `${say("room_right", { letter, choice: text })} ${counted}`.trim();
  }

  /** Makes the text smaller until all of it fits; if that is not enough, the middle scrolls. */
  #fit() {
    if (!this.dialog.open || !this.dialog.isConnected) return;
    const body = findElement(this.dialog, ".hv-room-body");
    body.removeAttribute("tabindex");
    for (const scale of SCALES) {
      this.dialog.style.setProperty("--hv-scale", String(scale));
      if (body.scrollHeight <= body.clientHeight + 1) return;
    }
    setAttributes(body, { tabindex: 0 });
  }

  /**
   * Handles the keys of the dialog: the player and the notebook get none of them.
   * @param {KeyboardEvent} event
   */
  #press(event) {
    event.stopPropagation();
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const fields = this.#fields;
    const index = fields.findIndex((field) => field === event.target);
    const letter = keyOf(event).toUpperCase();
    const named = this.#choices.findIndex((choice) => choice.letter === letter);
    /** @type {{ [key: string]: HTMLElement | undefined }} */
    const targets = {
      ArrowDown: fields[index + 1],
      ArrowUp: fields[index - 1],
      Enter: fields[index + 1] ?? findElement(this.dialog, ".hv-room-next"),
    };
    const target = named >= 0 ? fields[named] : index >= 0 ? targets[event.key] : undefined;
    if (letter === "R" && !this.#isRevealed && !event.repeat) this.#reveal();
    else if (target) target.focus();
    else if (event.key.length > 1 || /\d/.test(keyOf(event)) || event.key === " ") return;
    event.preventDefault();
  }
}
