// The words beside the picture: what happens at a step.

import { find, legible, make, shape } from "./dom.js";
import { reasonsOf } from "./reasons.js";
import { wasUnlike } from "./stepping.js";

/** @import { Language } from "./language.js" */
/** @import { HookText, StepWords } from "./payload" */
/** @import { Context } from "./types" */

/** @typedef {{ label: string, value: string }} Card a value of a step, and what it is */

const ARROW = "M-7,0H5M0,-5L5,0L0,5";

/**
 * Not a section: among the slides of reveal.js each of those is a slide.
 * @param {string} name
 * @param {string} label
 */
export const region = (name, label) => make("div", name, "", { role: "region", "aria-label": label, tabindex: 0 });

export class Panel {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.pane = region("hv-panel", context.language.say("player.panel"));
    /** What a screen reader hears. */
    this.heard = make("div", "hv-heard", "", { "aria-live": "polite" });
    /** Whose the keys are, where that is not plain. */
    this.keys = make("p", "hv-keys");
  }

  /** @param {number} step */
  paint(step) {
    const words = this.context.run.steps[step].words;
    if (!words) return;
    const { language } = this.context;
    this.pane.classList.toggle("hv-forward", words.forward);
    this.say(`${language.read(words.title)}. ${language.read(words.sentence)} ${this.#beside(step)}`);
    this.pane.replaceChildren(...this.#parts(step, words));
    this.pane.scrollTop = 0;
  }

  /**
   * Lets a screen reader say something.
   * @param {string} text
   */
  say(text) {
    this.heard.textContent = legible(text);
  }

  /**
   * Shows a sentence that is about no step.
   * @param {string} text
   * @param {string} [spoken]
   */
  tell(text, spoken = text) {
    this.say(spoken);
    const line = this.pane.querySelector(".hv-told");
    if (line) line.textContent = legible(text);
    this.pane.scrollTop = 0;
  }

  /**
   * What happens there instead, in the run that this one is compared with.
   * @param {number} step
   */
  #beside(step) {
    const { language, run, beside } = this.context;
    const [other, own] = [beside, run].map((one) => language.read(one?.steps[step].words?.sentence ?? ""));
    const sentence = wasUnlike(other, own);
    return sentence && beside ? language.say("player.beside", { label: language.read(beside.label), sentence }) : "";
  }

  /**
   * @param {number} step
   * @param {StepWords} words
   */
  #parts(step, words) {
    const { language, run, beside, open: { content } } = this.context;
    const { hook } = run.steps[step];
    const sentence = language.read(words.sentence);
    const before = beside?.steps[step].words;
    return [
      headOf(language.say("player.step_of", { step: step + 1, steps: run.steps.length }), language.read(words.title)),
      this.keys,
      make("p", "hv-told"),
      make("p", `hv-sentence ${sentenceSize(sentence)}`, sentence),
      make("p", "hv-beside", this.#beside(step)),
      cardsRow(cardsOf(words, language), before ? cardsOf(before, language) : []),
      partsList(words, language),
      reasonsOf(run.steps[step], words, language),
      ...(hook === null ? [] : hookSource(content.hooks[hook], language)),
      make("p", "hv-kept", language.read(words.kept)),
      make("p", "hv-next", language.read(words.next)),
    ];
  }

  /** Where a question is put: below the title. */
  get head() {
    return find(this.pane, ".hv-head-line");
  }
}

/**
 * @param {string} count
 * @param {string} text
 */
function headOf(count, text) {
  const head = make("p", "hv-head-line");
  const title = make("strong", "hv-title");
  // A long name may break behind a dot.
  legible(text).split(/(?<=\.)/).forEach((part, i) => title.append(...(i ? [make("wbr")] : []), part));
  head.append(make("span", "hv-count", count), title);
  return head;
}

/**
 * A card for each value that is known.
 * @param {StepWords} words
 * @param {Language} language
 * @returns {Card[]}
 */
export function cardsOf(words, language) {
  const { before, after, before_label: beforeLabel, after_label: afterLabel } = words;
  /** @type {[import("./payload").Message, import("./payload").Message | null][]} */
  const both = [[beforeLabel, before], [afterLabel, after]];
  return both.flatMap(([label, value]) => (value === null ? [] : [{ label: language.read(label), value: language.read(value) }]));
}

/**
 * One card or two, with an arrow between; wide ones come below each other.
 * @param {Card[]} cards
 * @param {Card[]} before those of the run that is compared with
 */
function cardsRow(cards, before) {
  const row = make("div", "hv-values");
  cards.forEach(({ label, value }, i) => {
    const group = make("div", "hv-value-group");
    const card = make("div", "hv-card");
    const was = wasUnlike(before.find((other) => other.label === label)?.value ?? "", value);
    card.append(make("div", "hv-label", label));
    if (was) card.append(make("s", "hv-was", was));
    card.append(valueElement("div", value));
    if (i) group.append(shape(ARROW, "hv-arrow"));
    group.append(card);
    row.append(group);
  });
  return row;
}

/**
 * A number stands large; a matrix may scroll, and must then be reachable from the keyboard. One line may be broken.
 * @param {"div" | "dd"} tag
 * @param {string} value
 */
function valueElement(tag, value) {
  const size = valueSize(value);
  const flat = value.includes("\n") ? "" : " hv-flat";
  return make(tag, `hv-value hv-${size}${flat}`, value, size === "many" ? { tabindex: 0 } : {});
}

/**
 * Whether a value is one number or so, or a matrix.
 * @param {string} value
 */
export function valueSize(value) {
  if (value.includes("\n") || value.length > 14) return "many";
  return value.length > 9 ? "some" : "one";
}

/**
 * A long sentence is set smaller, so that the values below it stay on the screen.
 * @param {string} sentence
 */
export function sentenceSize(sentence) {
  if (sentence.length > 120) return "hv-longer";
  return sentence.length > 64 ? "hv-long" : "";
}

/**
 * What arrived from where, or what is sent to whom.
 * @param {StepWords} words
 * @param {Language} language
 */
function partsList({ parts }, language) {
  const list = make("dl", "hv-parts");
  for (const [where, value] of parts) {
    const part = make("div", "hv-part");
    part.append(make("dt", "", language.read(where)), valueElement("dd", language.read(value)));
    list.append(part);
  }
  return list;
}

/**
 * Whose code ran: its name, its place and its lines.
 * @param {HookText} hook
 * @param {Language} language
 */
export function hookSource(hook, language) {
  const where = make("p", "hv-where");
  where.append(make("code", "hv-hook-name", hook.name), make("span", "", language.read(hook.where)));
  if (hook.source === null) return [where, make("p", "hv-kept", language.read(hook.missing ?? ""))];
  const code = make("ol", "hv-code");
  for (const { number, text, marked } of sourceLines(hook.source, hook.first ?? 1, hook.mark)) {
    const line = make("li", marked ? "hv-marked" : "");
    line.append(make("span", "hv-line-number", String(number)), make("code", "", text));
    code.append(line);
  }
  return [where, code];
}

/**
 * A hook's source as numbered lines.
 * @param {string} source
 * @param {number} first
 * @param {number | null} mark
 */
export function sourceLines(source, first, mark) {
  const lines = source.replace(/\s+$/, "").split("\n");
  return lines.map((text, i) => ({ number: first + i, text, marked: first + i === mark }));
}
