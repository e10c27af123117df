async (root) => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const key = (name) => root.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  key("Home");
  await frame();
  let count = 0;
  const observer = new MutationObserver((found) => (count += found.length));
  observer.observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
  const counts = [];
  for (let i = 0; i < 12; i++) {
    count = 0;
    key("ArrowRight");
    await frame();
    counts.push(count);
  }
  observer.disconnect();
  return counts;
}
