// The path to the picture that is shown: the pass, the boxes around; each part leads to its picture.

import { makeElement, makeTextButton } from "../common/dom.js";
import { makePassChooser } from "./pass_chooser.js";

/** @import { Context } from "../common/types" */

export class Trail {
  /**
   * @param {Context} context
   * @param {(name: string) => void} enter shows a picture
   */
  constructor(context, enter) {
    this.context = context;
    this.enter = enter;
    this.pane = makeElement("div", "hv-trail", "", { role: "group", "aria-label": context.say("trail") });
    this.passes = makePassChooser(context);
    if (this.passes) this.pane.append(this.passes.pane);
  }

  note = makeElement("span", "hv-elsewhere");

  /**
   * Shows the pass of a step.
   * @param {number} step
   */
  paint(step) {
    this.passes?.paint(step);
  }

  /**
   * Shows a path. The menu of passes stands for the picture of the pass. It stays when others are replaced: it may have
   * the focus.
   * @param {[name: string, title: string][]} path
   */
  draw(path) {
    const { say, signal } = this.context;
    /** @type {Element[]} */
    const parts = path.slice(0, -1).map(([name, title], level) => {
      return makeTextButton(this.passes && !level ? say("whole_pass") : title, () => this.enter(name), signal);
    });
    if (!this.passes || path.length > 1) {
      parts.push(makeElement("strong", "hv-here", path.at(-1)?.[1] ?? "", { "aria-current": "true" }));
    }
    for (const child of [...this.pane.children]) if (child !== this.passes?.pane) child.remove();
    this.pane.append(...parts, this.note);
  }

  /**
   * Shows a note behind the path.
   * @param {string} text
   */
  showNote(text) {
    this.note.textContent = text;
  }

  /**
   * Returns whether an element is a part of the path that is replaced when another picture is shown.
   * @param {Element | null} element
   */
  hasCrumb(element) {
    return this.pane.contains(element) && element !== this.passes?.pane;
  }
}
