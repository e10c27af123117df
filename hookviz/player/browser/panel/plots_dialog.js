// The plots: one at a time, in a dialog over the player. A click on a bar or a column leads to its step.

import { makeElement, makeTextButton, setAttributes } from "../common/dom.js";
import { makeDialog } from "./help_dialog.js";

/** @import { PlotChunk } from "../common/payload" */
/** @import { Actions, Context } from "../common/types" */

/**
 * Makes the dialog, and the button of the view menu that opens it; without plots there is neither.
 * @param {Context} context
 */
export function makePlotsDialog(context) {
  const { content, say, fetchChunk, signal } = context;
  /** @type {Actions} */
  const actions = {};
  if (!content.plots.length) return { parts: [], button: [], actions };
  const tabs = makeElement("div", "hv-plots-tabs");
  const shown = makeElement("div", "hv-plots-shown", "", { "aria-live": "polite", tabindex: 0 });
  const { dialog, toggle, place } = makeDialog(context, "plots", tabs, shown);
  let latest = 0;
  /** @param {number} number */
  const show = async (number) => {
    latest = number;
    buttons.forEach((button, i) => setAttributes(button, { "aria-pressed": i === number }));
    shown.textContent = say("plots_wait");
    const chunk = /** @type {PlotChunk | null} */ (await fetchChunk(`plot${number}`));
    if (signal.aborted || latest !== number) return;
    if (chunk) shown.innerHTML = chunk.markup;
    else shown.textContent = say("no_part");
    place();
  };
  const buttons = content.plots.map((name, number) => makeTextButton(name, () => show(number), signal));
  tabs.append(...buttons);
  actions.plots = () => {
    if (!dialog.open) show(latest);
    toggle();
  };
  return { parts: [dialog], button: [makeTextButton(say("plots"), actions.plots, signal)], actions };
}
