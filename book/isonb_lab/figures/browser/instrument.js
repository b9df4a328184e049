// The instrument: a cloud's bars, the arrow of its mean, scores, readers and neighbours, while a slider turns it.
(() => {
  "use strict";
  const SPACE = "http://www.w3.org/2000/svg";
  const [WIDTH, HEIGHT, LEFT, LOW, HIGH] = [420, 190, 44, -3, 2]; // of the bars: pixels, powers of ten
  const NEAR = 5;
  const put = (parent, kind, attributes, text) => {
    const node = parent.appendChild(document.createElementNS(SPACE, kind));
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };

  function drawBars(svg, variances, d) { // each over the mean of all d, on a logarithmic scale: a round cloud lies on 1
    svg.replaceChildren();
    const usual = variances.reduce((sum, value) => sum + value, 0) / d;
    const up = (power) => (HIGH - Math.min(HIGH, Math.max(LOW, power))) / (HIGH - LOW) * (HEIGHT - 34) + 8;
    for (let power = LOW; power <= HIGH; power++) {
      put(svg, "path", { d: `M${LEFT} ${up(power)}H${WIDTH}`, class: power ? "isonb-grid" : "isonb-round" });
      put(svg, "text", { x: LEFT - 6, y: up(power) + 4, "text-anchor": "end" }, power > -3 ? 10 ** power : "");
    }
    const wide = (WIDTH - LEFT) / d;
    const path = Array.from(variances, (value, k) => `M${LEFT + (k + 0.5) * wide} ${up(LOW)}V${up(Math.log10(value / usual))}`);
    put(svg, "path", { d: path.join(""), class: "isonb-bar", "stroke-width": 0.8 * wide });
    put(svg, "text", { x: WIDTH, y: up(0) - 5, "text-anchor": "end" }, "round");
    put(svg, "text", { x: (WIDTH + LEFT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, `${d} directions, the widest first`);
  }

  function drawMean(svg, size, radius) { // the cloud as a circle of its radius, the origin as a cross
    svg.replaceChildren();
    const scale = 150 / (size + 2 * radius);
    const [middle, round] = [20 + (size + radius) * scale, radius * scale];
    put(svg, "circle", { cx: middle, cy: 80, r: round, class: "isonb-ball" });
    put(svg, "path", { d: `M14 80h12M20 74v12`, class: "isonb-origin" });
    if (size * scale > 4) put(svg, "path", { d: `M20 80H${20 + size * scale}m-7 -5l7 5l-7 5`, class: "isonb-arrow" });
  }

  function start(root) {
    root.dataset.live = "yes";
    const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const [encoder, sentence] = ["encoder", "sentence"].map((name) => root.querySelector(`[name=${name}]`));
    const [token, off, slider] = ["token", "off", "p"].map((name) => root.querySelector(`[name=${name}]`));
    const [bars, mean] = root.querySelectorAll("svg");
    const spectra = new Map();

    const spectrum = () => { // once a cloud: a turn is cheap then
      const chosen = data.clouds[encoder.value];
      const which = token.checked && chosen.without ? "without" : "vectors";
      const key = `${encoder.value} ${which}`;
      if (!spectra.has(key)) {
        const found = isonbCloud.spectrum(isonbCloud.decoded(chosen[which], chosen.type, chosen.n, chosen.width));
        spectra.set(key, { ...found, d: chosen.d, topics: isonbReaders.topicSums(found.points, data.topics) });
      }
      token.disabled = !chosen.without;
      return spectra.get(key);
    };

    const read = (name, value) => {
      const node = root.querySelector(`[data-reading="${name}"]`);
      node.dataset.value = value;
      node.textContent = value.toFixed(2);
    };

    const show = () => {
      const found = spectrum();
      const after = isonbCloud.turned(found.variances, Number(slider.value));
      const units = isonbCloud.directions(found, after.factors, off.checked ? 0 : 1);
      const total = after.variances.reduce((sum, value) => sum + value, 0);
      drawBars(bars, after.variances, Math.min(found.d, found.n - 1));
      drawMean(mean, off.checked ? 0 : isonbCloud.length(found.mean), Math.sqrt(total));
      read("isoscore", isonbCloud.isoscore(after.variances, found.d));
      read("mean_cosine", isonbCloud.meanCosine(units));
      read("cosine", isonbReaders.cosine(units, data.twins, data.strangers));
      read("search", isonbReaders.search(units, data.twins));
      read("classifier", isonbReaders.classifier(found.points, after, data.topics, found.topics));
      root.querySelector("output").textContent = Number(slider.value).toFixed(2);
      root.querySelector("ol").replaceChildren(...isonbCloud.nearest(units, Number(sentence.value), NEAR).map(([row, value]) => {
        const item = document.createElement("li");
        item.textContent = `${value.toFixed(2)}  ${data.texts[row]}`;
        Object.assign(item.dataset, { row, value });
        return item;
      }));
    };
    for (const control of [encoder, sentence, token, off, slider]) control.addEventListener("input", show);
    show();
  }
  for (const root of document.querySelectorAll(".isonb-instrument:not([data-live])")) start(root);
})();
