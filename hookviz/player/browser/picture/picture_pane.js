// The pane with the picture of the step: closed boxes open a picture of their inside, and breadcrumbs lead back.

import { unpack } from "../common/compression.js";
import { loadSvg } from "../common/content.js";
import {
  closestTarget, findElement, focusedElement, listen, makeElement, reportFailure, setAttributes,
} from "../common/dom.js";
import { LARGEST_WHOLE, MARGIN } from "./camera.js";
import { makeNormColors } from "./box_colors.js";
import { makeLens } from "./minimap.js";
import { Motion } from "./motion.js";
import { normScale } from "../common/norm_scale.js";
import { Picture } from "./picture.js";
import { makePictureTools } from "./picture_tools.js";
import { makePinSigns } from "./pin_signs.js";
import { makeSilentPins } from "./silent_pins.js";
import { isWithin } from "../common/stepping.js";
import { isFullScreen } from "../host/full_screen.js";
import { makeStacks, memberAt } from "./stacks.js";
import { Trail } from "./trail.js";
import { Viewport } from "./viewport.js";

/** @import { View } from "../common/payload" */
/** @import { Actions, Context, LoadedRun } from "../common/types" */

/** Closed boxes, which open where they stand: in another picture. The bars of a stack have their own. */
const DOORS = ".hv-fold:not(.hv-stack)";

/**
 * Returns whether the reasons are hidden at a step: while predicting they would give answers away, until the end.
 * @param {Pick<Context, "model" | "run">} context
 * @param {number} step
 */
export const hidesReasons = ({ model, run }, step) => Boolean(model.get("predict")) && step < run.steps.length - 1;

/**
 * @typedef {object} ShownPicture a picture with its view
 * @property {string} name
 * @property {View} view
 * @property {Picture} picture
 * @property {(step: number, isOn: boolean) => void} color
 * @property {(step: number) => void} paintStacks
 * @property {(step: number) => void} paintSigns
 * @property {(isOn: boolean) => void} showReasons shows or hides why hooks did not fire
 */

/**
 * @typedef {object} PaneOptions
 * @property {LoadedRun} run the run whose pictures it shows
 * @property {LoadedRun | null} baseline the run that it is compared with
 * @property {boolean} strikesOldTexts whether the picture shows old values struck through
 * @property {(hook: number) => boolean} isSwitch
 * @property {(hook: number) => boolean} isOff
 * @property {(text: string) => void} showMessage shows a sentence in the panel
 */

/** The picture of one run. It listens to the model; its owner paints the step. */
export class PicturePane {
  /**
   * @param {Context} context
   * @param {PaneOptions} options
   */
  constructor(context, options) {
    const { say, driver, signal } = context;
    this.context = context;
    this.options = options;
    this.step = driver.position().step;
    this.scale = normScale(options.run.steps);
    this.trail = new Trail({ ...context, run: options.run }, (name) => this.enter(name));
    this.head = makeElement("div", "hv-top");
    this.graph = makeElement("div", "hv-graph hv-art");
    this.pane = makeElement("div", "hv-views");
    this.head.append(this.trail.pane);
    const [view, fade] = [makeElement("div", "hv-view-port"), makeElement("div", "hv-fade")];
    const isEnlarged = () => isFullScreen(context.root);
    this.stage = makeElement("div", "hv-stage");
    this.viewport = new Viewport(this.graph, fade, {
      stage: this.stage, isEnlarged, step: () => this.step, onChange: () => this.#paintOverlays(),
    }, signal);
    const [lens, tools] = [makeLens(this.viewport), makePictureTools(this.viewport, say, signal)];
    this.#overlays = [lens, tools];
    view.append(this.graph, fade, lens.pane);
    this.stage.append(view, tools.pane);
    this.pane.append(this.head, this.stage);
    this.motion = new Motion(context, options.run, this.graph);
    listen(this.graph, "click", (event) => this.#click(event), signal);
    listen(this.graph, "focusin", (event) => this.#revealFocused(event), signal);
    listen(context.root, "fullscreenchange", () => this.viewport.refresh(), signal);
    driver.onChange("change:norms change:predict", () => this.#paint());
    driver.onChange("change:tensors", () => this.current && this.enter(this.current.name));
  }

  /** @type {ShownPicture | null} */
  current = null;
  /** The name of the picture that was requested last: an earlier request may resolve later. */
  #requested = "";
  /** How many times the picture of a step was searched. */
  #searches = 0;
  /** @type {Map<string, ShownPicture>} */
  #cache = new Map();
  /** The pictures with the tensors. @type {Promise<string[]> | null} */
  #layer = null;
  /** @type {{ pane: Element, paint: () => void }[]} */
  #overlays = [];

  /** @returns {Actions} */
  get actions() {
    const { viewport } = this;
    return {
      fit: () => viewport.toggle(),
      zoomIn: () => viewport.zoom(1),
      zoomOut: () => viewport.zoom(-1),
      panLeft: () => viewport.pan(-1, 0),
      panRight: () => viewport.pan(1, 0),
      panUp: () => viewport.pan(0, -1),
      panDown: () => viewport.pan(0, 1),
      ...(this.context.content.grouped ? { enter: () => this.approach(), leaveBox: () => this.leave() } : {}),
    };
  }

  /**
   * Shows a step, in the picture of its pass.
   * @param {number} step
   */
  paint(step) {
    const { steps, views } = this.options.run;
    const before = this.step;
    const isFirst = !this.#requested;
    this.step = step;
    this.trail.paint(step);
    if (isFirst || steps[step].view !== steps[before].view) this.enter(views[steps[step].view]);
    this.#paint();
    if (step === before && !isFirst) return;
    this.motion.play(before, step);
    this.follow(steps[step].glyph === "hook");
  }

  /**
   * Shows a picture in which the step is: this one, or one around it, or the one in which the member of a stack is open
   * that holds the step. If `isDeep`, opens the closed boxes around the step, too, until its hook is there.
   * @param {boolean} isDeep
   */
  follow(isDeep) {
    if (!this.context.content.grouped) return;
    const from = this.#requested;
    this.#searches += 1;
    const search = this.#searches;
    this.#findPicture(from, isDeep).then((name) => {
      // A later search, or a picture that the user opened meanwhile, counts.
      if (name !== this.current?.name && this.#requested === from && this.#searches === search) this.enter(name);
    }).catch((error) => reportFailure(this.context.root, error));
  }

  /**
   * Returns the name of the picture that shows the step.
   * @param {string} name the picture where the search begins
   * @param {boolean} isDeep
   */
  async #findPicture(name, isDeep) {
    const { step, context: { fetchChunk } } = this;
    let found = name;
    let view = /** @type {View | null} */ (await fetchChunk(found));
    while (view && !isWithin(view.visible_steps, step)) {
      const around = view.breadcrumbs.at(-2);
      if (!around) return found;
      [found] = around;
      view = /** @type {View | null} */ (await fetchChunk(found));
    }
    const seen = new Set([found]);
    while (view) {
      const box = memberAt(view, step) ?? (isDeep ? boxOfStep(view, step) : undefined);
      if (!box || seen.has(box)) return found;
      seen.add(box);
      view = /** @type {View | null} */ (await fetchChunk(box));
      if (view) found = box;
    }
    return found;
  }

  /** Tells the style sheet the size of the picture: the pane is as high as it, and the panel gets the width that it leaves free. */
  #announceSize() {
    if (!this.current) return;
    const { width, height } = this.current.picture.size;
    const frame = /** @type {HTMLElement | null} */ (this.graph.closest(".hv-frame"));
    if (!frame) return;
    const fitted = `min(${width * LARGEST_WHOLE}px, (var(--hv-limit) - ${2 * MARGIN}px) * ${width / height})`;
    // The pictures of groups have different widths: the panel keeps its width.
    setProperty(frame, "--hv-picture", this.head.hidden && !this.viewport.isTooLarge ? fitted : "100%");
    setProperty(this.stage, "--hv-slope", String(height / width));
    setProperty(this.stage, "--hv-largest", `${height * LARGEST_WHOLE}px`);
  }

  #paintOverlays() {
    this.#announceSize();
    for (const overlay of this.#overlays) overlay.paint();
  }

  /** @param {FocusEvent} event */
  #revealFocused(event) {
    const box = event.target instanceof Element ? event.target.closest(".hv-node, .hv-fold") : null;
    const rect = box && this.current?.picture.rectOf(box);
    if (rect) this.viewport.reveal([rect]);
  }

  #paint() {
    if (!this.current) return;
    this.current.picture.paint(this.step);
    this.current.color(this.step, Boolean(this.context.model.get("norms")));
    this.current.paintStacks(this.step);
    this.current.showReasons(!hidesReasons(this.context, this.step));
    this.current.paintSigns(this.step);
    this.#paintElsewhere();
    this.viewport.reveal(this.current.picture.focus(this.step));
  }

  /** Whether the picture shows the step, itself or inside a closed box. */
  #isStepVisible() {
    return Boolean(this.current && isWithin(this.current.view.visible_steps, this.step));
  }

  /** @param {string} name */
  enter(name) {
    this.#show(name).catch((error) => reportFailure(this.context.root, error));
  }

  /** Moves closer to the step: opens the box that contains it, or leaves a picture that does not. */
  approach() {
    if (!this.current) return;
    const { say } = this.context;
    if (!this.#isStepVisible()) {
      if (!this.leave()) this.options.showMessage(say("not_here"));
      return;
    }
    const { view } = this.current;
    const box = memberAt(view, this.step) ?? boxOfStep(view, this.step);
    this.options.showMessage(box ? "" : say("no_box"));
    if (box) this.enter(box);
  }

  /** Shows the picture around this one; returns whether there is one. */
  leave() {
    const around = this.current?.view.breadcrumbs.at(-2);
    this.options.showMessage(around ? "" : this.context.say("outermost"));
    if (around) this.enter(around[0]);
    return Boolean(around);
  }

  /** @param {string} name */
  async #show(name) {
    this.#requested = name;
    const { say, root, signal } = this.context;
    const shown = await this.#makeElement(name);
    if (signal.aborted || this.#requested !== name) return;
    if (!shown) {
      this.options.showMessage(say("no_part"));
      return;
    }
    const holder = focusedElement(root);
    const hadFocus = this.graph.contains(holder) || this.trail.hasCrumb(holder);
    this.current?.picture.holder.remove();
    this.current = shown;
    this.graph.append(shown.picture.holder);
    this.motion.turnTo(shown.picture);
    // The focused element may have been removed with the picture before.
    if (hadFocus) root.focus({ preventScroll: true });
    this.#drawTrail();
    this.#announceSize();
    shown.picture.paint(this.step);
    this.viewport.show(shown.picture);
    this.#paint();
    root.dispatchEvent(new Event("hv-drawn", { bubbles: true }));
  }

  /**
   * Makes a picture.
   * @param {string} name
   * @returns {Promise<ShownPicture | null>}
   */
  async #makeElement(name) {
    const hasTensors = hasLayers(this.context) && Boolean(this.context.model.get("tensors"));
    const key = `${hasTensors} ${name}`;
    const cached = this.#cache.get(key);
    if (cached) return cached;
    const { fetchChunk, say, signal } = this.context;
    const view = /** @type {View | null} */ (await fetchChunk(name));
    const markup = view && (await this.#markup(view, hasTensors));
    if (!view || !markup) return null;
    const baseline = await this.#fetchBaselineView(name);
    const { strikesOldTexts, isSwitch, isOff, run } = this.options;
    const label = say("graph");
    const picture = new Picture(markup, view, { label, say, baseline, strikesOldTexts, isSwitch, isOff });
    this.#makeLinks(picture);
    const color = makeNormColors(picture, run.steps, this.scale);
    const paintStacks = makeStacks(picture, { open: (inside) => this.enter(inside), say, signal });
    const showReasons = makeSilentPins(picture, say, this.options.showMessage, signal);
    const paintSigns = makePinSigns(picture, run.steps);
    const shown = { name, view, picture, color, paintStacks, paintSigns, showReasons };
    this.#cache.set(key, shown);
    return shown;
  }

  /**
   * @param {View} view
   * @param {boolean} hasTensors
   */
  async #markup(view, hasTensors) {
    const { content, fetchChunk } = this.context;
    if (!hasTensors || typeof view.svg !== "number") return loadSvg(view, content.svgs, fetchChunk);
    this.#layer ??= unpack(content.layers);
    return (await this.#layer)[view.svg];
  }

  /**
   * Fetches the same view of the baseline run.
   * @param {string} name
   * @returns {Promise<View | null>}
   */
  async #fetchBaselineView(name) {
    const { baseline, run } = this.options;
    const index = run.views.indexOf(name);
    if (!baseline || index < 0) return null;
    return /** @type {Promise<View | null>} */ (this.context.fetchChunk(baseline.views[index]));
  }

  /** @param {Picture} picture */
  #makeLinks(picture) {
    const { say, signal } = this.context;
    const doors = [...picture.svg.querySelectorAll(DOORS)].filter((box) => linkOf(picture, box));
    for (const box of doors) {
      const label = say("enter", { box: titleOf(box) });
      box.classList.add("hv-door");
      setAttributes(box, { role: "button", tabindex: 0, "aria-label": label });
      listen(box, "keydown", (event) => {
        if (event.key !== "Enter") return;
        event.stopPropagation();
        this.#followLink(picture, box);
      }, signal);
    }
    // Screen readers do not reach elements inside of an image.
    if (doors.length) picture.svg.setAttribute("role", "group");
  }

  /**
   * @param {Picture} picture
   * @param {Element} box
   */
  #followLink(picture, box) {
    const name = linkOf(picture, box);
    if (name) this.enter(name);
  }

  #drawTrail() {
    if (!this.current) return;
    const path = this.current.view.breadcrumbs;
    this.trail.draw(path);
    // If there is only one picture, its title is not needed.
    this.head.hidden = path.length < 2 && this.options.run.views.length < 2 && !Object.keys(this.current.view.links).length;
    this.#paintElsewhere();
  }

  #paintElsewhere() {
    this.trail.showNote(this.#isStepVisible() ? "" : this.context.say("elsewhere", { step: this.step + 1 }));
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const { current } = this;
    if (!current || !(event.target instanceof Element)) return;
    const door = closestTarget(event, ".hv-door");
    if (door) {
      this.#followLink(current.picture, door);
      return;
    }
    if (closestTarget(event, ".hv-switch-pin")) return;
    const step = current.picture.stepAt(event.target, this.step);
    if (step !== undefined) this.context.driver.goTo(step);
  }
}

/**
 * Returns whether there are pictures with the tensors.
 * @param {Context} context
 */
export const hasLayers = ({ content }) => Boolean(content.layers);

/**
 * Returns the name of the picture that an element opens; undefined if none.
 * @param {Picture} picture
 * @param {Element} box
 */
const linkOf = ({ view }, box) => view.links[box.getAttribute("data-id") ?? ""];

/**
 * Sets a property of the style unless it has that value: setting it would make the browser lay out the page anew.
 * @param {HTMLElement} element
 * @param {string} name
 * @param {string} value
 */
function setProperty(element, name, value) {
  if (element.style.getPropertyValue(name) !== value) element.style.setProperty(name, value);
}

/**
 * Returns the name of the picture in which the closed box is open that holds a step; undefined if there is none, or if the
 * hook of the step is in this picture.
 * @param {View} view
 * @param {number} step
 */
function boxOfStep({ spans, links, pins, steps }, step) {
  if (Object.keys(pins).some((pin) => steps[pin]?.includes(step))) return undefined;
  const box = Object.keys(spans).find((id) => isWithin(spans[id], step));
  return box && links[box];
}

/** @param {Element} box */
const titleOf = (box) => findElement(box, "text").textContent ?? "";
