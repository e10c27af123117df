// A timeline of many steps: bars show the norms of gradients.

import { makeElement, onAbort, setAttributes } from "../common/dom.js";
import { colourAt, positionOnScale, normScale, formatNorm } from "../common/norm_scale.js";
import { chooseTitles, makePassTitles } from "../common/pass_titles.js";
import { hideLater } from "../predict/questions.js";
import { dragOn, hoverText, makeSlider, sliderValue } from "./timeline_slider.js";
import { drawColumns, drawPasses, drawSigns, openCanvas } from "./timeline_canvas.js";
import { makeSign } from "../panel/signs.js";
import { makeSignEntries } from "./timeline_legend.js";
import { makeColumns, passMarks } from "./timeline_columns.js";

/** @import { Canvas } from "./timeline_canvas.js" */
/** @import { PassMark } from "./timeline_columns.js" */
/** @import { Context, Scale } from "../common/types" */

/**
 * @param {Context} context
 * @returns {import("./timeline_slider.js").Timeline}
 */
export function makeBars(context) {
  const bars = new Bars(context);
  const { container: pane, legend } = bars;
  return { pane, legend, paint: (step) => bars.paint(step) };
}

/** The space around the title of a pass, in pixels. */
const TITLE_SPACE = 8;

class Bars {
  /** @param {Context} context */
  constructor(context) {
    const { run, root, driver, signal } = context;
    this.context = context;
    this.pane = makeSlider(context, "hv-long");
    this.scale = normScale(run.steps);
    this.legend = makeScaleLegend(this.scale, context);
    this.step = driver.position().step;
    this.track.append(this.canvas, this.needle);
    this.pane.append(this.track);
    this.container.append(this.pane);
    driver.onChange("change:norms", () => this.#paintColors());
    driver.onChange("change:predict", () => this.#draw());
    redrawOnChange(root, this.track, () => this.#draw(), signal);
    const at = (/** @type {number} */ position, /** @type {number} */ y) => this.#goTo(position, y);
    dragOn(this.pane, this.track, { at, textAt: (position) => hoverText(context, this.#stepAt(position)) }, signal);
    this.#paintColors();
  }

  container = makeElement("div", "hv-bars");
  track = makeElement("div", "hv-track");
  canvas = makeElement("canvas");
  /** Marks the step. */
  needle = makeElement("div", "hv-needle");
  /** @type {PassMark[]} */
  #passes = [];
  /** Where the row of the passes begins, in pixels. */
  #passRow = Infinity;
  #titleWidth = 0;

  /** @param {number} step */
  paint(step) {
    this.step = step;
    // While predicting, norms appear step by step.
    if (this.context.model.get("predict")) this.#draw();
    this.#moveNeedle();
    setAttributes(this.pane, sliderValue(this.context, step));
  }

  /** @param {number} position from 0 to 1 */
  #stepAt(position) {
    return Math.floor(position * this.context.run.steps.length);
  }

  /**
   * Goes to a step, or in the row of the passes to the first step of a pass.
   * @param {number} position from 0 to 1
   * @param {number} y from the upper edge, in pixels
   */
  #goTo(position, y) {
    const { driver, run: { steps } } = this.context;
    const step = this.#stepAt(position);
    const x = position * this.track.clientWidth;
    const title = this.#passes.find(({ left, isTitled }) => isTitled && left <= x && x < left + this.#titleWidth);
    const view = title?.view ?? steps[step].view;
    driver.goTo(y < this.#passRow ? step : steps.findIndex((other) => other.view === view));
  }

  #draw() {
    const { model, root, run } = this.context;
    const width = this.track.clientWidth;
    if (!width) return;
    const steps = hideLater(this.context);
    const columns = makeColumns(steps, Math.min(width, steps.length));
    const hasPasses = run.views.length > 1;
    const canvas = openCanvas(this.canvas, root, width, hasPasses);
    if (hasPasses) this.#drawPasses(canvas);
    drawColumns(canvas, columns, this.scale, Boolean(model.get("norms")));
    drawSigns(canvas, columns);
    this.#moveNeedle();
  }

  /** @param {Canvas} canvas */
  #drawPasses(canvas) {
    const { run } = this.context;
    /** @param {string} title */
    const measure = (title) => canvas.pen.measureText(title).width + TITLE_SPACE;
    const titleOf = chooseTitles(makePassTitles(this.context), run.views.length, canvas.width, measure);
    this.#titleWidth = Math.max(...run.views.map((_, view) => measure(titleOf(view))));
    this.#passes = passMarks(run.steps, canvas.width, this.#titleWidth);
    this.#passRow = canvas.height - canvas.lane;
    drawPasses(canvas, this.#passes, titleOf);
  }

  /** Moves the mark of the step. */
  #moveNeedle() {
    const { steps } = this.context.run;
    const { sign } = steps[this.step];
    this.needle.replaceChildren(...(sign ? [makeSign(sign)] : []));
    this.needle.style.left = `${((this.step + 0.5) / steps.length) * 100}%`;
  }

  #paintColors() {
    this.legend.classList.toggle("hv-plain", !this.context.model.get("norms"));
    this.#draw();
  }
}

/**
 * @param {HTMLElement} root
 * @param {HTMLElement} track
 * @param {() => void} draw
 * @param {AbortSignal} signal
 */
function redrawOnChange(root, track, draw, signal) {
  const size = new ResizeObserver(draw);
  size.observe(track);
  const theme = new MutationObserver(draw);
  theme.observe(root, { attributes: true, attributeFilter: ["class"] });
  onAbort(signal, () => [size, theme].forEach((observer) => observer.disconnect()));
}

/**
 * Makes the legend: the scale of colours with numbers, and the marks that occur.
 * @param {Scale | null} scale
 * @param {Context} context
 */
function makeScaleLegend(scale, { run, say }) {
  const pane = makeElement("ul", "hv-legend hv-scale");
  const ramp = makeElement("span", "hv-ramp", "", { role: "img", "aria-label": say("to") });
  if (scale) {
    const [first, last] = [positionOnScale(scale.low, scale), positionOnScale(scale.high, scale)];
    const colours = [0, 1, 2, 3, 4].map((i) => colourAt(first + ((last - first) * i) / 4, "tone"));
    ramp.style.background = `linear-gradient(90deg, ${colours.join()})`;
    const ends = makeElement("li", "", "", { title: say("scale") });
    ends.append(say("scale_norm"), makeElement("b", "", formatNorm(scale.low)), ramp, makeElement("b", "", formatNorm(scale.high)));
    pane.append(ends);
  }
  const samples = { zero: run.steps.some(({ norm }) => norm === 0), bad: run.steps.some(({ norm }) => typeof norm === "string") };
  for (const [name, occurs] of Object.entries(samples)) {
    if (!occurs) continue;
    const sample = makeElement("li");
    sample.append(makeElement("i", `hv-sample-${name}`), say(`scale_${name}`));
    pane.append(sample);
  }
  pane.append(...makeSignEntries(run, say));
  return pane;
}
