// Starts the script of a page or of a notebook's output, where it is packed to half of its size; a page's styles are, too.

import { unpack } from "../common/compression.js";
import { makeElement } from "../common/dom.js";
import { showStartFailure } from "./start_failure.js";

/** @param {Element} packed */
async function start(packed) {
  // The loader of another output must not start this script again.
  packed.classList.remove("hv-script");
  try {
    for (const style of document.querySelectorAll(".hv-style")) {
      style.classList.remove("hv-style");
      // First: the page's own styles override those of the player.
      document.head.prepend(makeExact("style", await unpack(style.textContent ?? "")));
    }
    document.body.append(makeExact("script", await unpack(packed.textContent ?? "")));
  } catch (error) {
    const still = packed.parentElement?.querySelector(".hv-still");
    const data = /** @type {HTMLElement | null | undefined} */ (packed.parentElement?.querySelector(".hv-state"));
    if (still && data) showStartFailure(still, data, error);
  }
}

/**
 * @param {"script" | "style"} tag
 * @param {string} text
 */
function makeExact(tag, text) {
  const element = makeElement(tag);
  // Not through makeElement, which replaces control characters: the policy of the page allows this very text.
  element.textContent = text;
  return element;
}

document.querySelectorAll(".hv-script").forEach(start);
