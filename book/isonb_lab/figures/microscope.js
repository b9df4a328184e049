// The sentence microscope: a menu and a slider exchange the text of the lists that the page already holds.
(() => {
  "use strict";
  for (const root of document.querySelectorAll(".isonb-microscope:not([data-live])")) {
    root.dataset.live = "yes";
    const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const [menu, slider] = [root.querySelector("select"), root.querySelector("input")];
    const panels = [...root.querySelectorAll("section")];

    const fill = (item, [text, cosine, fresh, kin]) => {
      const [number, words] = item.querySelectorAll("span");
      const [mark, kind] = item.querySelectorAll("em");
      number.textContent = cosine.toFixed(2);
      words.textContent = data.texts[text];
      mark.hidden = !fresh;
      kind.hidden = !kin;
      kind.textContent = data.kinds[kin];
      item.classList.toggle("isonb-new", Boolean(fresh));
    };

    const show = () => {
      const lists = data.lists[slider.value][menu.value];
      root.querySelector(".isonb-chosen").textContent = menu.selectedOptions[0].textContent;
      root.querySelector("output").textContent = slider.value;
      panels.forEach((panel, view) => {
        panel.querySelectorAll("li").forEach((item, rank) => fill(item, lists[view][rank]));
      });
      const told = panels.map((panel, view) => {
        const fresh = lists[view].filter((entry) => entry[2]).length;
        return `${panel.getAttribute("aria-label")} ${fresh}`;
      });
      root.querySelector(".isonb-told").textContent =
        `Neighbours that the plain list of layer ${slider.value} lacks: ${told.slice(1).join(", ")}.`;
    };
    menu.addEventListener("input", show);
    slider.addEventListener("input", show);
    show();
  }
})();
