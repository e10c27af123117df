// The size of a picture: it fits its pane if its letters stay readable. The node tests run `scaleFor`.

import { onAbort, scrollBehavior } from "./dom.js";

/** @import { Picture } from "./picture.js" */

/** @typedef {{ smallest?: number, least?: number }} Letters sizes in pixels: the smallest letters, and `least` if the picture fits */

/**
 * Returns the scale of a picture: it fits the pane, or else the width of the pane, if its letters are large enough; else
 * its letters are readable and the pane scrolls.
 * @param {{ width: number, height: number, smallest: number }} picture
 * @param {{ width: number, height: number } & Letters} pane
 */
export function scaleFor(picture, { width, height, smallest = 12, least = smallest }) {
  const wide = width / picture.width;
  const whole = Math.min(wide, height / picture.height, 1.6);
  const readable = smallest / picture.smallest;
  if (whole * picture.smallest >= least) return whole;
  return wide * picture.smallest >= least ? Math.min(wide, readable) : readable;
}

/**
 * Fits the picture whenever the pane changes its size; returns a function that fits it at once.
 * @param {HTMLElement} pane
 * @param {() => Picture | null} current
 * @param {() => Letters} letters
 * @param {(width: number) => void} onFit gets the width of the picture
 * @param {AbortSignal} signal
 */
export function fitOnResize(pane, current, letters, onFit, signal) {
  const fit = () => {
    const picture = current();
    const { paddingLeft, maxHeight } = getComputedStyle(pane);
    const [width, height] = [pane.clientWidth, parseFloat(maxHeight)].map((size) => size - 2 * parseFloat(paddingLeft));
    if (!picture || !(width > 0 && height > 0)) return;
    const scale = scaleFor(picture.size, { width, height, ...letters() });
    picture.resize(scale);
    // Keyboard users must be able to focus a pane that scrolls.
    if (overflows(pane)) pane.tabIndex = 0;
    else pane.removeAttribute("tabindex");
    onFit(picture.size.width * scale);
  };
  const observer = new ResizeObserver(fit);
  observer.observe(pane);
  onAbort(signal, () => observer.disconnect());
  return fit;
}

/** @param {Element} pane */
function overflows(pane) {
  return pane.scrollWidth > pane.clientWidth + 1 || pane.scrollHeight > pane.clientHeight + 1;
}

/**
 * Scrolls a box into view if the picture is larger than its pane.
 * @param {Element} pane
 * @param {Element | null | undefined} box
 */
export function scrollTo(pane, box) {
  if (!box || !pane.hasAttribute("tabindex")) return;
  const [inner, outer] = [box.getBoundingClientRect(), pane.getBoundingClientRect()];
  /**
   * Returns the distance to the middle of the box, or to its beginning, which has the name, if it is larger than the pane.
   * @param {"left" | "top"} start
   * @param {"width" | "height"} size
   */
  const distance = (start, size) => inner[start] + Math.min(inner[size], outer[size]) / 2 - outer[start] - outer[size] / 2;
  pane.scrollBy({ left: distance("left", "width"), top: distance("top", "height"), behavior: scrollBehavior() });
}
