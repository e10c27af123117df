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

// A slide with more than it has room for is set smaller, step by step: its pictures, and then letters down to 18 pixels.
const FITTING = ["compact", "tight", "dense"];
const [LOWEST_PICTURE, SHRINKING] = [260, 0.94];

/** @param {Element} slide */
const isTooFull = (slide) => slide.scrollHeight > slide.clientHeight || slide.scrollWidth > slide.clientWidth;

/** @param {Element} slide */
function fit(slide) {
  for (const picture of slide.querySelectorAll(".jp-RenderedHTML > img")) {
    while (isTooFull(slide) && picture.height > LOWEST_PICTURE) picture.style.width = `${picture.width * SHRINKING}px`;
  }
  const steps = FITTING.values();
  while (isTooFull(slide)) {
    const { value, done } = steps.next();
    if (done) return;
    slide.classList.add(value);
  }
}

Reveal.on("ready", ({ currentSlide }) => fit(currentSlide));
Reveal.on("slidechanged", ({ currentSlide }) => fit(currentSlide));
