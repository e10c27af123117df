// The picture of the run that is shown; with a split view, the picture of its baseline next to it.

import { makeElement } from "../common/dom.js";
import { PicturePane } from "../picture/picture_pane.js";
import { SearchField } from "../panel/search_field.js";
import { switchState } from "./switches.js";

/** @import { Actions, Context } from "../common/types" */

/** Actions that change how a picture is shown: both pictures follow. */
const VIEW_ACTIONS = ["fit", "zoomIn", "zoomOut", "panLeft", "panRight", "panUp", "panDown"];

/**
 * @param {Context} context
 * @param {(text: string) => void} showMessage
 */
export function makePictures(context, showMessage) {
  const { model, root, run, baseline } = context;
  const isSplit = Boolean(baseline && model.get("split"));
  root.classList.toggle("hv-split", isSplit);
  const main = new PicturePane(context, { run, baseline, strikesOldTexts: !isSplit, showMessage, ...switchState(context) });
  const search = new SearchField(context, main.head, (name) => main.enter(name));
  main.head.append(search.button);
  /** @type {Actions} */
  const actions = { ...main.actions, search: () => search.open() };
  if (!isSplit || !baseline) {
    return { pane: main.pane, paint: (/** @type {number} */ step) => main.paint(step), openBox: () => main.follow(true), actions };
  }
  const nowhere = { isSwitch: () => false, isOff: () => false };
  const otherRun = { run: baseline, baseline: run, ...nowhere };
  const other = new PicturePane(context, { ...otherRun, strikesOldTexts: false, showMessage });
  const pane = makeElement("div", "hv-pair");
  const [before, after] = [baseline, run].map(({ label }) => label);
  pane.append(makeCaptionedPane(other.pane, before), makeCaptionedPane(main.pane, after));
  const paint = (/** @type {number} */ step) => [other, main].forEach((one) => one.paint(step));
  for (const name of VIEW_ACTIONS) {
    actions[name] = () => [other, main].forEach((one) => one.actions[name]());
  }
  const openBox = () => [other, main].forEach((one) => one.follow(true));
  return { pane, paint, openBox, actions };
}

/**
 * @param {HTMLElement} pane
 * @param {string} text
 */
function makeCaptionedPane(pane, text) {
  const figure = makeElement("figure", "hv-side");
  figure.append(makeElement("figcaption", "", text), pane);
  return figure;
}
