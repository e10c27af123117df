// The signs of hooks on their pins: what each did up to a step, and that it did not fire.

import { SIGNS } from "../panel/signs.js";
import { makeSvgElement, setAttributes } from "../common/dom.js";

/** @import { Sign, Step } from "../common/types" */
/** @import { Picture } from "./picture.js" */

/**
 * Returns a function that shows the signs at a step. A pin gets its sign when its hook has run.
 * @param {Picture} picture
 * @param {Step[]} steps
 */
export function makePinSigns({ view, elements }, steps) {
  const pins = Object.keys(view.pins).flatMap((id) => {
    const pin = elements.get(id);
    return pin ? [{ pin, fired: view.steps[id] ?? [] }] : [];
  });
  return (/** @type {number} */ step) => {
    for (const { pin, fired } of pins) {
      const last = fired.findLast((at) => at <= step);
      const sign = pin.classList.contains("hv-silent") ? "silent" : last === undefined ? null : steps[last].sign;
      if ((pin.getAttribute("data-sign") ?? null) !== sign) showSign(pin, sign);
    }
  };
}

/**
 * Draws a sign across the left edge of a pin. A hidden picture has no sizes: its pins get signs when it is shown.
 * @param {Element} pin
 * @param {Sign | null} sign
 */
function showSign(pin, sign) {
  const box = /** @type {SVGGraphicsElement | null} */ (pin.querySelector(".hv-pin-box"));
  const { x, y, height } = box?.getBBox() ?? { x: 0, y: 0, height: 0 };
  if (!height) return;
  pin.querySelector(".hv-pin-sign")?.remove();
  if (sign === null) {
    pin.removeAttribute("data-sign");
    return;
  }
  pin.setAttribute("data-sign", sign);
  const path = makeSvgElement("path", `hv-pin-sign hv-sign-${sign}`);
  setAttributes(path, { d: SIGNS[sign], transform: `translate(${x - 2} ${y + height / 2})` });
  pin.append(path);
}
