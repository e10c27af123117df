// What an optimizer did to each parameter in its step.

import { appendNames, makeElement } from "../common/dom.js";

/**
 * Makes the list of parameters, each with what the optimizer did to it.
 * @param {[string, string][]} [moves]
 */
export function makeMoves(moves = []) {
  const list = makeElement("dl", "hv-moves");
  for (const [name, text] of moves) {
    const term = makeElement("dt");
    appendNames(term, name);
    list.append(term, makeElement("dd", "", text));
  }
  return list;
}
