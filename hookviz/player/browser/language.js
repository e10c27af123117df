// Sentences: Python sends keys and arguments, and they are read here in the language of a table of texts.

/** @import { Message } from "./payload" */

/** A table of texts by their keys. It grows, since parts that come later bring the texts that they need. */
export class Language {
  /** @type {{ [key: string]: string }} */
  #texts = {};

  /** @param {{ [key: string]: string }} texts */
  constructor(texts) {
    this.add(texts);
  }

  /** @param {{ [key: string]: string }} texts */
  add(texts) {
    Object.assign(this.#texts, texts);
  }

  /** @param {string} key */
  has(key) {
    return Object.hasOwn(this.#texts, key);
  }

  /**
   * The text under a key, with its places filled. A key that is missing shows itself, so that it is noticed.
   * @param {string} key
   * @param {{ [name: string]: string | number }} [values]
   */
  say(key, values = {}) {
    return (this.#texts[key] ?? key).replace(/\{(\w+)\}/g, (place, name) => String(values[name] ?? place));
  }

  /**
   * What a message says.
   * @param {Message} message
   * @returns {string}
   */
  read(message) {
    if (typeof message === "string") return message;
    const [key, parts] = message;
    if (Array.isArray(parts)) return parts.map((part) => this.read(part)).join(this.#texts[key] ?? " ");
    return this.say(key, Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, this.read(part)])));
  }
}
