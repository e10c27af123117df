// The pins of hooks that did not fire: dashed, with the reason as hover text, as their name, and on a click in the panel.

import { listen, makeSvgElement, setAttributes } from "../common/dom.js";

/** @import { Say } from "../common/labels.js" */
/** @import { Picture } from "./picture.js" */

/** What a pin has while its reason is shown. */
const SHOWN = ["role", "tabindex", "aria-label"];

/**
 * Returns a function that shows or hides the reasons on the pins of a picture.
 * @param {Picture} picture
 * @param {Say} say
 * @param {(reason: string) => void} explain shows a reason in the panel
 * @param {AbortSignal} signal
 */
export function makeSilentPins({ view, elements, svg }, say, explain, signal) {
  const pins = Object.entries(view.pins).flatMap(([id, { reason }]) => {
    const pin = elements.get(id);
    return pin && reason ? [{ pin, reason }] : [];
  });
  const isShown = (/** @type {Element} */ pin) => pin.classList.contains("hv-silent");
  for (const { pin, reason } of pins) {
    /** @param {Event} event */
    const act = (event) => {
      // A click on the pin of a switch flips that switch.
      if (!isShown(pin) || (event.type === "click" && pin.matches(".hv-switch-pin"))) return;
      event.stopPropagation();
      explain(reason);
    };
    listen(pin, "click", act, signal);
    listen(pin, "keydown", (event) => event.key === "Enter" && act(event), signal);
  }
  // Screen readers do not reach elements inside of an image.
  if (pins.length) svg.setAttribute("role", "group");
  return (/** @type {boolean} */ isOn) => pins.filter(({ pin }) => isShown(pin) !== isOn).forEach(({ pin, reason }) => {
    pin.classList.toggle("hv-silent", isOn);
    pin.querySelector(":scope > title")?.remove();
    for (const name of SHOWN) pin.removeAttribute(name);
    if (!isOn) return;
    setAttributes(pin, { role: "button", tabindex: 0, "aria-label": reason });
    const title = makeSvgElement("title");
    title.textContent = reason;
    pin.prepend(title);
  });
}
