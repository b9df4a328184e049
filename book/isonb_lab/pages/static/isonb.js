// Draws every chart of a page from the specification beside it, offline, and again when the colour theme changes.
(() => {
  "use strict";
  const bundle = new URL("../vega/vega.js", document.currentScript.src).href;
  const LEGIBLE = 0.75; // of its own size: a chart shrinks to this and no further, so that letters of 12 pixels keep 9
  const SHRINKABLE = 0.88; // a chart that fits at this size stays as it was drawn
  const CROWDED = 0.75; // of its own width: panels that would get less stand below each other
  const NARROWEST = 85; // pixels of a panel
  const SMALLEST = 0.65; // of its size: what would be smaller even with narrow panels scrolls with its own
  const WIDE = 1400; // pixels of a window from which a picture grows beyond its own size, as far as its place goes
  const GROWN = 1.7;
  const TALL = 640; // pixels of height to which it grows
  const LEVEL = 12; // pixels between titles that belong to one row of panels
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

  // The colours of the palette, and the end of a ramp, that would drown on this ground: moved to 3 to 1 or more. And the
  // grey of what can't be tested, which would shine.
  const inks = () => (dark() ? { "#0072B2": "#2a85c4", "#c9c9c9": "#5a626a" } : { "#E69F00": "#b97d00", "#F0E442": "#988a00" });
  const ends = () => (dark() ? [0.22, 1] : [0, 0.9]);

  function reachEnds(node) { // a ramp that one chart names for itself
    for (const [key, value] of Object.entries(node ?? {})) {
      if (key === "scheme" && value === "viridis") node.scheme = { name: value, extent: ends() };
      else if (typeof value === "object" && key !== "datasets" && key !== "config") reachEnds(value);
    }
  }

  function covered(result) { // what a chart reveals is covered again when another of its controls moves
    const bound = (result.vgSpec.signals || []).filter((signal) => signal.bind);
    const boxes = bound.filter((signal) => signal.bind.input === "checkbox");
    if (!boxes.length) return;
    const cover = () => boxes.forEach((box) => result.view.signal(box.name, false).runAsync());
    bound.filter((signal) => !boxes.includes(signal)).forEach((signal) => result.view.addSignalListener(signal.name, cover));
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

  // A chart that is too wide for its place: fewer panels in a row, then narrower ones, and letters keep their size.
  function rearranged(spec, columns, side) {
    if (Array.isArray(spec)) return spec.map((one) => rearranged(one, columns, side));
    if (!spec || typeof spec !== "object") return spec;
    const out = { ...spec };
    for (const key of ["concat", "vconcat"]) if (out[key]) out[key] = rearranged(out[key], columns, side);
    if (out.hconcat) {
      const { hconcat, ...rest } = out;
      return { ...rest, concat: rearranged(hconcat, columns, side), columns };
    }
    if (!out.facet || out.facet.row) return out;
    const even = side % columns ? 1 : columns; // no empty place with an axis at the end of one row
    return { ...out, facet: out.facet.column ?? out.facet, columns: out.facet.column ? even : columns };
  }

  function narrowed(node, factor) { // every width that a chart names, and what it places by the pixel across
    if (Array.isArray(node)) return node.map((one) => narrowed(one, factor));
    if (!node || typeof node !== "object") return node;
    const least = (width) => Math.min(width, Math.max(NARROWEST, Math.floor(width * factor)));
    return Object.fromEntries(Object.entries(node).map(([key, value]) => {
      if (["data", "datasets", "params", "transform"].includes(key)) return [key, value];
      if (["width", "continuousWidth"].includes(key) && typeof value === "number") return [key, least(value)];
      if (["x", "x2"].includes(key) && typeof value?.value === "number") return [key, { ...value, value: value.value * factor }];
      if (key === "legend" && value?.columns > 2) return [key, { ...narrowed(value, factor), columns: 2 }];
      return [key, narrowed(value, factor)];
    }));
  }

  function fixed(spec) { // a chart that says so, and a coloured table: narrower cells could not hold their numbers
    const marks = (spec.layer ?? []).map((one) => one.mark?.type ?? one.mark);
    const cells = (spec.layer ?? []).find((one) => (one.mark?.type ?? one.mark) === "rect")?.encoding ?? spec.encoding;
    const table = marks.includes("text") && ["x", "y"].every((axis) => ["nominal", "ordinal"].includes(cells?.[axis]?.type));
    return spec.usermeta?.keepsWidth || table;
  }

  function panels(svg) { // how many there are, and how many stand side by side at most
    const plots = [...svg.querySelectorAll(".role-scope > g > path.background")].filter((plot) => !plot.closest(".role-legend"));
    const boxes = plots.map((plot) => plot.getBoundingClientRect());
    const beside = (one, box) => Math.abs(one.top - box.top) < 0.5 * Math.min(one.height, box.height);
    const row = (one) => boxes.filter((box) => beside(one, box)).map((box) => box.left).sort((a, b) => a - b);
    const apart = (lefts) => lefts.filter((left, k) => !k || left - lefts[k - 1] > 15).length;
    const shown = boxes.filter((box) => box.width > 15);
    return { all: shown.length, side: Math.max(1, ...shown.map((one) => apart(row(one)))) };
  }

  async function fitted(host, spec, embed) {
    const room = host.clientWidth;
    const width = (result) => Number(result.view.container().querySelector("svg").getAttribute("width"));
    let result = await embed(spec);
    const first = width(result);
    if (!room || first * SHRINKABLE <= room || fixed(spec)) return result;
    const { all, side } = panels(result.view.container().querySelector("svg"));
    const most = Math.max(1, Math.floor((room * side) / (CROWDED * first)));
    const columns = all % most && all < 2 * most ? 1 : most; // two and a lone third: one column
    const stacked = narrowed(rearranged(spec, columns, side), 1);
    const again = async (next) => { result.finalize(); result = await embed(next); return width(result); };
    const before = await again(stacked);
    if (before <= room || (spec.hconcat ?? spec.concat)?.every(fixed)) return result; // tables below each other
    const tried = room / before;
    const after = await again(narrowed(stacked, tried));
    if (after <= room) return result;
    const shown = (before - after) / (1 - tried); // what is not a panel keeps its width
    const last = after < before ? await again(narrowed(stacked, Math.max(0.2, 1 - (before - room) / shown))) : after;
    if (last > room / SMALLEST) await again(stacked); // too many panels in a row, or words that are wider: it scrolls
    else if (last > 0.97 * after && last > room) await again(narrowed(stacked, tried));
    return result;
  }

  function lined(svg) { // titles of panels in one row stand at one height, whatever the axes below them need
    const titles = [...svg.querySelectorAll(".role-title-text text")].map((text) => ({ text, at: text.getBoundingClientRect() }));
    const scale = svg.viewBox.baseVal.width / svg.getBoundingClientRect().width;
    for (const { text, at } of titles) {
      const row = titles.filter((other) => Math.abs(other.at.bottom - at.bottom) < LEVEL);
      const up = (at.bottom - Math.min(...row.map((other) => other.at.bottom))) * scale;
      if (up > 0.5) text.parentNode.setAttribute("transform", `translate(0,${-up})`);
    }
  }

  async function draw(host) {
    const kept = controls(drawn.get(host));
    drawn.get(host)?.finalize();
    const view = host.querySelector(".isonb-vega-view");
    const result = await fitted(host, specification(host), (spec) => window.vegaEmbed(view, spec, {
      mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false, config: colours(),
      tooltip: { theme: dark() ? "dark" : "light", disableDefaultStyle: true },
    }));
    const svg = view.querySelector("svg"); // what is still too wide: smaller, but legible, and it scrolls
    svg.style.minWidth = `${Math.round(LEGIBLE * svg.getAttribute("width"))}px`;
    const grown = Math.min(GROWN, TALL / svg.getAttribute("height"));
    if (window.innerWidth >= WIDE && grown > 1) svg.style.width = `${Math.round(grown * svg.getAttribute("width"))}px`;
    lined(svg);
    kept.forEach(([name, value]) => result.view.signal(name, value));
    if (kept.length) await result.view.runAsync();
    covered(result);
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
    document.querySelectorAll("dt.sig em.sig-param").forEach((name) => { // and its comma, or the last bracket, with a name
      const next = name.nextSibling;
      if (next?.nodeType === Node.TEXT_NODE && next.data.startsWith(",")) {
        next.data = next.data.slice(1);
        name.append(",");
      } else if (next?.classList?.contains("sig-paren")) name.append(next);
    });
  });

  document.addEventListener("DOMContentLoaded", () => { // where a page has no number, its pictures have none
    const counted = [...document.querySelectorAll(".caption-number")];
    counted.filter((number) => /^Fig\. \d+\s*$/.test(number.textContent)).forEach((number) => number.remove());
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
      let across = window.innerWidth;
      window.addEventListener("resize", () => { // a phone that is turned
        if (Math.abs(window.innerWidth - across) < 60) return;
        across = window.innerWidth;
        queue = queue.then(() => drawAll(hosts));
      });
    };
    document.head.append(script);
  });
})();
