// The dial: a slider turns a cloud of sentences; dots move on three curves and the nearest sentences change.
(() => {
  "use strict";
  const SPACE = "http://www.w3.org/2000/svg";
  const put = (parent, kind, attributes, text) => {
    const node = document.createElementNS(SPACE, kind);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    return parent.appendChild(node);
  };
  const [WIDTH, HEIGHT, LEFT, TOP, BOTTOM] = [420, 300, 40, 12, 34];

  const start = (root) => {
    root.dataset.live = "yes";
    const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const [encoder, sentence] = root.querySelectorAll("select");
    const slider = root.querySelector("input");
    const [cloud, curves] = root.querySelectorAll("svg");
    const list = root.querySelector("ol");

    const points = data.texts.map((text, row) => {
      const pick = data.picks.indexOf(row);
      const circle = put(cloud, "circle", { r: pick < 0 ? 16 : 26, class: `topic-${data.topics[row]}` });
      put(circle, "title", {}, text);
      if (pick >= 0) {
        circle.classList.add("isonb-pickable");
        circle.addEventListener("click", () => { sentence.value = pick; show(); });
      }
      return circle;
    });
    const zero = put(cloud, "path", { class: "isonb-origin" });

    const across = (place) => LEFT + (place + 0.5) * (WIDTH - LEFT) / data.places.length;
    const up = (score) => TOP + (data.high - score) / (data.high - data.low) * (HEIGHT - TOP - BOTTOM);
    const drawCurves = () => {
      curves.replaceChildren();
      for (let tick = Math.ceil(data.low * 10) / 10; tick <= data.high; tick += 0.1) {
        put(curves, "path", { d: `M${LEFT} ${up(tick)}H${WIDTH}`, class: "isonb-grid" });
        put(curves, "text", { x: LEFT - 6, y: up(tick) + 4, "text-anchor": "end" }, tick.toFixed(1));
      }
      data.places.forEach((place, at) => {
        put(curves, "text", { x: across(at), y: HEIGHT - 14, "text-anchor": "middle" }, place.tick);
      });
      put(curves, "text", { x: (LEFT + WIDTH) / 2, y: HEIGHT, "text-anchor": "middle" }, "place of the dial, p");
      return data.encoders[encoder.value].curves.map((curve, kind) => {
        const line = curve.map(([score], at) => `${across(at)} ${up(score)}`);
        const low = curve.map(([, low], at) => `${across(at)} ${up(low)}`).reverse();
        const high = curve.map(([, , high], at) => `${across(at)} ${up(high)}`);
        put(curves, "path", { d: `M${high.join("L")}L${low.join("L")}Z`, class: `isonb-band curve-${kind}` });
        put(curves, "path", { d: `M${line.join("L")}`, class: `isonb-line curve-${kind}` });
        return put(curves, "circle", { r: 6, class: `isonb-dot curve-${kind}` });
      });
    };
    let dots = drawCurves();

    const show = () => {
      const [chosen, place] = [data.encoders[encoder.value], Number(slider.value)];
      const turn = chosen.turns[place];
      points.forEach((point, row) => {
        point.setAttribute("cx", turn.x[row]);
        point.setAttribute("cy", -turn.y[row]);
        point.classList.toggle("isonb-picked", row === data.picks[sentence.value]);
      });
      zero.setAttribute("d", `M${turn.zero[0] - 40} ${-turn.zero[1]}h80M${turn.zero[0]} ${-turn.zero[1] - 40}v80`);
      dots.forEach((dot, kind) => {
        dot.setAttribute("cx", across(place));
        dot.setAttribute("cy", up(chosen.curves[kind][place][0]));
      });
      root.querySelectorAll(".isonb-score").forEach((node, kind) => {
        node.textContent = chosen.curves[kind][place][0].toFixed(2);
      });
      root.querySelector("output").textContent = data.places[place].name;
      root.querySelector(".isonb-told").textContent =
        `IsoScore ${turn.isoscore.toFixed(2)}, mean cosine ${turn.mean_cosine.toFixed(2)}`;
      root.querySelector(".isonb-chosen").textContent = data.texts[data.picks[sentence.value]];
      list.replaceChildren(...turn.near[sentence.value].map((row) => {
        const item = document.createElement("li");
        item.textContent = data.texts[row];
        return item;
      }));
    };
    encoder.addEventListener("input", () => { dots = drawCurves(); show(); });
    slider.addEventListener("input", show);
    sentence.addEventListener("input", show);
    show();
  };
  for (const root of document.querySelectorAll(".isonb-dial:not([data-live])")) start(root);
})();
