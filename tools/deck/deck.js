// A player on a slide keeps its keys while it has the focus, as everywhere; a swipe on it is its own, too.
for (const player of document.querySelectorAll(".hv-output")) player.dataset.preventSwipe = "";

Reveal.initialize({
  width: 1280,
  height: 720,
  margin: 0,
  center: false,
  hash: true,
  slideNumber: "c/t",
  controls: false,
  transition: "none",
  plugins: [RevealNotes],
});
