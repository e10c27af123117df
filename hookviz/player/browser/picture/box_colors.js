// Colours boxes by the norms of the gradients that have arrived in them.

import { newId, setAttributes } from "../common/dom.js";
import { arrivalsByBox, colourAt, positionOnScale, normSpread } from "../common/norm_scale.js";

/** @import { Picture } from "./picture.js" */
/** @import { Arrival } from "../common/norm_scale.js" */
/** @import { Scale, Step } from "../common/types" */

/**
 * Returns a function that colours the boxes of a picture at a step. In a box whose norms differ, the colour goes from
 * the smallest norm at its left to the largest.
 * @param {Picture} picture
 * @param {Step[]} steps
 * @param {Scale | null} scale
 * @returns {(step: number, isOn: boolean) => void}
 */
export function makeNormColors(picture, steps, scale) {
  if (!scale) return () => {};
  const arrivals = arrivalsByBox(steps, picture.view, (id) => Boolean(picture.elements.get(id)?.matches(".hv-node")));
  const painters = [...arrivals].flatMap(([id, there]) => {
    const box = picture.elements.get(id);
    return box ? [makeBoxPainter(box, picture.svg, there, scale)] : [];
  });
  return (step, isOn) => painters.forEach((paint) => paint(step, isOn));
}

/**
 * @param {Element} box
 * @param {SVGSVGElement} svg
 * @param {Arrival[]} arrivals
 * @param {Scale} scale
 */
function makeBoxPainter(box, svg, arrivals, scale) {
  const { id, stops } = addColorGradient(svg);
  const outline = /** @type {SVGElement | null} */ (box.querySelector(":scope > .hv-box"));
  let before = "";
  return (/** @type {number} */ step, /** @type {boolean} */ isOn) => {
    const { low, high, zero, bad } = normSpread(isOn ? arrivals : [], step);
    const shown = [low, high, zero, bad].join();
    if (shown === before || !outline) return;
    before = shown;
    const some = low <= high && !bad;
    box.classList.toggle("hv-bad", bad);
    box.classList.toggle("hv-zero", zero && low > high && !bad);
    if (some) stops.forEach((stop, i) => { stop.style.stopColor = colourAt(positionOnScale([low, high][i], scale), "tint"); });
    outline.style.fill = some ? `url(#${id})` : "";
  };
}

/**
 * Adds a colour gradient of two stops to the SVG.
 * @param {SVGSVGElement} svg
 */
function addColorGradient(svg) {
  // Ids are shared by the whole document.
  const id = newId();
  const blend = document.createElementNS("http://www.w3.org/2000/svg", "linearGradient");
  const stops = [0.25, 0.75].map((offset) => {
    const stop = document.createElementNS("http://www.w3.org/2000/svg", "stop");
    setAttributes(stop, { offset });
    return stop;
  });
  setAttributes(blend, { id });
  blend.append(...stops);
  svg.prepend(blend);
  return { id, stops };
}
