// A box that opens where it stands: what is in both pictures moves to its new place, and the rest appears.

import { isMotionWanted } from "./motion.js";

/** @import { Picture } from "./picture.js" */

const MOVE = { duration: 260, easing: "cubic-bezier(.45, .05, .35, 1)" };
const APPEAR = { duration: 200, delay: 60, fill: /** @type {FillMode} */ ("backwards") };
/** What moves. Arrows have other paths in the new picture: they appear. */
const MOVING = ".hv-node, .hv-fold, .hv-module, .hv-plate";
/** More elements than these would not move smoothly. */
const MAX_MOVING = 300;

/** @typedef {Map<string, DOMRect>} Places where each box of a picture lies in the window */

/**
 * Returns where the boxes of a picture lie; null if nothing is to move.
 * @param {Picture} picture
 * @returns {Places | null}
 */
export function placesOf(picture) {
  const boxes = movingBoxes(picture);
  if (!isMotionWanted() || boxes.length > MAX_MOVING) return null;
  return new Map(boxes.map((box) => [box.id, box.outline.getBoundingClientRect()]));
}

/**
 * Moves the boxes of a new picture from where they were in the one before. Without a common box, nothing moves.
 * @param {Places} before
 * @param {Picture} picture
 */
export function unfold(before, picture) {
  const boxes = movingBoxes(picture);
  if (boxes.length > MAX_MOVING || !boxes.some(({ id }) => before.has(id))) return;
  const moves = boxes.map(({ id, element, outline }) => {
    const from = before.get(id);
    return { element, transform: from && transformFrom(from, outline, element.matches(".hv-module")) };
  });
  for (const { element, transform } of moves) {
    if (transform) element.animate({ transform: [transform, "none"] }, MOVE);
    else if (transform === undefined) element.animate({ opacity: [0, 1] }, APPEAR);
  }
  for (const arrow of picture.svg.querySelectorAll(".hv-edge")) arrow.animate({ opacity: [0, 1] }, APPEAR);
}

/** @param {Picture} picture */
function movingBoxes({ svg }) {
  return [...svg.querySelectorAll(MOVING)].map((element) => ({
    id: element.getAttribute("data-id") ?? "",
    element,
    outline: /** @type {SVGGraphicsElement} */ (element.querySelector(":scope > .hv-box, :scope > .hv-plate-box") ?? element),
  }));
}

/**
 * Returns the transform that puts an outline where it was before; empty if it is there.
 * @param {DOMRect} from
 * @param {SVGGraphicsElement} outline
 * @param {boolean} isFrame whether it gets its size of before, too: letters would be stretched
 */
function transformFrom(from, outline, isFrame) {
  const to = outline.getBoundingClientRect();
  const { x, y, width } = outline.getBBox();
  if (!to.width || !to.height) return "";
  const scale = to.width / width;
  const [across, down] = [(from.left - to.left) / scale, (from.top - to.top) / scale];
  const [wider, higher] = isFrame ? [from.width / to.width, from.height / to.height] : [1, 1];
  const isThere = Math.hypot(across, down) < 0.5 && Math.abs(wider - 1) + Math.abs(higher - 1) < 0.01;
  return isThere ? "" : `translate(${x + across}px, ${y + down}px) scale(${wider}, ${higher}) translate(${-x}px, ${-y}px)`;
}
