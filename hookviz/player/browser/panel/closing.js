// What the last step sums up: how many hooks changed something, and what.

import { makeElement } from "../common/dom.js";

/** @import { Say } from "../common/labels.js" */
/** @import { LoadedRun } from "../common/types" */

/** The most changes that are listed. */
const MAX_CHANGES = 6;

/**
 * @param {LoadedRun} run
 * @param {Say} say
 */
export function makeClosing({ summary, firings }, say) {
  const pane = makeElement("div", "hv-closing");
  if (!summary.length) return pane;
  pane.append(makeElement("p", "", `${say("closing")} ${summary.join(" · ")}.`));
  const list = makeElement("ul");
  for (const { step, name, on, short } of firings.filter(({ changed }) => changed).slice(0, MAX_CHANGES)) {
    const item = makeElement("li");
    item.append(makeElement("a", "", say("closing_change", { name, on, short }), { href: `#step-${step + 1}` }));
    list.append(item);
  }
  pane.append(list);
  return pane;
}
