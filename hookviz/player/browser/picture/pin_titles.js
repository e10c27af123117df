// The hover text of a hook in the picture: where it is from, and the keys that go from hook to hook.

import { closestTarget, escapeBidi, listen, makeSvgElement } from "../common/dom.js";

/** @import { Context } from "../common/types" */

/**
 * Gives a pin its hover text when the pointer first comes to it.
 * @param {Context} context
 */
export function titlePins({ root, content, signal }) {
  listen(root, "pointerover", (event) => {
    const pin = closestTarget(event, ".hv-graph .hv-pin[data-hook]");
    if (!pin || pin.querySelector(":scope > title")) return;
    const { name, where } = content.hooks[Number(pin.dataset.hook)];
    const title = makeSvgElement("title");
    title.textContent = escapeBidi(`${[name, where].filter(Boolean).join(" · ")} ([ ])`);
    pin.prepend(title);
  }, signal);
}
