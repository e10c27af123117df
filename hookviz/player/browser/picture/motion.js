// Motion: after a step is painted, pills with its numbers move over the picture. They are gone when they have arrived.

import { escapeBidi, listen, makeElement, onAbort, prefersReducedMotion } from "../common/dom.js";
import { isForward, planMotion } from "./motion_plan.js";
import { joinArrow, keyframes, numberPoint, samplePath, spread } from "./motion_paths.js";

/** @import { Picture } from "./picture.js" */
/** @import { Moment, Place, Trip } from "./motion_plan.js" */
/** @import { Point } from "./motion_paths.js" */
/** @import { Context, LoadedRun } from "../common/types" */

/** Steps that follow faster, in milliseconds at the speed 1×, show no motion. */
const FAST = 150;
/** The texts with the gradient on an arrow or a box. */
const GRADIENT_TEXTS = ".hv-edge-value, .hv-grad";
const EASING = "cubic-bezier(.45, .05, .35, 1)";
/** The points of each arrow. @type {WeakMap<Element, Point[]>} */
const arrowPoints = new WeakMap();

/** Whether the user and the page allow motion. */
const isMotionWanted = () => !document.hidden && !prefersReducedMotion();

/** A layer over a picture, in the units of its viewBox, with the animations that run on it. */
class MotionLayer {
  /**
   * @param {Picture} picture
   * @param {number} ratio pixels a unit
   */
  constructor(picture, ratio) {
    [, this.x = "0", this.y = "0"] = /translate\(([-\d.]+)[ ,]+([-\d.]+)\)/.exec(picture.origin) ?? [];
    this.pane = makeElement("div", "hv-motion", "", { "aria-hidden": true });
    this.ground = makeElement("div", "hv-motion-ground");
    this.scaleTo(ratio);
    this.pane.append(this.ground);
    this.holder = picture.holder;
  }

  /** @type {Animation[]} */
  animations = [];
  /** @type {Set<Element>} */
  hidden = new Set();

  /** Shows the layer, once everything is on it. */
  attach() {
    this.holder.append(this.pane);
  }

  /** @param {number} ratio pixels a unit */
  scaleTo(ratio) {
    this.ground.style.transform = `scale(${ratio}) translate(${this.x}px, ${this.y}px)`;
  }

  /**
   * Hides elements until they are revealed: their texts stay where they are.
   * @param {Iterable<Element>} elements
   */
  hide(elements) {
    for (const element of elements) {
      element.classList.add("hv-awaited");
      this.hidden.add(element);
    }
  }

  /** @param {Iterable<Element>} elements */
  reveal(elements) {
    for (const element of elements) {
      element.classList.remove("hv-awaited");
      this.hidden.delete(element);
    }
  }

  /** Ends all animations at once, and removes what they moved. */
  remove() {
    for (const animation of this.animations.splice(0)) animation.cancel();
    this.reveal(this.hidden);
    this.pane.remove();
  }
}

/** The motion in the pane of one run. At most one step moves at a time: the next one ends it. */
export class Motion {
  /**
   * @param {Context} context
   * @param {LoadedRun} run
   * @param {HTMLElement} pane
   */
  constructor(context, run, pane) {
    const { root, driver, signal } = context;
    this.context = context;
    this.run = run;
    const sight = new IntersectionObserver((entries) => this.#see(entries.some((entry) => entry.isIntersecting)));
    this.#sizes = new ResizeObserver(([{ contentRect }]) => this.#measure(contentRect.width));
    sight.observe(pane);
    onAbort(signal, () => {
      sight.disconnect();
      this.#sizes.disconnect();
      this.finish();
    });
    listen(root, "pointerdown", () => this.finish(), signal);
    listen(window, "resize", () => this.finish(), signal);
    listen(document, "visibilitychange", () => this.finish(), signal);
    driver.onChange("change:playing", () => driver.position().playing || this.finish());
  }

  #isVisible = false;
  #ratio = 0;
  #lastStep = -Infinity;
  /** @type {Picture | null} */
  #picture = null;
  /** @type {MotionLayer | null} */
  #layer = null;
  /** @type {ResizeObserver} */
  #sizes;

  /**
   * Moves things in this picture from now on.
   * @param {Picture} picture
   */
  turnTo(picture) {
    this.finish();
    this.#sizes.disconnect();
    this.#ratio = 0;
    this.#picture = picture;
    this.#sizes.observe(picture.svg);
  }

  /**
   * Shows the animations of a layer, and removes it when they have ended.
   * @param {MotionLayer} layer
   */
  #show(layer) {
    this.finish();
    this.#layer = layer;
    layer.attach();
    Promise.allSettled(layer.animations.map((animation) => animation.finished)).then(() => {
      if (this.#layer === layer) this.finish();
    });
  }

  /** @param {boolean} isVisible */
  #see(isVisible) {
    this.#isVisible = isVisible;
    if (!isVisible) this.finish();
  }

  /** @param {number} width */
  #measure(width) {
    this.#ratio = this.#picture ? width / this.#picture.size.width : 0;
    this.#layer?.scaleTo(this.#ratio);
  }

  /** Ends the motion: everything is at its end. */
  finish() {
    this.#layer?.remove();
    this.#layer = null;
  }

  /**
   * Shows the motion of a step, once all parts of the player have painted it.
   * @param {number} before the step before
   * @param {number} step
   */
  play(before, step) {
    this.finish();
    const { driver } = this.context;
    const [picture, now] = [this.#picture, performance.now()];
    const isFast = now - this.#lastStep < FAST / driver.position().speed;
    this.#lastStep = now;
    if (!picture || !this.#ratio || !this.#isVisible || isFast || !isForward(this.run.steps, before, step) || !isMotionWanted()) return;
    queueMicrotask(() => {
      if (this.#picture === picture && driver.position().step === step && !this.#layer) this.#start(picture, step);
    });
  }

  /**
   * @param {Picture} picture
   * @param {number} step
   */
  #start(picture, step) {
    const { root, driver } = this.context;
    const { view, elements } = picture;
    const effect = this.run.firings.find((firing) => firing.step === step)?.effect_kind ?? "";
    /** @param {string} id */
    const textOf = (id) => elements.get(id)?.closest(".hv-edge, .hv-node")?.querySelector(GRADIENT_TEXTS)?.getAttribute("data-id") ?? "";
    /** @type {Omit<Moment, "textOf">} */
    const moment = { view, steps: this.run.steps, step, effect, isDrawn: (id) => elements.has(id) };
    const plan = planMotion({ ...moment, textOf });
    const trips = plan.trips.flatMap((trip) => {
      const points = tripPoints(picture, trip);
      return points ? [{ trip, points }] : [];
    });
    if (!trips.length) return;
    const layer = new MotionLayer(picture, this.#ratio);
    const { speed } = driver.position();
    for (const { trip, points } of trips) addPill(layer, picture, trip, points, speed);
    if (plan.light) lightLine(layer, root, plan.light, speed);
    this.#show(layer);
  }
}

/**
 * @param {MotionLayer} layer
 * @param {Picture} picture
 * @param {Trip} trip
 * @param {Point[]} points
 * @param {number} speed
 */
function addPill(layer, { elements }, { number, look, from, start, length, reveals }, points, speed) {
  const pill = makeElement("div", `hv-pill ${look}`);
  // Generated content is no text of the page, which has the number already.
  const text = makeElement("span", "", "", { "data-text": escapeBidi(number) });
  text.classList.toggle("hv-dot", !number);
  pill.append(text);
  layer.ground.append(pill);
  const timing = { delay: start / speed, duration: length / speed, easing: EASING };
  const animation = pill.animate(keyframes(points, from ? look : `hv-starts ${look}`), timing);
  layer.animations.push(animation);
  const texts = reveals.flatMap((id) => elements.get(id) ?? []);
  layer.hide(texts);
  animation.finished.then(() => layer.reveal(texts), () => {});
}

/**
 * Lights up the line of the user's code that is running.
 * @param {MotionLayer} layer
 * @param {HTMLElement} root
 * @param {{ start: number, length: number }} time
 * @param {number} speed
 */
function lightLine(layer, root, { start, length }, speed) {
  const line = root.querySelector(".hv-program [aria-current]");
  if (!line) return;
  const timing = { delay: start / speed, duration: length / speed, pseudoElement: "::after" };
  layer.animations.push(line.animate([{ opacity: 0 }, { opacity: 1, offset: 0.3 }, { opacity: 1, offset: 0.6 }, { opacity: 0 }], timing));
}

/**
 * Returns the points of a trip; null if the picture does not show its places, such as those of a layer that is off.
 * @param {Picture} picture
 * @param {Trip} trip
 */
function tripPoints({ elements }, { number, arrow, from, to }) {
  const [begin, end] = [from, to].map((place) => place && placePoint(elements.get(place.text), place, number));
  if (begin === undefined || end === undefined) return null;
  const line = elements.get(arrow)?.querySelector(":scope > .hv-line");
  if (line) {
    const points = arrowPoints.get(line) ?? samplePath(line.getAttribute("d") ?? "");
    arrowPoints.set(line, points);
    return joinArrow(points, begin, end);
  }
  return begin && end ? spread([begin, end]) : null;
}

/**
 * @param {Element | undefined} text
 * @param {Place} place
 * @param {string} number
 */
function placePoint(text, { dx = 0, dy = 0 }, number) {
  if (!text) return undefined;
  const [x, y, size] = ["x", "y", "font-size"].map((name) => Number(text.getAttribute(name)));
  const point = numberPoint({ x, y, size, anchor: text.getAttribute("text-anchor") ?? "" }, text.textContent ?? "", number);
  return { x: point.x + dx, y: point.y + dy };
}
