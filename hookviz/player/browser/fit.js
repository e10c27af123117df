// The size at which a picture is shown: whole where it can be, and never too small to read. The node tests run `scaleFor`.

import { onAbort, scrollBehavior } from "./dom.js";

/** @import { Picture } from "./picture.js" */

/** @typedef {{ smallest?: number, least?: number }} Letters in pixels: no smaller; where the picture fits whole, down to `least` */

/**
 * How large to draw a picture: whole or at least as wide as its pane, if its letters are not too small then; else to be
 * read.
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
 * Keeps the picture at a readable size as the pane changes; returns what does so at once.
 * @param {HTMLElement} pane
 * @param {() => Picture | null} current
 * @param {() => Letters} letters
 * @param {(width: number) => void} onFit is given the width of the picture
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
    // A pane that scrolls must be reachable from the keyboard.
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
 * Brings a box into view where the picture is larger than its pane.
 * @param {Element} pane
 * @param {Element | null | undefined} box
 */
export function scrollTo(pane, box) {
  if (!box || !pane.hasAttribute("tabindex")) return;
  const [inner, outer] = [box.getBoundingClientRect(), pane.getBoundingClientRect()];
  /**
   * Its middle; of what is larger than the pane its beginning, where its name stands.
   * @param {"left" | "top"} start
   * @param {"width" | "height"} size
   */
  const by = (start, size) => inner[start] + Math.min(inner[size], outer[size]) / 2 - outer[start] - outer[size] / 2;
  pane.scrollBy({ left: by("left", "width"), top: by("top", "height"), behavior: scrollBehavior() });
}
