// A picture: the state of its elements at a step (to come, now, done), and the content of its texts.

import { strikeOldText } from "../compare/comparison.js";
import { contains, join, nearSide, surroundings } from "./camera.js";
import { makeElement, setAttributes } from "../common/dom.js";
import { isWithin, nextStepAmong, stateAt, stateIn, textAt, oldTextIfChanged } from "../common/stepping.js";

/** @import { Camera, Rect } from "./camera.js" */
/** @import { Say } from "../common/labels.js" */
/** @import { View } from "../common/payload" */
/** @import { State } from "../common/stepping.js" */
/** @import { LoadedContent, Step } from "../common/types" */

/** Texts that steps write. They are empty before, and the layout has room for them. */
const STEP_TEXTS = ".hv-pin-value, .hv-grad, .hv-edge-value, .hv-activation, .hv-hooked, .hv-memory";
/** Elements that are faint before their first step. */
const FAINT = ".hv-node, .hv-edge, .hv-pin, .hv-module";

/**
 * @typedef {object} PictureOptions
 * @property {string} label the name for screen readers
 * @property {Say} say
 * @property {View | null} baseline the same view of the baseline run
 * @property {boolean} strikesOldTexts whether it shows old texts struck through; if not, only new texts are marked
 * @property {(hook: number) => boolean} isSwitch
 * @property {(hook: number) => boolean} isOff
 */

export class Picture {
  /**
   * @param {string} markup
   * @param {View} view
   * @param {PictureOptions} options
   */
  constructor(markup, view, options) {
    this.view = view;
    this.holder = makeElement("div", "hv-picture");
    this.holder.innerHTML = markup;
    const svg = this.holder.querySelector("svg");
    if (!svg) throw new Error("The picture is no SVG.");
    this.svg = svg;
    setAttributes(svg, { role: "img", "aria-label": options.label });
    this.elements = moveIds(svg);
    this.size = measureSvg(svg);
    svg.querySelectorAll(".hv-node, .hv-edge, .hv-module, .hv-fold").forEach(addOutlines);
    this.#markPins(options);
    this.paint = makePainter(this, options);
  }

  /** Shows a step. @type {(step: number) => void} */
  paint;

  /** @param {PictureOptions} options */
  #markPins({ isSwitch, isOff }) {
    for (const [id, { hook }] of Object.entries(this.view.pins)) {
      const pin = this.elements.get(id);
      if (!pin || hook < 0) continue;
      pin.setAttribute("data-hook", String(hook));
      pin.classList.toggle("hv-switch-pin", isSwitch(hook));
      pin.classList.toggle("hv-off", isOff(hook));
    }
  }

  /** @type {Map<Element, Rect>} */
  #rects = new Map();
  #scale = 0;

  /**
   * Draws the picture at a place of its pane; it glides there from its place before if `isSmooth`.
   * @param {Camera} camera
   * @param {boolean} isSmooth
   */
  place({ scale, x, y }, isSmooth) {
    // Not by a transform: Chromium would leave the letters at the places that they have at the scale before.
    const isScaled = this.#resize(scale);
    const transform = `translate(${x}px, ${y}px)`;
    if (!isScaled && this.#transform === transform) return;
    this.#transform = transform;
    this.holder.classList.toggle("hv-gliding", isSmooth && !isScaled);
    this.holder.style.transform = transform;
  }

  #transform = "";

  /**
   * Draws the picture at a scale; returns whether it had another one.
   * @param {number} scale pixels a point
   */
  #resize(scale) {
    if (scale === this.#scale) return false;
    this.#scale = scale;
    this.svg.style.width = `${this.size.width * scale}px`;
    this.svg.style.height = `${this.size.height * scale}px`;
    return true;
  }

  /** The transform of the picture's root, to which the coordinates of all elements belong. */
  get origin() {
    return this.svg.querySelector(":scope > g")?.getAttribute("transform") ?? "";
  }

  /** Where each box lies, in points. */
  get boxes() {
    return this.#rectsOf(".hv-node, .hv-module, .hv-fold");
  }

  /** Where the frames lie, and where the other boxes, in points. */
  get #framesAndBoxes() {
    return { frames: this.#rectsOf(".hv-module"), boxes: this.#rectsOf(".hv-node, .hv-fold") };
  }

  /** @param {string} selector */
  #rectsOf(selector) {
    return [...this.svg.querySelectorAll(selector)].map((box) => this.rectOf(box)).filter((rect) => rect !== null);
  }

  /** Where the box of the step lies, in points; null if the picture does not show the step. */
  get currentRect() {
    const { current } = this;
    return current ? this.rectOf(current) : null;
  }

  /** The hook that fires in the step. */
  get hookNow() {
    return this.svg.querySelector(".hv-pin.hv-now");
  }

  /**
   * What is to be seen of a step, in points, the most important first: the hook that fires, the box on which it stands, the name
   * of the frame around it, the nearest box, that frame, and the box of the step. If the step is not in what is
   * open here, that is seen from its beginning, with its name; or, if it has no frame, where the gradient enters it.
   * @param {number} step
   */
  focus(step) {
    const isOpen = isWithin(this.view.visible_steps, step);
    const opened = isOpen ? null : this.#openedRect;
    if (opened) return [opened];
    const first = [this.hookNow, this.current].find((part) => part && isOpen && !part.matches(".hv-module"));
    const frame = isOpen && this.current ? this.rectOf(this.current) : null;
    const aim = first ? this.rectOf(first) : (this.#entryRect(step, frame) ?? frame);
    if (!aim) return [];
    const { frames, boxes } = this.#framesAndBoxes;
    const [around, ...near] = surroundings(aim, { frames, boxes });
    const names = [around, frame].map((one) => one && this.#nameOfFrame(one));
    const sides = near.map((one) => one && nearSide(one, aim));
    const box = frame && !this.current?.matches(".hv-module") && contains(frame, aim) ? frame : null;
    return [aim, box, ...names, ...sides, ...near, around, frame].filter((rect) => rect !== null && rect !== undefined);
  }

  /** Where the frame lies that is opened here; null if what is opened, as a part of a long row, has none. */
  get #openedRect() {
    // The name of a picture is the pass and what is opened: "0/m3".
    const id = this.view.breadcrumbs.at(-1)?.[0].match(/[/](\w+)/)?.[1];
    const frame = this.elements.get(id ?? "");
    return frame ? this.rectOf(frame) : null;
  }

  /**
   * Returns where the name of a frame lies.
   * @param {Rect} rect
   */
  #nameOfFrame(rect) {
    const frame = [...this.svg.querySelectorAll(".hv-module")].find((one) => this.rectOf(one) === rect);
    const name = this.elements.get(`${frame?.getAttribute("data-id")}-h`)?.querySelector(".hv-name");
    return name ? this.rectOf(name) : null;
  }

  /** The hook that fires in the step, else its box. */
  get shown() {
    return this.hookNow ?? this.current;
  }

  /** What is to be seen together with each hook, in points: the hook, the name of its frame, and the nearest box. */
  get hookParts() {
    this.#hookParts ??= [...this.svg.querySelectorAll(".hv-pin")].flatMap((pin) => {
      const rect = this.rectOf(pin);
      if (!rect) return [];
      const [around, ...near] = surroundings(rect, this.#framesAndBoxes);
      const name = around && this.#nameOfFrame(around);
      const named = name ? join(rect, name) : rect;
      return near.flatMap((one) => (one ? [nearSide(one, rect), one] : [])).map((part) => join(named, part));
    });
    return this.#hookParts;
  }

  /** @type {Rect[] | undefined} */
  #hookParts;

  /** The width of the widest hook, in points. */
  get widestPin() {
    this.#widestPin ??= Math.max(0, ...[...this.svg.querySelectorAll(".hv-pin")].map((pin) => this.rectOf(pin)?.width ?? 0));
    return this.#widestPin;
  }

  /** @type {number | undefined} */
  #widestPin;

  /**
   * Returns where the next box lies that has a step from a step on, in points: where the gradient enters what is open
   * here, or a part of the picture. After the last step, where it entered.
   * @param {number} step
   * @param {Rect | null} part
   */
  #entryRect(step, part) {
    const { steps, spans, visible_steps: open } = this.view;
    // A frame in the part comes before what is in it: a call begins with its first module.
    const entries = [...this.svg.querySelectorAll(".hv-node, .hv-fold, .hv-module")].flatMap((box) => {
      const id = box.getAttribute("data-id") ?? "";
      const rect = this.rectOf(box);
      const starts = (steps[id] ?? spans[id]?.map(([first]) => first) ?? []).filter((start) => isWithin(open, start));
      if (box.matches(".hv-module") && (!part || rect === part)) return [];
      return rect && (!part || contains(part, rect)) ? [{ rect, next: starts.find((start) => start >= step), last: starts.at(-1) }] : [];
    });
    /** @param {(entry: typeof entries[number]) => number | undefined} startOf */
    const earliest = (startOf) => {
      const found = entries.flatMap((entry) => startOf(entry) ?? []);
      return entries.find((entry) => startOf(entry) === Math.min(...found))?.rect;
    };
    return earliest(({ next }) => next) ?? earliest(({ last }) => last) ?? entries[0]?.rect ?? null;
  }

  /**
   * Returns where an element lies, in points; null while the picture is not visible.
   * @param {Element} element
   * @returns {Rect | null}
   */
  rectOf(element) {
    const known = this.#rects.get(element);
    if (known) return known;
    const outline = /** @type {SVGGraphicsElement} */ (element.querySelector(":scope > .hv-box") ?? element);
    const { x, y, width, height } = outline.getBBox();
    if (!width && !height) return null;
    const ground = /** @type {SVGGraphicsElement | null} */ (this.svg.querySelector(":scope > g"));
    const { e = 0, f = 0 } = ground?.transform.baseVal.consolidate()?.matrix ?? {};
    const rect = { x: x + e, y: y + f, width, height };
    this.#rects.set(element, rect);
    return rect;
  }

  /** The box of the step: of a node, a closed box, or a module; else any other highlighted element. */
  get current() {
    const selectors = [".hv-node.hv-now", ".hv-fold.hv-now", ".hv-module.hv-now", ".hv-now"];
    return selectors.map((selector) => this.svg.querySelector(selector)).find(Boolean);
  }

  /**
   * Returns the step that a click goes to; undefined if none.
   * @param {Element} target
   * @param {number} step
   */
  stepAt(target, step) {
    const { clicks, steps } = this.view;
    for (let at = target.closest("[data-id]"); at; at = at.parentElement?.closest("[data-id]") ?? null) {
      const id = at.getAttribute("data-id") ?? "";
      const there = clicks[id] ?? steps[id];
      if (there) return nextStepAmong(there, step);
    }
    return undefined;
  }
}

/**
 * Returns id → element, and moves ids to data-id: ids would clash in a page with several players.
 * @param {SVGSVGElement} svg
 */
function moveIds(svg) {
  /** @type {Map<string, Element>} */
  const elements = new Map();
  for (const element of svg.querySelectorAll("[id]")) {
    // The last text of a fact about a tensor is its value.
    elements.set(element.id, (element.matches(".hv-fact") && element.lastElementChild) || element);
    element.setAttribute("data-id", element.id);
    element.removeAttribute("id");
  }
  return elements;
}

/**
 * Adds copies of the outline: the halo, a leaf's second outline and a wide target for the pointer.
 * @param {Element} element
 */
function addOutlines(element) {
  const outline = element.querySelector(":scope > .hv-box, :scope > .hv-line");
  if (!outline) return;
  /** @param {string} name */
  const copy = (name) => {
    const layer = /** @type {Element} */ (outline.cloneNode());
    setAttributes(layer, { class: name });
    return layer;
  };
  outline.before(copy("hv-halo"));
  if (element.matches(".hv-leaf")) outline.after(copy("hv-inner"));
  if (element.matches(".hv-edge")) outline.after(copy("hv-target"));
  if (element.matches(".hv-stack")) outline.before(copy("hv-pile hv-pile-far"));
  if (element.matches(".hv-fold")) outline.before(copy("hv-pile"));
}

/**
 * Returns a function that paints the picture at a step. It changes only what differs from the step before.
 * @param {Picture} picture
 * @param {PictureOptions} options
 * @returns {(step: number) => void}
 */
function makePainter({ view, elements }, options) {
  const painters = [makeStatePainter(elements, view), makeRelatedPainter(elements, view.related), makeTextPainter(elements, view, options)];
  return (step) => painters.forEach((paint) => paint(step));
}

/**
 * @param {Map<string, Element>} elements
 * @param {View} view
 */
function makeStatePainter(elements, view) {
  // An element without steps stays faint.
  for (const [id, element] of elements) {
    if (!(id in view.steps) && element.matches(FAINT)) element.classList.add("hv-todo");
  }
  /** @type {Map<string, State>} */
  const shown = new Map();
  /**
   * @param {string} id
   * @param {State} state
   */
  const show = (id, state) => {
    const before = shown.get(id);
    if (before === state) return;
    const element = elements.get(id);
    if (before) element?.classList.remove(`hv-${before}`);
    element?.classList.add(`hv-${state}`);
    shown.set(id, state);
  };
  return (/** @type {number} */ step) => {
    for (const [id, steps] of Object.entries(view.steps)) show(id, stateAt(steps, step));
    for (const [id, spans] of Object.entries(view.spans)) show(id, stateIn(spans, step));
  };
}

/**
 * @param {Map<string, Element>} elements
 * @param {View["related"]} related
 */
function makeRelatedPainter(elements, related) {
  /** @type {string[]} */
  let marked = [];
  return (/** @type {number} */ step) => {
    for (const id of marked) elements.get(id)?.classList.remove("hv-near");
    marked = related[step] ?? [];
    for (const id of marked) elements.get(id)?.classList.add("hv-near");
  };
}

/**
 * @param {Map<string, Element>} elements
 * @param {View} view
 * @param {PictureOptions} options
 */
function makeTextPainter(elements, view, { say, baseline, strikesOldTexts, isOff }) {
  const offTexts = new Set(Object.values(view.pins).filter(({ hook }) => isOff(hook)).map(({ value }) => value));
  const texts = [...elements].filter(([id, element]) => element.matches(STEP_TEXTS) || id in view.texts);
  const first = new Map(texts.map(([id, element]) => [id, element.matches(STEP_TEXTS) ? "" : (element.textContent ?? "")]));
  /** @type {Map<string, string>} */
  const shown = new Map();
  /**
   * @param {View | null} of
   * @param {string} id
   * @param {number} step
   */
  const read = (of, id, step) => textAt(of?.texts[id] ?? [], step)?.[1] ?? "";
  return (/** @type {number} */ step) => {
    for (const [id, element] of texts) {
      const text = offTexts.has(id) ? say("off") : read(view, id, step) || (first.get(id) ?? "");
      const was = oldTextIfChanged(read(baseline, id, step), text);
      if (shown.get(id) === `${was} ${text}`) continue;
      shown.set(id, `${was} ${text}`);
      element.textContent = text;
      element.classList.toggle("hv-changed", Boolean(was));
      if (was && strikesOldTexts) strikeOldText(element, was, text);
    }
  };
}

/** @param {SVGSVGElement} svg */
function measureSvg(svg) {
  const { width, height } = svg.viewBox.baseVal;
  const sizes = [...svg.querySelectorAll("text")].map((text) => parseFloat(text.getAttribute("font-size") ?? "") || 16);
  return { width, height, smallest: Math.min(16, ...sizes) };
}
