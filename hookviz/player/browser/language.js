// Sentences: Python sends keys and arguments, and a table of texts has the text of each key.

/** @import { Message } from "./payload" */

/** A table of texts by their keys. It grows, since each chunk brings the texts that it needs. */
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
   * Returns the text of a key with its placeholders filled. A missing key is shown itself, so that it is noticed.
   * @param {string} key
   * @param {{ [name: string]: string | number }} [values]
   */
  say(key, values = {}) {
    return (this.#texts[key] ?? key).replace(/\{(\w+)\}/g, (placeholder, name) => String(values[name] ?? placeholder));
  }

  /**
   * Returns the text of a message.
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
