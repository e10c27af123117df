// The panel: the words of a step.

import { hiddenNumbers, keepShapesTogether, makeCards, makeNumbers } from "./cards.js";
import { makeClosing } from "./closing.js";
import { CodePane, splitLines } from "./code_pane.js";
import { appendNames, escapeBidi, focusedElement, makeElement, makeShape, onAbort } from "../common/dom.js";
import { describeFlip } from "../compare/flip_result.js";
import { makeMoves } from "./moves.js";
import { makeFormulaSources, makeReasons } from "./reasons.js";
import { oldTextIfChanged } from "../common/stepping.js";
import { sayPosition } from "../common/pass_titles.js";

/** @import { Say } from "../common/labels.js" */
/** @import { HookText, StepWords } from "../common/payload" */
/** @import { Context, LoadedRun } from "../common/types" */

/** Pixels below the cards that are in sight with them. */
const BELOW_CARDS = 4;

const TICK = "M-6,0L-2,5L6,-5";

/** Makes the sign of a right answer: its shape and the words next to it say the same as its colour. */
export const makeTick = () => makeShape(TICK, "hv-check");

/**
 * Makes a part with a name. Not a landmark, of which a page with several players would have several with the same name.
 * @param {string} name
 * @param {string} label
 */
export const makeRegion = (name, label) => makeElement("div", name, "", { role: "group", "aria-label": label, tabindex: 0 });

export class Panel {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.pane = makeRegion("hv-panel", context.say("panel"));
    /** The text for screen readers. */
    this.liveRegion = makeElement("div", "hv-heard", "", { "aria-live": "polite" });
    /** A note about the keyboard, after Escape. */
    this.keysNote = makeElement("p", "hv-keys");
    this.code = new CodePane(context);
    /** A message that is not part of a step; a question is inserted after it. */
    this.told = makeElement("p", "hv-told");
    /** What experts want to know; it stays open from step to step. */
    this.more = makeElement("details", "hv-more");
    this.moreLines = makeElement("div");
    this.more.append(makeElement("summary", "", context.say("more")), this.moreLines);
    /** What the switches that are off change in the end. */
    this.flip = makeElement("p", "hv-flip");
    this.pane.append(this.keysNote, this.told, this.flip, this.more);
    context.driver.onChange("change:predict", () => this.#paintFlip());
    this.#paintFlip();
    /** The words, which scroll, and below them the code, which stays. */
    this.column = makeElement("div", "hv-column");
    this.column.append(this.pane, this.code.pane);
    const observer = new ResizeObserver(() => this.#showCards());
    observer.observe(this.column);
    onAbort(context.signal, () => observer.disconnect());
  }

  /** Whether the numbers behind the cards are shown; they stay shown from step to step. */
  #showsNumbers = false;

  /** What the switches that are off change in the end; empty if none is off, and while one predicts it. */
  get flipResult() {
    const { content, run, baseline, say, model } = this.context;
    return content.switches.length && !model.get("predict") ? describeFlip(run, baseline, say) : "";
  }

  #paintFlip() {
    this.flip.textContent = this.flipResult;
  }

  /** @param {number} step */
  paint(step) {
    const words = this.context.run.steps[step].words;
    if (!words) return;
    this.pane.classList.toggle("hv-forward", words.forward);
    this.announce(`${words.title}. ${spokenWords(words)} ${this.#baselineSentence(step)}`);
    // What stays is not moved: it would lose the focus and its scroll position.
    /** @type {Element[]} */
    const kept = [this.keysNote, this.told, this.flip, this.more];
    const hadFocus = Boolean(focusedElement(this.context.root)?.closest(".hv-numbers"));
    if (this.told.textContent) this.told.textContent = "";
    this.told.className = "hv-told";
    const { head, first, rest } = this.#makeWords(step, words);
    for (const child of [...this.pane.children]) if (!kept.includes(child)) child.remove();
    this.pane.prepend(head);
    for (const [place, lines] of /** @type {[Element, Element[]][]} */ ([[this.told, first], [this.flip, rest]])) {
      place.after(...lines.filter((line) => line.hasChildNodes()));
    }
    this.#fillMore(words);
    this.code.paint(words.code, this.context.run.steps[step].sign !== null);
    const numbers = /** @type {HTMLElement | null} */ (this.pane.querySelector(".hv-numbers summary"));
    if (hadFocus) (numbers ?? this.context.root).focus({ preventScroll: true });
    this.pane.scrollTop = 0;
    this.#showCards();
  }

  /** Takes rows from the code if one would have to scroll to see what a step begins with and ends with. */
  #showCards() {
    this.code.giveRoom(0);
    const after = this.pane.querySelector(".hv-before ~ .hv-after");
    if (after) this.code.giveRoom(after.getBoundingClientRect().bottom + BELOW_CARDS - this.pane.getBoundingClientRect().bottom);
  }

  /**
   * Announces a text to screen readers.
   * @param {string} text
   */
  announce(text) {
    this.liveRegion.textContent = escapeBidi(text);
  }

  /**
   * Shows a message that is not part of a step, and announces it.
   * @param {string} text
   * @param {string} [spoken]
   * @param {"" | "hv-right" | "hv-neutral"} [tone] an answer that is right is no warning, nor is that nothing was found
   */
  showMessage(text, spoken = text, tone = "") {
    this.announce(spoken);
    this.told.textContent = escapeBidi(text);
    this.told.className = `hv-told ${tone}`.trim();
    if (tone === "hv-right") this.told.prepend(makeTick());
    this.pane.scrollTop = 0;
  }

  /**
   * Returns what happens in the baseline instead; empty if the same.
   * @param {number} step
   */
  #baselineSentence(step) {
    const { say, run, baseline } = this.context;
    const [other, own] = [baseline, run].map((one) => one?.steps[step].words?.sentence ?? "");
    const sentence = oldTextIfChanged(other, own);
    return sentence && baseline ? say("beside", { label: baseline.label, sentence }) : "";
  }

  /**
   * @param {number} step
   * @param {StepWords} words
   */
  #makeWords(step, words) {
    const { say, run, baseline, content } = this.context;
    const { hook } = run.steps[step];
    const before = baseline?.steps[step].words;
    const head = makeHead(sayPosition(this.context, step), words.title);
    const isStart = step === 0 && run.steps.length > 1 && !baseline;
    const isEnd = step === run.steps.length - 1;
    const first = [
      makeSentence(words, hook === null ? "" : content.hooks[hook].name),
      makeElement("p", "hv-start", isStart ? sayStart(run, say) : ""),
      makeElement("p", "hv-beside", this.#baselineSentence(step)),
      makeCards(words.cards, before?.cards ?? [], run.steps[step].sign),
    ];
    const rest = [
      ...this.#makeNumbers(words),
      makeMoves(words.moves),
      makeElement("p", "hv-facts", words.facts),
      ...(isEnd ? [makeClosing(run, say)] : []),
      makeReasons(run.steps[step], words, say),
      ...(hook === null ? [] : makeHookName(content.hooks[hook])),
      makeElement("p", "hv-next", words.next_hook),
    ];
    return { head, first, rest };
  }

  /** @param {StepWords} words */
  #makeNumbers(words) {
    const numbers = hiddenNumbers(words);
    if (!numbers.length) return [];
    const details = makeNumbers(numbers, this.context.say, this.#showsNumbers);
    details.addEventListener("toggle", () => { if (details.isConnected) this.#showsNumbers = details.open; });
    return [details];
  }

  /** @param {StepWords} words */
  #fillMore(words) {
    const { say, root } = this.context;
    const { registration } = words;
    const lines = makeFormulaSources(words, say);
    if (registration) lines.unshift(makeElement("p", "hv-kept", registration));
    // A hidden element would take the focus out of the player.
    if (!lines.length && this.more.contains(focusedElement(root))) root.focus({ preventScroll: true });
    if (this.more.hidden === lines.length > 0) this.more.hidden = !lines.length;
    this.moreLines.replaceChildren(...lines);
  }
}

/**
 * Says what to do first; if no hook fired, why.
 * @param {LoadedRun} run
 * @param {Say} say
 */
function sayStart({ firings, silent }, say) {
  const hasKeys = !matchMedia("(pointer: coarse)").matches;
  if (firings.length) return say(hasKeys ? "start_hooks" : "start_hooks_touch");
  if (silent.length) return silent[0].reason;
  return say(hasKeys ? "start" : "start_touch");
}

/**
 * @param {string} count
 * @param {string} text
 */
function makeHead(count, text) {
  const head = makeElement("p", "hv-head-line");
  const title = makeElement("strong", "hv-title");
  appendNames(title, text);
  // A line may end at the space, and need not end inside a name.
  head.append(makeElement("span", "hv-count", count), " ", title);
  return head;
}

/**
 * Makes the sentence of a step; of a hook, its headline, which begins with the name of the hook.
 * @param {StepWords} words
 * @param {string} hook
 */
function makeSentence({ sentence, headline }, hook) {
  const text = headline ?? sentence;
  const element = makeElement("p", `hv-sentence ${sentenceSize(text)}`);
  const isNamed = hook !== "" && headline !== undefined && text.startsWith(hook);
  if (isNamed) element.append(makeElement("b", "hv-actor", hook));
  appendNames(element, keepShapesTogether(isNamed ? text.slice(hook.length) : text));
  return element;
}

/**
 * Returns what a screen reader says of a step: of a hook, its headline and the cards.
 * @param {StepWords} words
 */
function spokenWords({ sentence, headline, cards }) {
  if (headline === undefined) return sentence;
  const values = cards.map(({ label, amounts }) => `${label} ${amounts.map(({ value, note }) => `${value} ${note}`).join(", ")}`);
  return `${headline}. ${values.join("; ")}`;
}

/**
 * Returns the class of a sentence: a long one is smaller, so that the values below it stay on the screen.
 * @param {string} sentence
 */
export function sentenceSize(sentence) {
  if (sentence.length > 120) return "hv-longer";
  return sentence.length > 64 ? "hv-long" : "";
}

/**
 * Makes the elements for a hook: its name and location, and why there is no source if there is none.
 * @param {HookText} hook
 */
function makeHookName(hook) {
  const where = makeElement("p", "hv-where");
  where.append(makeElement("code", "hv-hook-name", hook.name), makeElement("span", "", hook.where));
  return hook.source === null ? [where, makeElement("p", "hv-kept", hook.no_source ?? "")] : [where];
}

/**
 * Makes the elements for a hook with its source.
 * @param {HookText} hook
 */
export function makeHookSource(hook) {
  const name = makeHookName(hook);
  if (hook.source === null) return name;
  const code = makeElement("ol", "hv-code");
  for (const { number, text, marked } of sourceLines(hook.source, hook.first_line ?? 1, hook.return_line)) {
    const line = makeElement("li", marked ? "hv-marked" : "");
    line.append(makeElement("span", "hv-line-number", String(number)), makeElement("code", "", text));
    code.append(line);
  }
  return [...name, code];
}

/**
 * Splits a hook's source into numbered lines; `marked` is the line that returns.
 * @param {string} source
 * @param {number} first
 * @param {number | null} mark
 */
export function sourceLines(source, first, mark) {
  return splitLines(source).map((text, i) => ({ number: first + i, text, marked: first + i === mark }));
}
