// The labels, hints and messages of the player, in the language of its content.

/** @typedef {(key: string, values?: { [name: string]: string | number }) => string} Say */

/**
 * Makes the function that returns a label with its placeholders filled. A missing label is shown as its key, so that
 * it is noticed.
 * @param {{ [key: string]: string }} labels
 * @returns {Say}
 */
export const sayWith = (labels) => (key, values = {}) => {
  const label = Object.hasOwn(labels, key) ? labels[key] : key;
  return label.replace(/\{(\w+)\}/g, (placeholder, name) => String(values[name] ?? placeholder));
};
