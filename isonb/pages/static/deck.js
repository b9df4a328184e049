// Slides: arrows, space and page keys go on and back; charts grow or shrink to the room that their slide leaves them.
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

  function fit() {
    for (const figure of document.querySelectorAll("figure")) {
      const chart = figure.querySelector(".isonb-vega");
      chart.style.zoom = 1;
      const view = chart.querySelector(".isonb-vega-view").getBoundingClientRect();
      const slide = figure.parentElement;
      const taken = [...slide.children, ...figure.children].filter((part) => part !== figure && part !== chart)
        .reduce((sum, part) => sum + (part.tagName === "FOOTER" ? 0 : part.getBoundingClientRect().height), 0);
      const room = [0.88 * innerWidth / view.width, (0.79 * innerHeight - taken) / view.height];
      chart.style.zoom = Math.max(0.3, Math.min(1.7, ...room));
    }
  }
  new MutationObserver(fit).observe(document.documentElement, { attributes: true, attributeFilter: ["data-charts"] });
  addEventListener("resize", fit);
})();
