// Breakpoints: playing stops at each step of a hook with a breakpoint.

import { findElement, listen, makeElement, makeShape, makeSvgElement, makeTextButton, setAttributes } from "../common/dom.js";

/** @import { Panel } from "../panel/panel.js" */
/** @import { Actions, Changes, Context, Position } from "../common/types" */

const OCTAGON = "M-2.5,-6H2.5L6,-2.5V2.5L2.5,6H-2.5L-6,2.5V-2.5z";

/** A rule of the driver that stops playing at each step of a hook with a breakpoint. */
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

  /** The indices of the hooks that have a breakpoint. */
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
    const { say, driver, run, content } = this.context;
    const { hook } = run.steps[driver.position().step];
    if (hook === null) {
      this.panel.showMessage(say("no_hook_here"));
      return;
    }
    const isMarked = this.#isMarked(hook);
    const others = this.#hooks.filter((other) => other !== hook);
    driver.setTraits({ breakpoints: isMarked ? others : [...others, hook] });
    this.panel.showMessage(say(isMarked ? "stop_gone" : "stop_set", { hook: content.hooks[hook].name }));
  }

  paint() {
    const { root, run, driver, say } = this.context;
    const { hook } = run.steps[driver.position().step];
    const button = this.#addButton();
    if (button) setAttributes(button, { "aria-pressed": this.#isMarked(hook) });
    if (!this.#hooks.length && !root.querySelector(".hv-sign")) return;
    root.querySelectorAll(".hv-timeline .hv-tick").forEach((tick, i) => toggleSign(tick, this.#isMarked(run.steps[i].hook), addTickSign));
    root.querySelectorAll(".hv-firings tbody tr:has(button)").forEach((row) => {
      const step = Number(findElement(row, "button").textContent) - 1;
      toggleSign(row, this.#isMarked(run.steps[step].hook), () => addRowSign(row, say("stop")));
    });
    for (const pin of root.querySelectorAll(".hv-pin[data-hook]")) {
      toggleSign(pin, this.#isMarked(Number(pin.getAttribute("data-hook"))), addPinSign);
    }
  }

  /** Returns the button next to the hook's name in the panel, and adds it if necessary; null if there is no hook. */
  #addButton() {
    const where = this.panel.pane.querySelector(":scope > .hv-where");
    if (where && !where.querySelector("button")) {
      const { say, signal } = this.context;
      const button = makeTextButton(say("stop"), () => this.toggle(), signal);
      button.prepend(makeShape(OCTAGON, "hv-icon"));
      where.append(button);
    }
    return where?.querySelector("button") ?? null;
  }
}

/**
 * Adds the sign of a breakpoint, or removes it.
 * @param {Element} element
 * @param {boolean} isMarked
 * @param {(element: Element) => void} addSign
 */
function toggleSign(element, isMarked, addSign) {
  const sign = element.querySelector(".hv-sign");
  if (isMarked && !sign) addSign(element);
  if (!isMarked) sign?.remove();
}

/**
 * Draws the sign around the shape of the step.
 * @param {Element} tick
 */
function addTickSign(tick) {
  const sign = /** @type {Element} */ (findElement(tick, "path").cloneNode());
  setAttributes(sign, { d: OCTAGON, class: "hv-sign" });
  tick.prepend(sign);
}

/**
 * @param {Element} row
 * @param {string} label
 */
function addRowSign(row, label) {
  const sign = makeElement("span", "hv-sign", "", { role: "img", "aria-label": label });
  sign.append(makeShape(OCTAGON, "hv-icon"));
  row.children[1].prepend(sign);
}

/**
 * Draws the sign across the right edge of the pin. A hidden picture has no sizes: its pins get signs when it is shown.
 * @param {Element} pin
 */
function addPinSign(pin) {
  const box = /** @type {SVGGraphicsElement | null} */ (pin.querySelector(".hv-pin-box"));
  if (!box) return;
  const { x, y, width, height } = box.getBBox();
  if (!height) return;
  pin.append(makeSvgElement("path", "hv-sign", { d: OCTAGON, transform: `translate(${x + width} ${y + height / 2})` }));
}
