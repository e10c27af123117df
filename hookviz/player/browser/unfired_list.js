// The list of hooks that did not fire. A click on a row goes to the step that shows why, if there is one.

import { closestTarget, listen, makeElement } from "./dom.js";
import { makeRegion } from "./panel.js";

/** @import { Say } from "./labels.js" */
/** @import { UnfiredText } from "./payload" */
/** @import { Context } from "./types" */

/** @type {["step", "hook", "kind", "on", "why", "advice"]} */
const COLUMNS = ["step", "hook", "kind", "on", "why", "advice"];
const USER_NAMES = ["hook", "on"];

/**
 * Returns whether the reasons are hidden at a step: while predicting they would give answers away, until the end.
 * @param {Pick<Context, "model" | "run">} context
 * @param {number} step
 */
export const hidesReasons = ({ model, run }, step) => Boolean(model.get("predict")) && step < run.steps.length - 1;

/** @param {Context} context */
export function makeUnfiredList(context) {
  const { say, run, driver, signal } = context;
  const pane = makeRegion("hv-unfired", say("unfired"));
  // On a phone the cells stand below each other: without their roles they would no longer be a table for screen readers.
  const table = makeElement("table", "", "", { role: "table" });
  const body = makeElement("tbody", "", "", { role: "rowgroup" });
  const rows = run.unfired.map((hook) => makeRow(hook, say));
  body.append(...rows);
  table.append(makeElement("caption", "", say("unfired")), makeHead(say), body);
  pane.append(table, makeElement("p", "", run.unfiredMore));
  listen(body, "click", (event) => {
    const row = closestTarget(event, "tr");
    const hook = run.unfired[rows.findIndex((other) => other === row)];
    if (hook && hook.step >= 0) driver.goTo(hook.step);
  }, signal);
  const paint = (/** @type {number} */ step) => { pane.hidden = !rows.length || hidesReasons(context, step); };
  driver.onChange("change:predict", () => paint(driver.position().step));
  return { pane, paint };
}

/** @param {Say} say */
function makeHead(say) {
  const [head, row] = [makeElement("thead", "", "", { role: "rowgroup" }), makeElement("tr", "", "", { role: "row" })];
  for (const column of COLUMNS) {
    row.append(makeElement("th", "", say(`col_${column}`), { scope: "col", role: "columnheader" }));
  }
  head.append(row);
  return head;
}

/**
 * @param {UnfiredText} hook
 * @param {Say} say
 */
function makeRow(hook, say) {
  const row = makeElement("tr", hook.step < 0 ? "hv-no-step" : "", "", { role: "row" });
  for (const column of COLUMNS) {
    const label = say(`col_${column}`);
    const text = column === "step" ? "" : hook[column];
    const name = USER_NAMES.includes(column) ? "hv-user" : "";
    row.append(makeElement("td", name, text, { role: "cell", "data-label": label }));
  }
  if (hook.step >= 0) {
    const [step, label] = [hook.step + 1, say("unfired_step", { step: hook.step + 1 })];
    row.children[0].append(makeElement("button", "hv-row-step", String(step), { type: "button", "aria-label": label }));
  }
  return row;
}
