// Draws every chart of a page from the specification beside it, offline, and again when the colour theme changes.
(() => {
  "use strict";
  const bundle = new URL("../vega/vega.js", document.currentScript.src).href;
  const LEGIBLE = 0.62; // of its own size: a chart shrinks to this and no further, so that letters of 12 pixels keep 7.4
  const drawn = new Map(); // host element -> result of vegaEmbed

  const dark = () => document.documentElement.dataset.theme === "dark";

  function colours() {
    const text = dark() ? "#ced6dd" : "#222832";
    const line = dark() ? "#8b949e" : "#767676";
    const axis = { labelColor: text, titleColor: text, domainColor: line, tickColor: line, gridColor: line };
    return {
      axis, text: { color: text }, rule: { color: line },
      title: { color: text, subtitleColor: text },
      legend: { labelColor: text, titleColor: text },
      header: { labelColor: text, titleColor: text },
    };
  }

  function controls(result) { // the values of sliders and menus, so that a redraw keeps them
    const bound = result ? (result.vgSpec.signals || []).filter((signal) => signal.bind) : [];
    return bound.map((signal) => [signal.name, result.view.signal(signal.name)]);
  }

  // The colours of the palette, and the end of a ramp, that would drown on this ground: moved to 3 to 1 or more.
  const inks = () => (dark() ? { "#0072B2": "#2a85c4" } : { "#E69F00": "#b97d00", "#F0E442": "#988a00" });
  const ends = () => (dark() ? [0.22, 1] : [0, 0.9]);

  function reachEnds(node) { // a ramp that one chart names for itself
    for (const [key, value] of Object.entries(node ?? {})) {
      if (key === "scheme" && value === "viridis") node.scheme = { name: value, extent: ends() };
      else if (typeof value === "object" && key !== "datasets" && key !== "config") reachEnds(value);
    }
  }

  function specification(host) {
    let text = host.querySelector("script").textContent;
    for (const [from, to] of Object.entries(inks())) text = text.replaceAll(from, to);
    const spec = JSON.parse(text);
    for (const name of ["ordinal", "ramp"]) {
      const range = spec.config?.range?.[name];
      if (range?.scheme) range.extent = ends();
    }
    reachEnds(spec);
    return spec;
  }

  async function draw(host) {
    const spec = specification(host);
    const kept = controls(drawn.get(host));
    drawn.get(host)?.finalize();
    const result = await window.vegaEmbed(host.querySelector(".isonb-vega-view"), spec, {
      mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false, config: colours(),
      tooltip: { theme: dark() ? "dark" : "light", disableDefaultStyle: true },
    });
    const svg = host.querySelector(".isonb-vega-view svg"); // on a phone: smaller, but legible, and it scrolls
    svg.style.minWidth = `${Math.round(LEGIBLE * svg.getAttribute("width"))}px`;
    kept.forEach(([name, value]) => result.view.signal(name, value));
    if (kept.length) await result.view.runAsync();
    drawn.set(host, result);
    host.dataset.drawn = dark() ? "dark" : "light";
  }

  async function drawAll(hosts) {
    for (const host of hosts) {
      try {
        await draw(host);
      } catch (error) {
        host.querySelector(".isonb-vega-view").textContent = `This chart could not be drawn: ${error.message}`;
        console.error(error);
      }
    }
    document.documentElement.dataset.charts = dark() ? "dark" : "light";
  }

  document.addEventListener("DOMContentLoaded", () => { // a short word of code stays on one line
    document.querySelectorAll("code .pre").forEach((word) => word.classList.toggle("short", word.textContent.length <= 24));
  });

  document.addEventListener("DOMContentLoaded", () => {
    const hosts = document.querySelectorAll(".isonb-vega");
    if (!hosts.length) return;
    const script = document.createElement("script");
    script.src = bundle;
    script.onload = () => {
      let queue = drawAll(hosts);
      let last = dark();
      new MutationObserver(() => {
        if (dark() === last) return;
        last = dark();
        queue = queue.then(() => drawAll(hosts));
      }).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    };
    document.head.append(script);
  });
})();
