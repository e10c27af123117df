// The height that a player may take where its frame has no height of its own, such as that of an output on Colab.

import { listen } from "./dom.js";
import { HOSTS } from "./keyboard_focus.js";

/** The usual height of a browser's own bars, in pixels. */
const BROWSER_BARS = 90;

/**
 * Limits the player by the browser's window where the notebook makes the frame of an output as high as the output: there,
 * 100vh is the height of the player itself, and the two would follow each other.
 * @param {HTMLElement} root
 * @param {AbortSignal} signal
 */
export function limitHeightInFrame(root, signal) {
  if (!isInFrameOfOutput(root)) return;
  const limit = () => root.style.setProperty("--hv-window", `${outerHeight - BROWSER_BARS}px`);
  listen(window, "resize", limit, signal);
  limit();
}

/**
 * Returns whether the document is a frame that holds outputs and no notebook, and is not a page of our own, which has the
 * size that somebody chose for it.
 * @param {HTMLElement} root
 */
const isInFrameOfOutput = (root) => window.parent !== window && !document.querySelector(HOSTS) && !root.closest(".hv-page");
