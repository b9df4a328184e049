// The search: a page with the words in its prose comes before one that has them in its code alone, and each result shows
// where they stand. Sphinx puts this file into its own script; the build puts PROSE, the paragraphs by page, into the index.
;(() => { // what stands before it doesn't end its last line
  "use strict";
  const asked = (new URLSearchParams(location.search).get("q") ?? "").toLowerCase().match(/[\p{L}\d]+(\.\d+)?/gu) ?? [];
  const times = (text, word) => text.toLowerCase().split(word).length - 1;
  const held = (text) => asked.filter((word) => times(text, word)).length;

  Scorer.score = ([page, , anchor, , score]) => {
    const text = PROSE[page] ?? "";
    const entry = anchor?.startsWith("#term-") ? 20 : 0; // of the glossary: after the page that teaches the word
    return score - entry + Math.min(4, Math.log2(1 + asked.reduce((sum, word) => sum + times(text, word), 0)));
  };

  function excerpt(page) { // of the paragraph with most of the words, from just before the first of them
    const lines = (PROSE[page] ?? "").split("\n");
    const best = lines.reduce((one, other) => (held(other) > held(one) ? other : one), lines[0]);
    const places = asked.map((word) => best.toLowerCase().indexOf(word)).filter((at) => at >= 0);
    const from = Math.max(0, Math.min(...places, best.length) - 80);
    const start = from && places.length ? best.indexOf(" ", from) + 1 : 0;
    return `${start ? "… " : ""}${best.slice(start, start + 240)}${best.length > start + 240 ? " …" : ""}`;
  }

  function tell(list) {
    for (const link of list.querySelectorAll("li > a:not([data-told])")) {
      link.dataset.told = "";
      const words = document.createElement("p");
      words.className = "context";
      words.textContent = excerpt(link.getAttribute("href").replace(/\.html.*/, ""));
      link.parentElement.append(words);
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    const list = document.getElementById("search-results");
    if (list) new MutationObserver(() => tell(list)).observe(list, { childList: true, subtree: true });
  });
})();
