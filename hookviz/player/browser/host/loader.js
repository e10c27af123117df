// Starts the script of a page or of a notebook's output, where it is packed to half of its size.

import { unpack } from "../common/compression.js";
import { makeElement } from "../common/dom.js";
import { showStartFailure } from "./start_failure.js";

/** @param {Element} packed */
async function start(packed) {
  // The loader of another output must not start this script again.
  packed.classList.remove("hv-script");
  try {
    document.body.append(makeScript(await unpack(packed.textContent ?? "")));
  } catch (error) {
    const still = packed.parentElement?.querySelector(".hv-still");
    const data = /** @type {HTMLElement | null | undefined} */ (packed.parentElement?.querySelector(".hv-state"));
    if (still && data) showStartFailure(still, data, error);
  }
}

/** @param {string} text */
function makeScript(text) {
  const script = makeElement("script");
  // Not through makeElement, which replaces control characters: the policy of the page allows this very text.
  script.textContent = text;
  return script;
}

document.querySelectorAll(".hv-script").forEach(start);
