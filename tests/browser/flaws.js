// What is wrong in what is seen of a player in a page of its own, in words. For test_looks.py.
() => {
  const found = [];
  const seen = (part) => part.checkVisibility({ visibilityProperty: true });
  const box = (part) => part.getBoundingClientRect();
  const named = (part) => `${part.getAttribute("class") ?? part.tagName} "${part.textContent.trim().slice(0, 40)}"`;
  const clash = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  const within = (a, b, room) => a.left >= b.left + room && a.right <= b.right - room
    && a.top >= b.top && a.bottom <= b.bottom;
  /** The letters alone: without spaces around them, and without what is left free above and below. */
  const once = (ask) => {
    const known = new Map();
    return (part) => known.get(part) ?? known.set(part, ask(part)).get(part);
  };
  const ink = once((text) => {
    const [{ top, height }, matrix, letters] = [box(text), text.getScreenCTM(), text.textContent];
    const [first, last] = [letters.length - letters.trimStart().length, letters.trimEnd().length - 1];
    const ends = [first, last].flatMap((at) => [text.getStartPositionOfChar(at).x, text.getEndPositionOfChar(at).x]);
    const [left, right] = [Math.min(...ends), Math.max(...ends)].map((x) => matrix.a * x + matrix.e);
    return { left, right, top: top + height * .22, bottom: top + height * .8 };
  });
  const paths = ":scope > .hv-box, :scope > .hv-pin-box, :scope > .hv-plate-box, :scope > polygon";
  const around = once((text) => {
    const middle = ink(text).top / 2 + ink(text).bottom / 2;
    const holder = text.closest(".hv-pin, .hv-plate, .hv-node");
    // The table of a tensor stands on the box of its node: the one that the text is in.
    const boxes = holder ? [...holder.querySelectorAll(paths)] : [];
    return boxes.find((part) => box(part).top <= middle && middle <= box(part).bottom);
  });
  // A mixed colour comes in parts of 1; a blend of several is tests/tools/test_norm_colors.py's.
  const rgb = (color) => {
    const unit = color.startsWith("color(") ? 255 : 1;
    return color.startsWith("url") ? [] : [...color.matchAll(/(?<![\w-])[\d.]+/g)].map((part) => part * unit);
  };
  // The luminance and the contrast of WCAG.
  const linear = (part) => (part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
  const light = (color) => color.reduce((sum, part, i) => sum + linear(part / 255) * [.2126, .7152, .0722][i], 0);
  const paper = rgb(getComputedStyle(document.querySelector(".hv-player")).backgroundColor);
  const contrast = (text) => {
    const fill = around(text) ? rgb(getComputedStyle(around(text)).fill) : [];
    const [a, b] = [rgb(getComputedStyle(text).fill), fill.length === 3 ? fill : paper].map(light);
    return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  };
  for (const svg of [...document.querySelectorAll(".hv-live .hv-graph svg")].filter(seen)) {
    const texts = [...svg.querySelectorAll("text")].filter((text) => seen(text) && text.textContent.trim());
    texts.forEach((text, i) => {
      if (around(text) && !within(ink(text), box(around(text)), 1)) found.push(`out of its box: ${named(text)}`);
      if (!within(ink(text), box(svg), -1)) found.push(`out of the picture: ${named(text)}`);
      for (const other of texts.slice(i + 1)) {
        if (clash(ink(text), ink(other))) found.push(`on each other: ${named(text)}, ${named(other)}`);
      }
      if (contrast(text) < 4.5) found.push(`hard to see: ${named(text)}, ${contrast(text).toFixed(1)}`);
    });
  }
  const apart = "svg, svg *, .hv-heard, [title], .hv-track, .hv-track *";
  for (const part of [...document.querySelectorAll(`.hv-live .hv-player :not(${apart})`)].filter(seen)) {
    const { overflowX, overflowY } = getComputedStyle(part);
    const [wider, higher] = [part.scrollWidth - part.clientWidth > 1, part.scrollHeight - part.clientHeight > 1];
    const holds = part.matches("button, summary, kbd, td, th, .hv-card, .hv-part, .hv-panel, .hv-foot, .hv-help");
    if (wider && (overflowX === "hidden" || holds)) found.push(`cut at the side: ${named(part)}`);
    // The legend shows the entries of its first line, each as a whole.
    if (higher && overflowY === "hidden" && !part.matches(".hv-timeline, .hv-legend")) found.push(`cut below: ${named(part)}`);
    if (part.matches(".hv-frame, p, dl")) continue;
    const inside = [...part.children].filter((child) => {
      const { position, display } = getComputedStyle(child);
      return seen(child) && !child.matches(".hv-heard, dialog") && position !== "absolute" && display !== "inline";
    });
    const outside = overflowX === "hidden" ? inside.filter((child) => box(child).left < box(part).left - 1) : [];
    for (const child of outside) found.push(`cut at the start: ${named(child)}`);
    inside.forEach((child, i) => inside.slice(i + 1).forEach((other) => {
      if (clash(box(child), box(other))) found.push(`on each other: ${named(child)}, ${named(other)}`);
    }));
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page is wider than its window");
  return found;
}
