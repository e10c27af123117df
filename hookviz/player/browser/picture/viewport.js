// The pane of a picture: shows the picture whole or at a readable size, and lets the user pan and zoom it.

import {
  BESIDE_SHARE, LARGEST_WHOLE, NARROW, NARROW_BESIDE_SHARE, NARROW_SHARE, WHOLE_SHARE, fitParts, fitWidth, hiddenEdges,
  joinFitting, limitPosition, limitScale, opensWhole, readableScale, reveal, wholeScale, zoomAround,
} from "./camera.js";
import { listen, onAbort, prefersReducedMotion } from "../common/dom.js";
import { followDrags } from "./drag.js";

/** @import { Camera, Rect, Size } from "./camera.js" */
/** @import { Picture } from "./picture.js" */

/** How the picture is shown: "auto" chooses between "whole" and "readable"; "free" is what the user zoomed to. */
/** @typedef {"auto" | "whole" | "readable" | "free"} View */

const ZOOM_FACTOR = 1.25;
/** How far a key pans, as a share of the pane. */
const PAN_SHARE = 0.25;
/** The colour of the edges behind which the picture goes on. */
const FADE = { left: "26px 0 18px -18px", right: "-26px 0 18px -18px", top: "0 26px 18px -18px", bottom: "0 -26px 18px -18px" };

export class Viewport {
  /**
   * @param {HTMLElement} pane
   * @param {HTMLElement} fade an element over the pane, whose edges fade
   * @param {{ stage: HTMLElement, isEnlarged: () => boolean, step: () => number, onChange: () => void }} options `stage`:
   *   holds the pane and its tools; `isEnlarged`: whether a whole picture fills all of the pane; `step`: the step now
   * @param {AbortSignal} signal
   */
  constructor(pane, fade, options, signal) {
    this.pane = pane;
    this.fade = fade;
    this.options = options;
    const observer = new ResizeObserver((entries) => this.#resize(entries));
    observer.observe(pane);
    observer.observe(options.stage);
    onAbort(signal, () => observer.disconnect());
    listen(pane, "wheel", (event) => this.#wheel(event), signal);
    followDrags(pane, {
      pan: (x, y) => this.move(x, y),
      zoom: (factor, point) => this.zoomBy(factor, this.#inPane(point)),
      canPan: () => !this.isWhole,
    }, signal);
  }

  /** @type {Camera} */
  camera = { scale: 1, x: 0, y: 0 };
  /** @type {Size} */
  size = { width: 0, height: 0 };
  /** @type {View} */
  view = "auto";
  /** @type {Picture | null} */
  picture = null;
  /** Whether the letters of the whole picture would be too small to read. */
  isTooLarge = false;
  /** The size of the pane with the row of tools below it. @type {Size} */
  #stageSize = { width: 0, height: 0 };

  /** Whether all of the picture is visible. */
  get isWhole() {
    return !this.picture || !Object.values(hiddenEdges(this.camera, this.picture.size, this.size)).some(Boolean);
  }

  /** Whether the picture is shown as a whole, in contrast to a readable size. */
  get showsWhole() {
    return !this.picture || this.#isWholeWanted || this.isWhole;
  }

  /** Whether the user zoomed to a part of the picture. */
  get isZoomed() {
    return this.view === "free" && !this.isWhole;
  }

  /** The size of readable letters, in pixels: the smallest that the player has. */
  readable = 0;

  /** The size of letters with which a picture opens whole, in pixels: in full screen, all must be readable. */
  get smallestWhole() {
    if (this.options.isEnlarged()) return this.readable;
    return this.readable * (this.size.width < NARROW ? NARROW_SHARE : WHOLE_SHARE);
  }

  /** How large a whole picture may get: in full screen, it fills the pane. */
  get #largest() {
    return this.options.isEnlarged() ? Infinity : LARGEST_WHOLE;
  }

  get #isWholeWanted() {
    const { picture, size, view } = this;
    if (!picture || view !== "auto") return view === "whole";
    return opensWhole(picture.size, size, this.smallestWhole, this.#largest);
  }

  /** The size of the smallest letters, in pixels. */
  get letters() {
    return this.picture ? this.camera.scale * this.picture.size.smallest : 0;
  }

  /**
   * Shows another picture. What the user zoomed to applies to the picture before.
   * @param {Picture} picture
   */
  show(picture) {
    this.picture = picture;
    if (this.view === "free") this.view = "auto";
    this.#place(false);
  }

  /**
   * Makes parts of the picture visible, and notifies the options' owner, as every change of the camera does.
   * @param {Rect[]} parts in points, the most important first
   */
  reveal(parts) {
    const part = joinFitting(parts, this.camera.scale, this.size);
    if (part && this.picture && this.size.width) this.#set(reveal(this.camera, part, this.size), true);
    else this.options.onChange();
  }

  /** Shows the whole picture, or if it is whole, the part of the step at a readable size. */
  toggle() {
    this.view = this.showsWhole ? "readable" : "whole";
    this.#place(true);
  }

  /**
   * Zooms in (1) or out (-1) by a step.
   * @param {1 | -1} direction
   */
  zoom(direction) {
    this.zoomBy(ZOOM_FACTOR ** direction, { x: this.size.width / 2, y: this.size.height / 2 }, true);
  }

  /**
   * @param {number} factor
   * @param {{ x: number, y: number }} point of the pane that stays where it is
   * @param {boolean} [isSmooth]
   */
  zoomBy(factor, point, isSmooth = false) {
    if (!this.picture) return;
    this.view = "free";
    const scale = limitScale(this.camera.scale * factor, this.picture.size, this.size);
    this.#set(zoomAround(this.camera, scale, point), isSmooth);
  }

  /**
   * Pans by a share of the pane.
   * @param {number} across
   * @param {number} down
   */
  pan(across, down) {
    this.move(-across * PAN_SHARE * this.size.width, -down * PAN_SHARE * this.size.height, true);
  }

  /**
   * Moves the picture by a number of pixels.
   * @param {number} x
   * @param {number} y
   * @param {boolean} [isSmooth]
   */
  move(x, y, isSmooth = false) {
    this.#set({ ...this.camera, x: this.camera.x + x, y: this.camera.y + y }, isSmooth);
  }

  /** Places the picture anew, for instance in full screen, where a whole picture fills the pane. */
  refresh() {
    this.#place(false);
  }

  /** @param {ResizeObserverEntry[]} entries */
  #resize(entries) {
    for (const { target, contentRect: { width, height } } of entries) {
      if (target === this.pane) this.size = { width, height };
      else this.#stageSize = { width, height };
    }
    this.#place(false);
  }

  /** @param {boolean} isSmooth */
  #place(isSmooth) {
    const { picture, size } = this;
    if (!picture || !size.width || !size.height) return;
    this.readable = parseFloat(getComputedStyle(this.pane).fontSize);
    const largest = this.#largest;
    this.isTooLarge = wholeScale(picture.size, this.#stageSize, largest) * picture.size.smallest < this.readable;
    if (this.view === "free") this.#set(this.camera, isSmooth);
    else this.#aim(picture, this.#isWholeWanted ? wholeScale(picture.size, size, largest) : this.#readableScale, isSmooth);
  }

  /** The scale of a picture that is shown at a readable size: each hook fits the pane, and what is beside it if it can. */
  get #readableScale() {
    const { picture, size } = this;
    if (!picture) return 1;
    const scale = fitWidth(readableScale(picture.size, size, this.readable, this.#largest), picture.widestPin, size);
    const share = size.width < NARROW ? NARROW_BESIDE_SHARE : BESIDE_SHARE;
    const least = this.options.isEnlarged() ? 1 : share;
    return fitParts(scale, (least * this.readable) / picture.size.smallest, picture.hookParts, size);
  }

  /**
   * Aims at the step.
   * @param {Picture} picture
   * @param {number} scale
   * @param {boolean} isSmooth
   */
  #aim(picture, scale, isSmooth) {
    const camera = limitPosition({ ...this.camera, scale }, picture.size, this.size);
    const part = joinFitting(picture.focus(this.options.step()), scale, this.size);
    this.#set(part ? reveal(camera, part, this.size) : camera, isSmooth);
  }

  /**
   * @param {Camera} camera
   * @param {boolean} isSmooth
   */
  #set(camera, isSmooth) {
    const { picture } = this;
    if (!picture) return;
    this.camera = limitPosition(camera, picture.size, this.size);
    picture.place(this.camera, isSmooth && !prefersReducedMotion());
    this.#paintFade();
    this.options.onChange();
  }

  #paintFade() {
    if (!this.picture) return;
    const hidden = hiddenEdges(this.camera, this.picture.size, this.size);
    const edges = /** @type {(keyof typeof FADE)[]} */ (Object.keys(FADE)).filter((edge) => hidden[edge]);
    if (this.fade.dataset.hidden === edges.join(" ")) return;
    this.fade.dataset.hidden = edges.join(" ");
    this.fade.style.boxShadow = edges.map((edge) => `inset ${FADE[edge]} var(--hv-paper)`).join(", ");
    // A finger scrolls the page in the directions in which the picture cannot be panned.
    const [across, down] = [hidden.left || hidden.right, hidden.top || hidden.bottom];
    this.pane.style.touchAction = down ? (across ? "none" : "pan-x") : "pan-y";
    this.pane.classList.toggle("hv-pans", across || down);
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    // A pinch on a touchpad arrives as a wheel with Ctrl. Any other wheel scrolls the page.
    if (!event.ctrlKey) return;
    event.preventDefault();
    this.zoomBy(Math.exp(-event.deltaY / (event.deltaMode ? 6 : 200)), this.#inPane({ x: event.clientX, y: event.clientY }));
  }

  /** @param {{ x: number, y: number }} point of the window */
  #inPane({ x, y }) {
    const { left, top } = this.pane.getBoundingClientRect();
    return { x: x - left, y: y - top };
  }
}
