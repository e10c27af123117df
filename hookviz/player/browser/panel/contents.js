// The contents on top of the player: what all hooks did, and a chip for each hook and each finding, which leads to its step.

import { closestTarget, listen, makeElement, makeShape, setAttributes } from "../common/dom.js";
import { nextStepAmong } from "../common/stepping.js";
import { joinFirings } from "./chip_groups.js";
import { showFinding } from "./findings.js";
import { makeSign } from "./signs.js";

/** @import { ChipGroup } from "./chip_groups.js" */
/** @import { Panel } from "./panel.js" */
/** @import { Context, Sign } from "../common/types" */

/**
 * @typedef {object} Chip
 * @property {HTMLElement} button
 * @property {number[]} steps the steps that it leads to; none for a hook that did not fire
 * @property {(step: number) => string} note what it says at a step
 * @property {() => void} act
 */

const WARNING = "M0,-6L6.5,5.5H-6.5zM0,-1.5V1.5M0,3.4V3.9";

export class Contents {
  /**
   * @param {Context} context
   * @param {Panel} panel
   */
  constructor(context, panel) {
    const { say, signal, driver } = context;
    this.context = context;
    this.panel = panel;
    this.pane.append(this.summary, this.list);
    setAttributes(this.list, { "aria-label": say("contents") });
    listen(this.list, "click", (event) => {
      const button = closestTarget(event, "button");
      this.#chips.find((chip) => chip.button === button)?.act();
    }, signal);
    driver.onChange("change:predict", () => this.#build());
    this.#build();
  }

  pane = makeElement("div", "hv-contents");
  summary = makeElement("p", "hv-summary");
  list = makeElement("ol", "hv-chips");
  /** @type {Chip[]} */
  #chips = [];

  #build() {
    const { model, run, content, driver } = this.context;
    const isPredicting = Boolean(model.get("predict"));
    const { step } = driver.position();
    const groups = joinFirings(run.firings, isPredicting ? step + 1 : Infinity);
    // The chip of a single silent hook says why it did not fire.
    const isSaid = run.silent.length === 1;
    const findings = isPredicting ? [] : content.findings.filter(({ silent }) => !silent || !isSaid);
    this.#chips = [
      ...groups.map((group) => this.#makeHookChip(group)), ...findings.map((finding) => this.#makeFindingChip(finding)),
      ...run.silent.map((hook) => this.#makeSilentChip(hook, isPredicting)),
    ];
    // While predicting, hooks to come stand by their names: their order would answer which one runs next.
    const from = isPredicting ? step : Infinity;
    this.#chips.sort((one, other) => compareChips(one, other, from));
    this.list.replaceChildren(...this.#chips.map(({ button }) => {
      const item = makeElement("li");
      item.append(button);
      return item;
    }));
    this.list.hidden = !this.#chips.length;
    this.#writeSummary(isPredicting);
    this.#paintChips(step);
  }

  /** @param {boolean} isPredicting */
  #writeSummary(isPredicting) {
    const { run, content, say } = this.context;
    const { length } = content.findings;
    const found = length ? [say(length > 1 ? "found_some" : "found_one", { count: length })] : [];
    const [first = "", ...rest] = isPredicting ? [say("contents_later")] : [...run.summary, ...found];
    const about = makeElement("span", "hv-about", content.title);
    this.summary.hidden = !this.#chips.length;
    // Hooks that changed nothing are no alarm.
    const areCalm = !isPredicting && run.firings.every(({ step }) => run.steps[step].sign !== "changed") && !run.silent.length;
    this.summary.classList.toggle("hv-calm", areCalm);
    // On a phone the line ends where the screen ends.
    this.summary.title = [first, ...rest].join(" · ");
    this.summary.replaceChildren(makeElement("strong", "", first), rest.map((text) => ` · ${text}`).join(""), about);
  }

  /** @param {number} step */
  paint(step) {
    // While predicting, what a hook did shows when its step is reached.
    if (this.context.model.get("predict")) this.#build();
    else this.#paintChips(step);
  }

  /** @param {number} step */
  #paintChips(step) {
    for (const chip of this.#chips) paintChip(chip, step);
    const reached = this.#chips.filter(({ steps }) => steps.length && steps[0] <= step);
    const stop = (reached.at(-1) ?? this.#chips[0])?.button;
    // One tab stop: the keys [ and ] go from hook to hook.
    for (const { button } of this.#chips) {
      const order = button === stop ? 0 : -1;
      if (button.tabIndex !== order) button.tabIndex = order;
    }
    if (stop) this.#reveal(stop);
  }

  /**
   * Scrolls the line of chips, and nothing else, so that a chip is in its middle.
   * @param {HTMLElement} button
   */
  #reveal(button) {
    const { list } = this;
    if (list.scrollWidth <= list.clientWidth) return;
    const [inner, outer] = [button, list].map((element) => element.getBoundingClientRect());
    list.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
  }

  /**
   * @param {ChipGroup} group
   * @returns {Chip}
   */
  #makeHookChip({ name, on, sign, short, steps }) {
    const { say, driver } = this.context;
    const count = steps.length > 1 ? ` × ${steps.length}` : "";
    /** @param {number} step */
    const note = (step) => {
      if (steps[0] > step) return say("to_come");
      const index = steps.indexOf(step);
      return index >= 0 && steps.length > 1 ? `${short} · ${say("chip_of", { number: index + 1, count: steps.length })}` : short;
    };
    const act = () => driver.goTo(nextStepAmong(steps, driver.position().step));
    return { button: makeChip(sign, `${name}${count}`, on), steps, note, act };
  }

  /**
   * @param {import("../common/payload").FindingText} finding
   * @returns {Chip}
   */
  #makeFindingChip(finding) {
    const { text, name, step } = finding;
    const button = makeChip("open", name, "");
    button.classList.add("hv-chip-finding");
    button.title = text;
    button.querySelector("svg")?.replaceWith(makeShape(WARNING, "hv-hook-sign hv-sign-warning"));
    const act = () => showFinding(finding, this.context.driver, this.panel);
    return { button, steps: [step], note: () => "", act };
  }

  /**
   * @param {import("../common/payload").SilentHook} hook
   * @param {boolean} isPredicting whether it must not say yet that the hook did not fire
   * @returns {Chip}
   */
  #makeSilentChip({ name, on, reason }, isPredicting) {
    const { say } = this.context;
    const button = makeChip(isPredicting ? "open" : "silent", name, on);
    if (!isPredicting) button.title = reason;
    const note = say(isPredicting ? "to_come" : "legend_silent");
    const said = isPredicting ? say("found_later") : reason;
    return { button, steps: [], note: () => note, act: () => this.panel.showMessage(said) };
  }
}

/**
 * Orders chips by their steps; those to come after a step, and those that lead to none, then by their texts.
 * @param {Chip} one
 * @param {Chip} other
 * @param {number} from
 */
function compareChips(one, other, from) {
  const [first, second] = [one, other].map(({ steps: [step = Infinity] }) => Math.min(step, from + 1));
  if (first !== second) return first - second;
  return first > from ? (one.button.textContent ?? "").localeCompare(other.button.textContent ?? "") : 0;
}

/**
 * @param {Chip} chip
 * @param {number} step
 */
function paintChip({ button, steps, note: noteAt }, step) {
  const isNow = steps.includes(step);
  const isToCome = !steps.length || steps[0] > step;
  const state = isNow ? "hv-now" : isToCome ? "hv-todo" : "hv-done";
  const [note] = button.getElementsByClassName("hv-chip-note");
  const text = noteAt(step);
  if (note.textContent !== text) note.textContent = text;
  const name = button.className.replace(/ hv-(now|todo|done)$/, "");
  if (button.className === `${name} ${state}`) return;
  button.className = `${name} ${state}`;
  if (isNow) setAttributes(button, { "aria-current": "step" });
  else button.removeAttribute("aria-current");
}

/**
 * @param {Sign} sign
 * @param {string} name
 * @param {string} on
 */
function makeChip(sign, name, on) {
  const button = makeElement("button", `hv-chip hv-chip-${sign}`, "", { type: "button" });
  button.append(makeSign(sign), makeElement("b", "", name, { title: name }), makeElement("span", "hv-chip-on", on, { title: on }));
  button.append(makeElement("span", "hv-chip-note"));
  return button;
}
