// Breakpoints: playing stops wherever a marked hook runs.

import { find, listen, make, mark, shape, textButton } from "./dom.js";

/** @import { Panel } from "./panel.js" */
/** @import { Actions, Changes, Context, Position } from "./types" */

const SIGN = "M-2.5,-6H2.5L6,-2.5V2.5L2.5,6H-2.5L-6,2.5V-2.5z";

/** A rule of the driver: it ends playing at the step of a hook with a breakpoint. */
export class Breakpoints {
  /**
   * @param {Context} context
   * @param {Panel} panel
   */
  constructor(context, panel) {
    this.context = context;
    this.panel = panel;
    context.driver.onChange("change:breakpoints", () => this.paint());
    listen(context.root, "hv-drawn", () => this.paint(), context.signal);
  }

  /** @returns {Actions} */
  get actions() {
    return { breakpoint: () => this.toggle() };
  }

  /** The hooks that are marked. */
  get #hooks() {
    return this.context.model.get("breakpoints") ?? [];
  }

  /** @param {number | null} hook */
  #isMarked(hook) {
    return hook !== null && this.#hooks.includes(hook);
  }

  /**
   * @param {Changes} changes
   * @param {Position} position
   * @returns {Changes}
   */
  limit(changes, { step, playing }) {
    const target = changes.step;
    if (target === undefined || target === step || !(changes.playing ?? playing)) return changes;
    return this.#isMarked(this.context.run.steps[target].hook) ? { ...changes, playing: false } : changes;
  }

  toggle() {
    const { language, driver, run, open: { content } } = this.context;
    const { hook } = run.steps[driver.position().step];
    if (hook === null) {
      this.panel.tell(language.say("player.no_hook_here"));
      return;
    }
    const isMarked = this.#isMarked(hook);
    const others = this.#hooks.filter((other) => other !== hook);
    driver.put({ breakpoints: isMarked ? others : [...others, hook] });
    this.panel.tell(language.say(isMarked ? "player.stop_gone" : "player.stop_set", { hook: content.hooks[hook].name }));
  }

  paint() {
    const { root, run, driver, language } = this.context;
    const { hook } = run.steps[driver.position().step];
    const button = this.#addButton();
    if (button) mark(button, { "aria-pressed": this.#isMarked(hook) });
    if (!this.#hooks.length && !root.querySelector(".hv-sign")) return;
    root.querySelectorAll(".hv-timeline .hv-tick").forEach((tick, i) => flag(tick, this.#isMarked(run.steps[i].hook), onTick));
    root.querySelectorAll(".hv-firings tbody tr").forEach((row) => {
      const step = Number(find(row, "button").textContent) - 1;
      flag(row, this.#isMarked(run.steps[step].hook), () => onRow(row, language.say("player.stop")));
    });
    for (const pin of root.querySelectorAll(".hv-pin[data-hook]")) {
      flag(pin, this.#isMarked(Number(pin.getAttribute("data-hook"))), onPin);
    }
  }

  /** The button beside the name of the hook that the panel shows; null where it shows none. */
  #addButton() {
    const where = this.panel.pane.querySelector(":scope > .hv-where");
    if (where && !where.querySelector("button")) {
      const { language, signal } = this.context;
      const button = textButton(language.say("player.stop"), () => this.toggle(), signal);
      button.prepend(shape(SIGN, "hv-icon"));
      where.append(button);
    }
    return where?.querySelector("button") ?? null;
  }
}

/**
 * Adds the sign of a breakpoint, or takes it away.
 * @param {Element} element
 * @param {boolean} isMarked
 * @param {(element: Element) => void} addSign
 */
function flag(element, isMarked, addSign) {
  const sign = element.querySelector(".hv-sign");
  if (isMarked && !sign) addSign(element);
  if (!isMarked) sign?.remove();
}

/**
 * Around the shape of the step.
 * @param {Element} tick
 */
function onTick(tick) {
  const sign = /** @type {Element} */ (find(tick, "path").cloneNode());
  mark(sign, { d: SIGN, class: "hv-sign" });
  tick.prepend(sign);
}

/**
 * @param {Element} row
 * @param {string} label
 */
function onRow(row, label) {
  const sign = make("span", "hv-sign", "", { role: "img", "aria-label": label });
  sign.append(shape(SIGN, "hv-icon"));
  row.children[1].prepend(sign);
}

/**
 * At the left edge, half outside. A picture that is not shown has no sizes yet: it gets its signs when it is.
 * @param {Element} pin
 */
function onPin(pin) {
  const box = /** @type {SVGGraphicsElement | null} */ (pin.querySelector(".hv-pin-box"));
  if (!box) return;
  const { x, y, height } = box.getBBox();
  if (!height) return;
  const sign = /** @type {Element} */ (box.cloneNode());
  mark(sign, { d: SIGN, class: "hv-sign", transform: `translate(${x} ${y + height / 2})` });
  pin.append(sign);
}
