// Links to steps: in the text around the players, and in the address of a page that holds a player alone.

import { readAddress, resolveTarget, switchNames, writeAddress } from "./address.js";
import { switchesOff } from "../compare/comparison.js";
import { findElement, listen, onAbort, scrollBehavior } from "../common/dom.js";

/** @import { Target } from "./address.js" */
/** @import { Context } from "../common/types" */

/** @typedef {{ showMessage: (text: string) => void }} Panel */

/** Messages that the player shows when it is rebuilt, since a link can lead to another run. @type {WeakMap<HTMLElement, string>} */
const pending = new WeakMap();
/** Players that have read the address of their page. @type {WeakSet<HTMLElement>} */
const started = new WeakSet();

/**
 * Follows the links in the text below this player; in a page of its own, its address leads to a step, and shows it.
 * @param {Context} context
 * @param {Panel} panel
 */
export function followLinks(context, panel) {
  const { root, signal } = context;
  /** @param {MouseEvent} event */
  const follow = (event) => {
    // A plot is an SVG, whose links may have a namespace.
    const link = event.target instanceof Element ? event.target.closest("a[*|href]") : null;
    const target = readAddress(link?.getAttribute("href") ?? link?.getAttribute("xlink:href"));
    if (!link || target === null || nearestAbove(link) !== root) return;
    // The notebook or page would look for a heading with that name.
    event.preventDefault();
    event.stopPropagation();
    link.closest("dialog")?.close();
    goToTarget(context, panel, target);
    // The player gets the focus for the next key. Only its panel is scrolled into view: the player may be larger than the screen.
    root.focus({ preventScroll: true });
    findElement(root, ".hv-panel").scrollIntoView({ block: "nearest", behavior: scrollBehavior() });
  };
  // In the capture phase, before the listeners of the notebook.
  document.addEventListener("click", follow, true);
  onAbort(signal, () => document.removeEventListener("click", follow, true));
  showPending(context, panel);
  if (ownsAddress(root)) followAddress(context, panel);
}

/**
 * Returns whether the address of the page is the player's: in a page of its own it is, but not in a notebook, a slide or
 * a frame without an address. Of several players in a page, the address belongs to the first.
 * @param {Element} root
 */
export function ownsAddress(root) {
  return /^(https?|file):$/.test(location.protocol) && document.querySelector("main.hv-page .hv-player") === root;
}

/**
 * Returns the address of the step that is shown.
 * @param {Context} context
 */
export function addressOfStep({ model, content, driver }) {
  const names = switchNames(content.switches);
  const off = switchesOff(content.combinations, model.get("shown")).map((index) => names[index]);
  return writeAddress({ step: driver.position().step, off });
}

/**
 * @param {Context} context
 * @param {Panel} panel
 */
function followAddress(context, panel) {
  const { root, driver, signal } = context;
  // Replaced, not pushed: the browser's back button leads to the page before, not to each step.
  const write = () => history.replaceState(history.state, "", addressOfStep(context));
  const read = () => {
    const target = readAddress(location.hash);
    if (!target) return;
    goToTarget(context, panel, target);
    write(); // an open question, for example, may have stopped it
  };
  if (!started.has(root)) read();
  else if (readAddress(location.hash)) write(); // a switch was flipped
  started.add(root);
  driver.onChange("change:step change:shown", () => {
    if (!signal.aborted) write();
  });
  listen(globalThis, "hashchange", read, signal);
}

/**
 * Goes to a step of a run; a message says what of the link does not exist.
 * @param {Context} context
 * @param {Panel} panel
 * @param {Target} target
 */
function goToTarget(context, panel, target) {
  const { model, content, say, run, root, driver } = context;
  const { switches, combinations } = content;
  const names = switchNames(switches);
  const player = { names, labels: switches.map(({ label }) => label), combinations, shown: model.get("shown"), count: run.steps.length };
  const { shown, step, unknown, isAlone, isPast } = resolveTarget(target, player);
  const messages = [
    isPast ? say("link_step", { step: target.step + 1, steps: run.steps.length }) : "",
    unknown.length ? say("link_hook", { names: unknown.join(", ") }) : "",
    isAlone ? say("link_alone") : "",
  ];
  const text = messages.filter(Boolean).join(" ");
  if (text) pending.set(root, text);
  driver.setTraits(shown === model.get("shown") ? { step } : { step, shown, flipped: true });
  showPending(context, panel);
}

/**
 * Shows the message of a link once the words of the step are there, which would replace it.
 * @param {Context} context
 * @param {Panel} panel
 */
function showPending({ root, run, driver, signal }, panel) {
  if (!pending.has(root)) return;
  run.fetchWords(driver.position().step).then(() => {
    const text = signal.aborted ? undefined : pending.get(root);
    if (text === undefined) return;
    pending.delete(root);
    panel.showMessage(text);
  });
}

/**
 * Returns the last player before a link, in the same notebook.
 * @param {Element} link
 */
function nearestAbove(link) {
  const players = [...(link.closest(".jp-Notebook") ?? document).querySelectorAll(".hv-player")];
  return players.findLast((player) => player.compareDocumentPosition(link) & Node.DOCUMENT_POSITION_FOLLOWING);
}
