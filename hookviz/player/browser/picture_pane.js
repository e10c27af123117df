// The pane with the picture of the step: one sees the inside of a box, enters others from there, and a trail leads back.

import { canUnpack, unpack } from "./compression.js";
import { svgOf } from "./content.js";
import { closest, fail, find, focused, listen, make, mark, textButton } from "./dom.js";
import { keepFitting, scrollTo } from "./fit.js";
import { makeNormColors } from "./norm_colors.js";
import { scaleOf } from "./norm_scale.js";
import { Picture } from "./picture.js";
import { isWithin } from "./stepping.js";

/** @import { View } from "./payload" */
/** @import { Actions, Band, Context, OpenRun } from "./types" */

/** Boxes that can be entered, and names of what lies outside. */
const DOORS = ".hv-fold, .hv-port";

/**
 * @typedef {object} Shown a picture, and what is known of it
 * @property {string} name
 * @property {View} view
 * @property {Picture} picture
 * @property {Band[]} bands
 * @property {(step: number, isOn: boolean) => void} color
 */

/**
 * @typedef {object} PaneOptions
 * @property {OpenRun} run whose pictures these are
 * @property {OpenRun | null} beside the run that it is compared with
 * @property {boolean} struck whether old values stand in the picture, struck through
 * @property {(hook: number) => boolean} isSwitch
 * @property {(hook: number) => boolean} isOff
 * @property {(text: string) => void} tell shows a sentence in the panel
 * @property {(bands: Band[]) => void} onShow is given the boxes of a picture that is shown now
 */

/** The picture of one run. It listens to the model, and is told the step. */
export class PicturePane {
  /**
   * @param {Context} context
   * @param {PaneOptions} options
   */
  constructor(context, options) {
    const { language, driver, signal } = context;
    this.context = context;
    this.options = options;
    this.step = driver.position().step;
    this.scale = scaleOf(options.run.steps);
    this.trail = make("nav", "hv-trail", "", { "aria-label": language.say("player.trail") });
    this.head = make("div", "hv-top");
    this.graph = make("div", "hv-graph");
    this.pane = make("div", "hv-views");
    this.head.append(this.trail);
    this.pane.append(this.head, this.graph);
    const current = () => this.at?.picture ?? null;
    this.fit = keepFitting(this.graph, current, () => this.#letters(), (width) => this.#fitted(width), signal);
    listen(this.graph, "click", (event) => this.#click(event), signal);
    driver.onChange("change:large", this.fit);
    driver.onChange("change:norms", () => this.#paint());
    driver.onChange("change:tensors change:nodes", () => this.at && this.enter(this.at.name));
  }

  /** @type {Shown | null} */
  at = null;
  /** The picture that was asked for last: meanwhile another may have come. */
  #wanted = "";
  /** @type {Map<string, Shown>} */
  #made = new Map();
  /** @type {Promise<string[][]> | null} */
  #layers = null;

  /** @returns {Actions} */
  get actions() {
    return this.context.open.content.grouped ? { enter: () => this.approach(), leaveBox: () => this.leave() } : {};
  }

  /**
   * Shows a step, in the picture in which it is.
   * @param {number} step
   */
  paint(step) {
    const { steps } = this.options.run;
    const turned = steps[step].picture !== steps[this.step].picture;
    this.step = step;
    if (turned || !this.at) this.#turn();
    this.#paint();
  }

  /** @param {number} width of the picture, in pixels */
  #fitted(width) {
    // What a picture that stays leaves free is the panel's.
    const room = this.head.hidden ? `${width}px` : "100%";
    /** @type {HTMLElement | null} */ (this.graph.closest(".hv-frame"))?.style.setProperty("--hv-picture", room);
    this.#paint();
  }

  #paint() {
    if (!this.at) return;
    this.at.picture.paint(this.step);
    this.at.color(this.step, Boolean(this.context.model.get("norms")));
    this.#paintElsewhere();
    scrollTo(this.graph, this.at.picture.current);
  }

  /** To the picture of another pass; among pictures of passes, one stays where the step is seen. */
  #turn() {
    const { views, overview, steps } = this.options.run;
    const isAmongPasses = this.at ? this.at.name.startsWith(overview) : true;
    if (!overview || !isAmongPasses) this.enter(views[steps[this.step].picture]);
    else if (!this.at || !this.#isHere()) this.enter(overview);
  }

  /** Whether the step is seen in the picture, or inside its boxes. */
  #isHere() {
    return Boolean(this.at && isWithin(this.at.view.own, this.step));
  }

  /** @param {string} name */
  enter(name) {
    this.#show(name).catch((error) => fail(this.context.root, error));
  }

  /** Towards the step: into the box that holds it, or out of a picture that does not. */
  approach() {
    if (!this.at) return;
    const { language } = this.context;
    if (!this.#isHere()) {
      if (!this.leave()) this.options.tell(language.say("player.not_here"));
      return;
    }
    const { spans, doors } = this.at.view;
    const found = Object.keys(spans).find((id) => isWithin(spans[id], this.step));
    this.options.tell(found ? "" : language.say("player.no_box"));
    if (found) this.enter(doors[found]);
  }

  /** Out of the box; returns whether there is something around it. */
  leave() {
    const around = this.at?.view.trail.at(-2);
    this.options.tell(around ? "" : this.context.language.say("player.outermost"));
    if (around) this.enter(around[0]);
    return Boolean(around);
  }

  /** @param {string} name */
  async #show(name) {
    this.#wanted = name;
    const { language, root, signal } = this.context;
    const shown = await this.#make(name);
    if (signal.aborted || this.#wanted !== name) return;
    if (!shown) {
      this.options.tell(language.say("player.no_part"));
      return;
    }
    const holder = focused(root);
    const had = this.graph.contains(holder) || this.trail.contains(holder);
    this.at?.picture.holder.remove();
    this.at = shown;
    this.graph.classList.toggle("hv-no-lists", !this.context.model.get("nodes"));
    this.graph.append(shown.picture.holder);
    // What had the keyboard may have gone with the picture before.
    if (had) root.focus({ preventScroll: true });
    this.#drawTrail();
    this.fit();
    this.options.onShow(shown.bands);
    root.dispatchEvent(new Event("hv-drawn", { bubbles: true }));
  }

  /**
   * @param {string} name
   * @returns {Promise<Shown | null>}
   */
  async #make(name) {
    const layer = this.#layer();
    const key = `${layer} ${name}`;
    const known = this.#made.get(key);
    if (known) return known;
    const { open, language } = this.context;
    const view = /** @type {View | null} */ (await open.part(name));
    const markup = view && (await this.#markup(view, layer));
    if (!view || !markup) return null;
    const beside = /** @type {View | null} */ (await this.#besideOf(name));
    const { struck, isSwitch, isOff, run } = this.options;
    const picture = new Picture(markup, view, { label: language.say("player.graph"), language, beside, struck, isSwitch, isOff });
    this.#openDoors(picture);
    const bands = Object.entries(view.spans).map(([id, rows]) => ({ rows, title: titleOf(picture.elements.get(id)) }));
    const shown = { name, view, picture, bands, color: makeNormColors(picture, run.steps, this.scale) };
    this.#made.set(key, shown);
    return shown;
  }

  /** Which layers are switched on: both are in the same drawing, in which the nodes' lists can be hidden. */
  #layer() {
    const { model } = this.context;
    return hasLayers(this.context) ? (model.get("tensors") ? 2 : model.get("nodes") ? 1 : 0) : 0;
  }

  /**
   * @param {View} view
   * @param {number} layer
   */
  async #markup(view, layer) {
    const { open: { content, part } } = this.context;
    if (!layer || typeof view.svg !== "number") return svgOf(view, content.svgs, part);
    this.#layers ??= unpack(content.layers);
    return (await this.#layers)[layer - 1][view.svg];
  }

  /**
   * The same view of the run that is compared with.
   * @param {string} name
   */
  async #besideOf(name) {
    const { beside, run } = this.options;
    const place = run.views.indexOf(name);
    return beside && place >= 0 ? this.context.open.part(beside.views[place]) : null;
  }

  /** @param {Picture} picture */
  #openDoors(picture) {
    const { language, signal } = this.context;
    const doors = [...picture.svg.querySelectorAll(DOORS)].filter((box) => doorOf(picture, box));
    for (const box of doors) {
      const label = language.say(box.matches(".hv-port") ? "player.go_there" : "player.enter", { box: titleOf(box) });
      box.classList.add("hv-door");
      mark(box, { role: "button", tabindex: 0, "aria-label": label });
      listen(box, "keydown", (event) => {
        if (event.key !== "Enter") return;
        event.stopPropagation();
        this.#enterDoor(picture, box);
      }, signal);
    }
    // What is inside an image cannot be reached.
    if (doors.length) picture.svg.setAttribute("role", "group");
  }

  /**
   * @param {Picture} picture
   * @param {Element} box
   */
  #enterDoor(picture, box) {
    const name = doorOf(picture, box);
    if (name) this.enter(name);
  }

  #drawTrail() {
    if (!this.at) return;
    const { language, signal } = this.context;
    const { trail } = this.at.view;
    const around = trail.slice(0, -1).map(([name, title]) => textButton(language.read(title), () => this.enter(name), signal));
    const here = make("strong", "hv-here", language.read(trail.at(-1)?.[1] ?? ""), { "aria-current": "true" });
    this.trail.replaceChildren(...around, here, make("span", "hv-elsewhere"));
    // Where there is one picture only, its name says nothing.
    this.head.hidden = !around.length && this.options.run.views.length < 2 && !Object.keys(this.at.view.doors).length;
    this.#paintElsewhere();
  }

  #paintElsewhere() {
    const place = this.trail.querySelector(".hv-elsewhere");
    if (!place) return;
    place.textContent = this.#isHere() ? "" : this.context.language.say("player.elsewhere", { step: this.step + 1 });
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const { at } = this;
    if (!at || !(event.target instanceof Element)) return;
    const door = closest(event, ".hv-door");
    if (door) {
      this.#enterDoor(at.picture, door);
      return;
    }
    if (closest(event, ".hv-switch-pin")) return;
    const step = at.picture.stepAt(event.target, this.step);
    if (step !== undefined) this.context.driver.go(step);
  }

  /**
   * In pixels: a little more than 18, since sizes on the page are rounded. Else a picture that can be seen whole may
   * have letters that are a little smaller; two beside each other are a little smaller anyway.
   */
  #letters() {
    const { model, root } = this.context;
    if (model.get("large")) return { smallest: 18.1 };
    return { smallest: root.classList.contains("hv-split") ? 11 : 12, least: 10.5 };
  }
}

/**
 * Whether tensors and the nodes' lists can be switched on.
 * @param {Context} context
 */
export const hasLayers = ({ open }) => Boolean(open.content.layers && canUnpack());

/**
 * The name of the picture to which an element leads.
 * @param {Picture} picture
 * @param {Element} box
 */
const doorOf = ({ view }, box) => view.doors[box.getAttribute("data-id") ?? ""];

/** @param {Element | undefined} box */
const titleOf = (box) => (box ? (find(box, "text").textContent ?? "") : "");
