// Swiping on a touch screen: left goes to the next step, right to the previous one. A vertical swipe scrolls the page.

import { listen } from "./dom.js";

/** The shortest swipe, in pixels, and the longest, in milliseconds. */
const [MIN_DISTANCE, MAX_DURATION] = [48, 700];
/** Elements with drags or selections of their own. */
const OWN_DRAGS = "input, select, textarea, button, .hv-timeline, .hv-help";

/**
 * Returns the movement of a swipe: 1 for the next step, -1 for the previous one, 0 if it is none.
 * @param {{ dx: number, dy: number, milliseconds: number }} swipe
 */
export function swipeDirection({ dx, dy, milliseconds }) {
  if (milliseconds > MAX_DURATION || Math.abs(dx) < MIN_DISTANCE || Math.abs(dx) < 2 * Math.abs(dy)) return 0;
  return dx < 0 ? 1 : -1;
}

/**
 * @param {HTMLElement} root
 * @param {(action: string) => void} act
 * @param {AbortSignal} signal
 * @param {(target: Element) => boolean} [canSwipe] whether a swipe that begins at an element steps, and does not pan
 */
export function followSwipes(root, act, signal, canSwipe = (target) => !isPanned(target, root)) {
  /** @type {{ x: number, y: number, time: number } | null} */
  let start = null;
  listen(root, "touchstart", (/** @type {TouchEvent} */ event) => {
    const [touch] = event.touches;
    const target = event.target instanceof Element ? event.target : root;
    const isSwipe = event.touches.length === 1 && !target.closest(OWN_DRAGS) && canSwipe(target);
    start = isSwipe ? { x: touch.clientX, y: touch.clientY, time: event.timeStamp } : null;
  }, signal);
  listen(root, "touchcancel", () => { start = null; }, signal);
  listen(root, "touchend", (/** @type {TouchEvent} */ event) => {
    if (!start) return;
    const [touch] = event.changedTouches;
    const swipe = { dx: touch.clientX - start.x, dy: touch.clientY - start.y, milliseconds: event.timeStamp - start.time };
    start = null;
    const direction = swipeDirection(swipe);
    if (direction) act(direction > 0 ? "next" : "previous");
  }, signal);
}

/**
 * Returns whether an element is in a picture that can be moved, or in a part that can be scrolled sideways: there a swipe does that.
 * @param {Element} target
 * @param {Element} root
 */
function isPanned(target, root) {
  if (target.closest(".hv-pans")) return true;
  for (let element = /** @type {Element | null} */ (target); element && element !== root; element = element.parentElement) {
    if (element.scrollWidth > element.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(element).overflowX)) return true;
  }
  return false;
}
