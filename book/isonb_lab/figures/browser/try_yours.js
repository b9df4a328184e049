// Try yours: a file or pasted vectors in, what an audit says first out. Nothing leaves the page.
(() => {
  "use strict";
  const MOST = 2000; // rows
  const digits = (value, count = 2) => value.toFixed(count);

  function rowsOf(found) {
    const { unrelated, gaussian, hubs, repeats } = found;
    const share = (value) => `${digits(100 * value, 0)}%`;
    const floor = unrelated.related === null
      ? `between ${digits(unrelated.low)} and ${digits(unrelated.high)}: ${unrelated.reason}`
      : `${digits(unrelated.high)}: ${unrelated.reason}`;
    const threshold = unrelated.related === null ? "needs labelled pairs; keep the order" : `above ${digits(unrelated.high)}, which 1% of ${unrelated.related ? "unrelated" : "random"} pairs pass`;
    return [
      ["rows and dimensions", `${found.n} × ${found.d}${found.left ? `; ${found.left} rows of NaN or zeros left out` : ""}`],
      ["floor", floor],
      ["threshold", threshold],
      ["mean cosine", `${digits(found.mean_cosine)} (a round cloud: ${digits(gaussian.mean_cosine)})`],
      ["use of space", `${digits(found.participation_ratio_unbiased, 1)} of ${found.d} directions; IsoScore ${digits(found.isoscore)} (a round cloud: ${digits(gaussian.isoscore)}), without the bias of few points ${digits(found.isoscore_unbiased)}`],
      ["hubs", hubs.rows.length ? `${hubs.rows.length} rows hold ${share(hubs.share)} of all places among the nearest; the first, row ${hubs.rows[0]}, is near ${Math.round(hubs.most)} rows` : "none"],
      ["repeated rows", repeats.length ? `${repeats.length}: ${repeats.slice(0, 5).join(", ")}${repeats.length > 5 ? ", ..." : ""}` : "none"],
    ];
  }

  function start(root) {
    root.dataset.live = "yes";
    const [file, area, button] = ["file", "pasted", "read"].map((name) => root.querySelector(`[name=${name}]`));
    const [said, body] = [root.querySelector(".isonb-told"), root.querySelector("tbody")];

    function show(read, name) {
      said.textContent = "Computing ...";
      body.replaceChildren();
      setTimeout(() => {
        try {
          const { rows, double } = read();
          const part = rows.n > MOST ? isonbCloud.cloud(rows.rows.slice(0, MOST)) : rows;
          const found = isonbAudit.audit(part, double);
          root.found = found;
          for (const [title, words] of rowsOf(found)) {
            const row = body.appendChild(document.createElement("tr"));
            const head = row.appendChild(document.createElement("th"));
            head.scope = "row";
            head.textContent = title;
            row.appendChild(document.createElement("td")).textContent = words;
          }
          said.textContent = rows.n > MOST ? `The first ${MOST} of ${rows.n} rows of ${name}. The command reads them all.` : `All of ${name}.`;
        } catch (error) {
          said.textContent = `${name}: ${error.message}`;
        }
      });
    }

    async function take(one) {
      const buffer = await one.arrayBuffer();
      const isNpy = one.name.toLowerCase().endsWith(".npy");
      show(() => (isNpy ? isonbVectors.npy(buffer) : isonbVectors.text(new TextDecoder().decode(buffer))), one.name);
    }

    file.addEventListener("change", () => file.files[0] && take(file.files[0]));
    button.addEventListener("click", () => show(() => isonbVectors.text(area.value), "what you pasted"));
    root.addEventListener("dragover", (event) => event.preventDefault());
    root.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
    });
  }
  for (const root of document.querySelectorAll(".isonb-try:not([data-live])")) start(root);
})();
