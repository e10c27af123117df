// A menu of all passes, with their losses: it shows the pass of the step, and leads to the first step of another one.

import { listen, makeElement } from "../common/dom.js";
import { makePassTitles } from "../common/pass_titles.js";

/** @import { Context } from "../common/types" */

/**
 * @typedef {object} PassChooser
 * @property {HTMLSelectElement} pane
 * @property {(step: number) => void} paint
 */

/**
 * @param {Context} context
 * @returns {PassChooser | null} null if there is only one pass
 */
export function makePassChooser(context) {
  const { run, say, driver, signal } = context;
  const { steps, views } = run;
  if (views.length < 2) return null;
  const label = say("choose_pass");
  const pane = makeElement("select", "hv-button hv-passes", "", { "aria-label": label, title: label });
  const [titleOf] = makePassTitles(context);
  views.forEach((_, view) => pane.append(makeElement("option", "", titleOf(view), { value: String(view) })));
  /** @param {number} step */
  const paint = (step) => {
    pane.value = String(steps[step].view);
  };
  listen(pane, "change", () => {
    driver.goTo(steps.findIndex(({ view }) => view === Number(pane.value)));
    paint(driver.position().step); // a question may have stopped the move
  }, signal);
  return { pane, paint };
}
