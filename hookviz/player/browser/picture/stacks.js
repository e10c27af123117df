// Stacks of equal boxes: a bar for each box shows the norm of its gradient at the step, and opens that box.

import { listen, setAttributes } from "../common/dom.js";
import { isWithin } from "../common/stepping.js";

/** @import { Say } from "../common/labels.js" */
/** @import { StackBar, View } from "../common/payload" */
/** @import { Picture } from "./picture.js" */

/** The height of a bar without a gradient, or with one that is zero, as a share of a full bar. */
const LOWEST = 0.06;
/** How far a key moves among the bars. @type {{ [key: string]: number }} */
const MOVES = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

/**
 * Returns the height of a bar at a step; undefined before a gradient has arrived, and -1 for NaN or Inf.
 * @param {StackBar["heights"]} heights in the order of their steps
 * @param {number} step
 */
export const heightAt = (heights, step) => heights.findLast(([from]) => from <= step)?.[1];

/**
 * Returns the index of the bar that holds a step, else of the next one that has steps; after all, 0.
 * @param {StackBar[]} bars
 * @param {number} step
 */
export function barAt(bars, step) {
  const now = bars.findIndex(({ spans }) => isWithin(spans, step));
  if (now >= 0) return now;
  const starts = bars.map(({ spans }) => spans.find(([first]) => first > step)?.[0] ?? Infinity);
  const next = Math.min(...starts);
  return Math.max(0, starts.findIndex((start) => start === next && next < Infinity));
}

/**
 * Returns the name of the picture in which the member of a stack is open that holds a step; undefined if none does.
 * @param {View} view
 * @param {number} step
 */
export function memberAt({ stacks }, step) {
  return Object.values(stacks).flat().find(({ spans }) => isWithin(spans, step))?.view;
}

/**
 * @typedef {object} Options
 * @property {(name: string) => void} open shows a picture
 * @property {Say} say
 * @property {AbortSignal} signal
 */

/**
 * Makes the stacks of a picture; returns a function that shows a step.
 * @param {Picture} picture
 * @param {Options} options
 * @returns {(step: number) => void}
 */
export function makeStacks(picture, options) {
  const stacks = Object.entries(picture.view.stacks).flatMap(([id, bars]) => {
    const box = picture.elements.get(id);
    return box ? [new Stack(box, bars, options)] : [];
  });
  // Screen readers do not reach elements inside of an image.
  if (stacks.length) picture.svg.setAttribute("role", "group");
  return (step) => stacks.forEach((stack) => stack.paint(step));
}

/** @param {number} length */
const round = (length) => Math.round(length * 100) / 100;

class Stack {
  /**
   * @param {Element} box
   * @param {StackBar[]} bars
   * @param {Options} options
   */
  constructor(box, bars, { open, say, signal }) {
    this.box = box;
    this.bars = bars.map((bar) => ({ ...bar, heights: [...bar.heights].sort(([one], [other]) => one - other) }));
    this.open = open;
    this.rects = /** @type {SVGRectElement[]} */ ([...box.querySelectorAll(".hv-bar")]);
    this.full = this.rects.map(({ y, height }) => ({ y: y.baseVal.value, height: height.baseVal.value }));
    const name = box.getAttribute("data-name") ?? "";
    setAttributes(box, { role: "group", "aria-label": name });
    this.rects.forEach((rect, i) => {
      const label = say("enter_bar", { box: name, number: i + 1, count: bars.length });
      setAttributes(rect, { role: "button", tabindex: -1, "aria-label": label });
    });
    listen(box, "click", (event) => this.#click(event), signal);
    listen(box, "keydown", (event) => this.#press(event), signal);
  }

  #step = -1;

  /** @param {number} step */
  paint(step) {
    if (step === this.#step) return;
    this.#step = step;
    const at = barAt(this.bars, step);
    const hasFocus = this.box.matches(":focus-within");
    this.rects.forEach((rect, i) => {
      this.#paintHeight(i, heightAt(this.bars[i].heights, step));
      rect.classList.toggle("hv-bar-now", isWithin(this.bars[i].spans, step));
      if (!hasFocus) rect.setAttribute("tabindex", i === at ? "0" : "-1");
    });
  }

  /**
   * @param {number} index
   * @param {number | undefined} height
   */
  #paintHeight(index, height) {
    const [rect, full] = [this.rects[index], this.full[index]];
    const isBad = height === -1;
    const share = isBad ? 1 : Math.max(LOWEST, height ?? 0);
    rect.classList.toggle("hv-bar-bad", isBad);
    rect.classList.toggle("hv-bar-empty", height === undefined);
    // Not by a transform: an exported picture would lose its origin.
    setAttributes(rect, { y: round(full.y + full.height * (1 - share)), height: round(full.height * share) });
  }

  /**
   * Opens the bar that was clicked or is nearest; beside the bars, that of the step.
   * @param {MouseEvent} event
   */
  #click(event) {
    event.stopPropagation();
    const places = this.rects.map((rect) => rect.getBoundingClientRect());
    const bottom = Math.max(...places.map((place) => place.bottom));
    const top = bottom - (places[0].width / this.rects[0].width.baseVal.value) * this.full[0].height;
    const isBeside = event.clientY < top || event.clientY > bottom;
    const distances = places.map(({ left, right }) => Math.abs(event.clientX - (left + right) / 2));
    const nearest = distances.indexOf(Math.min(...distances));
    this.open(this.bars[isBeside ? barAt(this.bars, this.#step) : nearest].view);
  }

  /** @param {KeyboardEvent} event */
  #press(event) {
    const at = this.rects.findIndex((rect) => rect === event.target);
    const move = MOVES[event.key];
    if (at < 0 || (!move && event.key !== "Enter")) return;
    event.stopPropagation();
    event.preventDefault();
    if (!move) {
      this.open(this.bars[at].view);
      return;
    }
    const next = this.rects[Math.max(0, Math.min(this.rects.length - 1, at + move))];
    for (const rect of this.rects) rect.setAttribute("tabindex", rect === next ? "0" : "-1");
    next.focus({ preventScroll: true });
  }
}
