async () => {
  const root = document.querySelector(".hv-live .hv-player");
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const key = (name) => root.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  key("Home");
  await frame();
  const steps = [];
  const pane = root.querySelector(".hv-timeline");
  for (let i = 0; i < 60; i++) {
    if (pane.ariaValueNow === pane.ariaValueMax) key("Home");
    const start = performance.now();
    key("ArrowRight");
    // What is changed takes its place now, so that the time is that of the layout, too.
    root.getBoundingClientRect();
    steps.push(performance.now() - start);
    await frame();
  }
  const { left, top, width } = pane.querySelector(".hv-track").getBoundingClientRect();
  const point = (name, part) => {
    const place = { clientX: left + part * width, clientY: top + 9 };
    pane.dispatchEvent(new PointerEvent(name, { pointerId: 1, bubbles: true, ...place }));
  };
  pane.setPointerCapture = () => {};
  pane.hasPointerCapture = () => true;
  point("pointerdown", 0);
  await frame();
  const frames = [];
  for (let i = 1; i <= 120; i++) {
    const start = performance.now();
    point("pointermove", i / 120);
    await frame();
    frames.push(performance.now() - start);
  }
  return { steps, frames, shown: [window.shownAfter] };
}
