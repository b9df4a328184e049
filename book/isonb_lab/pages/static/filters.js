// Above a long table: a menu for each of the columns that it names, and a field to search it. Other rows are hidden.
(() => {
  "use strict";
  for (const root of document.querySelectorAll(".isonb-table[data-filters]:not([data-live])")) {
    root.dataset.live = "yes";
    const heads = [...root.querySelectorAll("thead th")].map((head) => head.textContent);
    const rows = [...root.querySelectorAll("tbody tr")];
    const texts = rows.map((row) => [...row.cells].map((cell) => cell.textContent));
    const [bar, count] = ["form", "output"].map((tag) => document.createElement(tag));
    bar.className = "isonb-filters";

    const labelled = (name, control) => {
      const label = document.createElement("label");
      label.append(`${name} `, control);
      bar.append(label);
      return control;
    };
    const menus = JSON.parse(root.dataset.filters).map((name) => {
      const column = heads.indexOf(name);
      const menu = labelled(name, document.createElement("select"));
      menu.add(new Option("all", ""));
      for (const value of new Set(texts.map((text) => text[column]))) menu.add(new Option(value, value));
      return [column, menu];
    });
    const search = labelled("search", document.createElement("input"));
    search.type = "search";

    const show = () => {
      const part = search.value.trim().toLowerCase();
      const fits = (text) =>
        menus.every(([column, menu]) => !menu.value || text[column] === menu.value) &&
        text.some((cell) => cell.toLowerCase().includes(part));
      rows.forEach((row, k) => { row.hidden = !fits(texts[k]); });
      count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
    };
    bar.addEventListener("input", show);
    bar.addEventListener("submit", (event) => event.preventDefault());
    bar.append(count);
    root.before(bar);
    show();
  }
})();
