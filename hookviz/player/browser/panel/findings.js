// The problems with the gradients, each with a link to its first step; and the notes about the recording.

import { addKeyHint, findElement, makeElement } from "../common/dom.js";

/** @import { Panel } from "./panel.js" */
/** @import { FindingText } from "../common/payload" */
/** @import { Actions, Context } from "../common/types" */

/**
 * @param {Context} context
 * @param {Panel} panel
 */
export function makeFindings({ model, say, content, driver }, panel) {
  const { findings } = content;
  const pane = makeElement("details", "hv-found");
  pane.hidden = !findings.length;
  // The list starts closed: students may want to find the problem themselves.
  const list = makeElement("ul", "hv-notes");
  for (const { text, more, step } of findings) {
    const item = makeElement("li");
    item.append(makeElement("a", "", text, { href: `#step-${step + 1}` }), ` ${more}`);
    list.append(item);
  }
  const title = say(findings.length > 1 ? "found_many" : "found_one", { count: findings.length });
  pane.append(addKeyHint(makeElement("summary", "", title), "W"), list);
  let shown = 0;
  const show = () => {
    if (pane.hidden) panel.showMessage(content.no_finding, content.no_finding, "hv-neutral");
    else if (model.get("predict")) panel.showMessage(say("found_later"));
    // A slide has no room for the list: the panel shows one finding after the other, as their chips do.
    else if (!pane.checkVisibility()) showFinding(findings[shown++ % findings.length], driver, panel);
    else {
      pane.open = true;
      // No further than it must: the picture stays in sight above the first finding.
      const first = findElement(list, "a");
      first.focus({ preventScroll: true });
      findElement(list, "li").scrollIntoView({ block: "nearest" });
    }
  };
  /** @type {Actions} */
  const actions = { findings: show };
  return { pane, actions };
}

/**
 * Goes to the step of a finding, and shows its text in the panel.
 * @param {FindingText} finding
 * @param {Context["driver"]} driver
 * @param {Panel} panel
 */
export function showFinding({ text, more, step }, driver, panel) {
  driver.goTo(step);
  panel.showMessage(`${text} ${more}`);
}

/** @param {string[]} notes */
export function makeNotes(notes) {
  const list = makeElement("ul", "hv-notes");
  list.hidden = !notes.length;
  list.append(...notes.map((note) => makeElement("li", "", note)));
  return list;
}
