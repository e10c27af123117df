// The height that a player may take where its frame has no height of its own, such as that of an output on Colab.

import { listen } from "../common/dom.js";
import { HOSTS } from "./keyboard_focus.js";

/** The usual height of a browser's own bars, in pixels. */
const BROWSER_BARS = 90;

/** Notebooks, and pages with a main part: a frame around them has the size that somebody chose for it. */
const WHOLE_PAGES = `${HOSTS}, main, [role="main"]`;

/**
 * Limits the player by the browser's window where the notebook makes the frame of an output as high as the output: there,
 * 100vh is the height of the player itself, and the two would follow each other.
 * @param {HTMLElement} root
 * @param {AbortSignal} signal
 */
export function limitHeightInFrame(root, signal) {
  if (window.parent === window || document.querySelector(WHOLE_PAGES)) return;
  const limit = () => root.style.setProperty("--hv-window", `${outerHeight - BROWSER_BARS}px`);
  listen(window, "resize", limit, signal);
  limit();
}
