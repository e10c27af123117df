// The picture of the run that is shown; or two beside each other: the run that it is compared with, and it.

import { make } from "./dom.js";
import { PicturePane } from "./picture_pane.js";
import { SearchField } from "./search_field.js";
import { switchState } from "./switches.js";

/** @import { Actions, Band, Context } from "./types" */

/**
 * @param {Context} context
 * @param {{ tell: (text: string) => void, onShow: (bands: Band[]) => void }} options
 */
export function makePictures(context, { tell, onShow }) {
  const { model, root, run, beside } = context;
  const isSplit = Boolean(beside && model.get("split"));
  root.classList.toggle("hv-split", isSplit);
  const main = new PicturePane(context, { run, beside, struck: !isSplit, tell, onShow, ...switchState(context) });
  const search = new SearchField(context, main.head, (name) => main.enter(name));
  main.head.append(search.button);
  /** @type {Actions} */
  const actions = { ...main.actions, search: () => search.open() };
  if (!isSplit || !beside) return { pane: main.pane, paint: (/** @type {number} */ step) => main.paint(step), actions };
  const nowhere = { isSwitch: () => false, isOff: () => false };
  const other = new PicturePane(context, { run: beside, beside: run, struck: false, tell, onShow: () => {}, ...nowhere });
  const pane = make("div", "hv-pair");
  const [before, after] = [beside, run].map(({ label }) => context.language.read(label));
  pane.append(captioned(other.pane, before), captioned(main.pane, after));
  const paint = (/** @type {number} */ step) => [other, main].forEach((one) => one.paint(step));
  return { pane, paint, actions };
}

/**
 * @param {HTMLElement} pane
 * @param {string} text
 */
function captioned(pane, text) {
  const figure = make("figure", "hv-side");
  figure.append(make("figcaption", "", text), pane);
  return figure;
}
