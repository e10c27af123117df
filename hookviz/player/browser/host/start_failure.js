// The message above the static picture of a page whose player cannot start.

import { makeElement } from "../common/dom.js";

/**
 * @param {Element} still the static picture
 * @param {HTMLElement} data holds the message in its attribute `data-failed`
 * @param {unknown} error
 */
export function showStartFailure(still, data, error) {
  const sentence = (data.dataset.failed ?? "").replace("{why}", () => String(error));
  still.before(makeElement("p", "hv-failed", sentence, { role: "alert" }));
  console.error(error);
}
