// Slides: arrows, space and page keys go on and back; charts and words grow or shrink to the room that their slide has.
(() => {
  "use strict";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = () => { document.documentElement.dataset.theme = dark.matches ? "dark" : "light"; };
  theme();
  dark.addEventListener("change", theme);

  const step = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 };
  document.addEventListener("keydown", (event) => {
    if (!step[event.key] || event.target.closest("input, select, a")) return;
    const slides = [...document.querySelectorAll("section")];
    const now = slides.findIndex((slide) => slide.getBoundingClientRect().bottom > innerHeight / 2);
    event.preventDefault();
    slides[Math.max(0, Math.min(slides.length - 1, now + step[event.key]))].scrollIntoView();
  });

  const LARGEST = { words: 2.6, chart: 2.6 }; // times the size of the page's letters, of the chart as it was drawn
  const height = (parts) => parts.reduce((sum, part) => sum + part.getBoundingClientRect().height, 0);

  function fit() {
    for (const slide of document.querySelectorAll("section")) {
      const figure = slide.querySelector("figure");
      const words = [...slide.children].filter((part) => part !== figure && part.tagName !== "FOOTER");
      slide.style.fontSize = "";
      if (figure) {
        const chart = figure.querySelector(".isonb-vega");
        chart.style.zoom = 1;
        const view = chart.querySelector(".isonb-vega-view").getBoundingClientRect();
        const controls = chart.getBoundingClientRect().height - view.height;
        const room = [0.9 * innerWidth / view.width, (0.86 * innerHeight - height(words)) / (view.height + controls)];
        chart.style.zoom = Math.max(0.3, Math.min(LARGEST.chart, ...room));
        continue;
      }
      let [low, high] = [0.5, LARGEST.words];
      while (high - low > 0.02) { // the largest letters with which all words fit
        const size = (low + high) / 2;
        slide.style.fontSize = `${size}em`;
        const fits = slide.scrollWidth <= slide.clientWidth && slide.getBoundingClientRect().height <= innerHeight + 0.5;
        [low, high] = fits ? [size, high] : [low, size];
      }
      slide.style.fontSize = `${low}em`;
    }
  }
  new MutationObserver(fit).observe(document.documentElement, { attributes: true, attributeFilter: ["data-charts"] });
  addEventListener("resize", fit);
  addEventListener("load", () => (window.MathJax?.startup?.promise ?? Promise.resolve()).then(fit)
    .then(() => { document.documentElement.dataset.fitted = ""; }));
})();
