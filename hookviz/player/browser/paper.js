// The static picture behind a player, for paper: it shows the last step, so it leaves the page while somebody predicts.

const ANSWERS = ":scope > :is(figure, .hv-scroll, .hv-notes)";

/** The parts that were taken out, with the marks of their places. @type {WeakMap<Element, [Comment, Element][]>} */
const taken = new WeakMap();

/**
 * Takes the pictures and tables out of the static version of a player, or puts them back.
 * @param {Element} root
 * @param {boolean} isHidden
 */
export function hideOnPaper(root, isHidden) {
  const still = root.closest(".hv-plays")?.querySelector(":scope > .hv-still");
  if (!still || isHidden === taken.has(still)) return;
  for (const [mark, part] of taken.get(still) ?? []) mark.replaceWith(part);
  taken.delete(still);
  if (!isHidden) return;
  taken.set(still, [...still.querySelectorAll(ANSWERS)].map((part) => {
    const mark = document.createComment("");
    part.replaceWith(mark);
    return [mark, part];
  }));
}
