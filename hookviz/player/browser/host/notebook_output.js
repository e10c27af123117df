// The output of a cell in a notebook: what JupyterLab and the classic notebook do to it, undone for the player.

/** The classes with which they style tables, lists, code and pictures of an output; the player has its own styles. */
const STYLES = ["jp-RenderedHTMLCommon", "rendered_html"];

/** @typedef {{ element: ArrayLike<Element>, output_area?: { scroll_if_long: () => void } }} ClassicCell */

/**
 * Removes the notebook's styles from the output around an element; returns a function that restores them.
 * @param {Element} element
 */
export function dropNotebookStyles(element) {
  const found = STYLES.map((name) => ({ name, classes: element.closest(`.${name}`)?.classList }));
  for (const { name, classes } of found) classes?.remove(name);
  return () => { for (const { name, classes } of found) classes?.add(name); };
}

/**
 * The classic notebook puts an output that is longer than 100 lines into a small box that scrolls: it measured the static
 * picture and its tables. Lets it measure the player in their place.
 * @param {Element} element
 */
export function measureOutputAgain(element) {
  const { Jupyter } = /** @type {{ Jupyter?: { notebook?: { get_cells?: () => ClassicCell[] } } }} */ (globalThis);
  const cells = Jupyter?.notebook?.get_cells?.() ?? [];
  cells.find((cell) => cell.element[0].contains(element))?.output_area?.scroll_if_long();
}
