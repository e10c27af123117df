// Drags and pinches on the pane of a picture.

import { listen } from "../common/dom.js";

/** @typedef {{ x: number, y: number }} Point */

/** A press that moves farther than this many pixels is a drag, not a click. */
const CLICK_RADIUS = 5;

/**
 * Follows one pointer as a drag, and two as a pinch. A drag is no click.
 * @param {HTMLElement} pane
 * @param {{ pan: (x: number, y: number) => void, zoom: (factor: number, point: Point) => void, canPan: () => boolean }} acts
 * @param {AbortSignal} signal
 */
export function followDrags(pane, { pan, zoom, canPan }, signal) {
  /** @type {Map<number, Point>} */
  const pointers = new Map();
  let distance = 0;
  let isDrag = false;
  /** @param {PointerEvent} event */
  const start = (event) => {
    if (event.button) return;
    if (!pointers.size) [distance, isDrag] = [0, false];
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  };
  /** @param {PointerEvent} event */
  const move = (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = { x: event.clientX, y: event.clientY };
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    pointers.set(event.pointerId, now);
    distance += Math.hypot(now.x - before.x, now.y - before.y);
    if (!other && (distance <= CLICK_RADIUS || !canPan())) return;
    if (!isDrag) pane.setPointerCapture(event.pointerId);
    isDrag = true;
    if (other) pinch(before, now, other, pan, zoom);
    else pan(now.x - before.x, now.y - before.y);
  };
  /** @param {PointerEvent} event */
  const end = (event) => pointers.delete(event.pointerId);
  listen(pane, "pointerdown", start, signal);
  listen(pane, "pointermove", move, signal);
  for (const type of ["pointerup", "pointercancel", "lostpointercapture"]) listen(pane, type, end, signal);
  pane.addEventListener("click", (event) => {
    if (isDrag) event.stopImmediatePropagation();
    isDrag = false;
  }, { signal, capture: true });
}

/**
 * @param {Point} before
 * @param {Point} now
 * @param {Point} other the pointer that rests
 * @param {(x: number, y: number) => void} pan
 * @param {(factor: number, point: Point) => void} zoom
 */
function pinch(before, now, other, pan, zoom) {
  /** @param {Point} point */
  const spread = (point) => Math.hypot(point.x - other.x, point.y - other.y);
  pan((now.x - before.x) / 2, (now.y - before.y) / 2);
  if (spread(before)) zoom(spread(now) / spread(before), { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 });
}
