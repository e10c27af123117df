// A player on a slide keeps its keys while it has the focus, as everywhere; a swipe moves its picture, and no slide.
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

// A slide with more than it has room for is set smaller, step by step, down to letters of 18 pixels.
const FITTING = ["compact", "tight", "dense"];

/** @param {Element} slide */
function fit(slide) {
  const steps = FITTING.values();
  while (slide.scrollHeight > slide.clientHeight || slide.scrollWidth > slide.clientWidth) {
    const { value, done } = steps.next();
    if (done) return;
    slide.classList.add(value);
  }
}

Reveal.on("ready", ({ currentSlide }) => fit(currentSlide));
Reveal.on("slidechanged", ({ currentSlide }) => fit(currentSlide));
