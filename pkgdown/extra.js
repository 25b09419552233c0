// What the pages do: search, the list "On this page", and buttons that copy code. No libraries but
// Bootstrap, which is in deps/; the index of the search is search-index.js, so that the site also
// works from files.

document.addEventListener("DOMContentLoaded", function () {
  // ---- on this page
  const toc = document.getElementById("toc");
  if (toc) {
    document.querySelectorAll("main h2, main h3").forEach(function (heading) {
      if (heading.hasAttribute("data-toc-skip")) return;
      const holder = heading.id ? heading : heading.closest("[id]");
      if (!holder || holder.id === "main") return;
      const link = document.createElement("a");
      link.href = "#" + holder.id;
      link.textContent = heading.textContent.trim();
      if (heading.tagName === "H3") link.className = "inner";
      toc.appendChild(link);
    });
    if (toc.querySelectorAll("a").length === 0) toc.remove();
  }

  // ---- copy code, without what it prints
  document.querySelectorAll("div.sourceCode").forEach(function (block) {
    if (!navigator.clipboard) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", function () {
      const text = block.querySelector("pre").textContent.replace(/^#>.*\n?/gm, "");
      navigator.clipboard.writeText(text).then(function () { button.textContent = "Copied"; });
    });
    block.appendChild(button);
  });

  // ---- wide tables scroll by themselves
  document.querySelectorAll("main table").forEach(function (table) {
    const box = document.createElement("div");
    box.className = "wide";
    table.parentNode.insertBefore(box, table);
    box.appendChild(table);
  });

  // ---- search
  const input = document.getElementById("search-input");
  if (!input) return;
  const root = input.dataset.searchIndex.replace(/search\.json$/, "");
  let loading = false;
  function load() {
    if (loading) return;
    loading = true;
    const script = document.createElement("script");
    script.src = root + "search-index.js";
    script.onload = show;
    document.head.appendChild(script);
  }
  const results = document.createElement("div");
  results.id = "search-results";
  results.hidden = true;
  input.form.appendChild(results);
  input.form.addEventListener("submit", function (event) { event.preventDefault(); });

  // All words must occur; titles count most, then headings, then text.
  function score(entry, words) {
    let sum = 0;
    for (const word of words) {
      const own = (entry.title.includes(word) ? 8 : 0) + (entry.what.includes(word) ? 5 : 0) +
        (entry.text.includes(word) ? 1 : 0);
      if (!own) return 0;
      sum += own;
    }
    return sum;
  }
  function show() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    results.hidden = words.length === 0 || input.value.trim().length < 2;
    if (results.hidden || !window.searchIndex) return;
    const found = window.searchIndex.map(function (entry) {
      return { entry: entry, score: score(entry.lower, words) };
    }).filter(function (x) { return x.score > 0; });
    found.sort(function (a, b) { return b.score - a.score; });
    results.replaceChildren();
    if (!found.length) {
      const none = document.createElement("p");
      none.textContent = "Nothing found.";
      results.appendChild(none);
    }
    found.slice(0, 15).forEach(function (x, i) {
      const link = document.createElement("a");
      link.href = root + x.entry.path;
      if (i === 0) link.className = "chosen";
      const title = document.createElement("b");
      title.textContent = x.entry.title;
      link.appendChild(title);
      if (x.entry.what && x.entry.what !== x.entry.title)
        link.append(" \u203a " + x.entry.what);
      const about = document.createElement("small");
      about.textContent = x.entry.text.slice(0, 120);
      link.appendChild(about);
      results.appendChild(link);
    });
  }
  input.addEventListener("focus", load);
  input.addEventListener("input", show);
  input.addEventListener("keydown", function (event) {
    const links = Array.from(results.querySelectorAll("a"));
    const at = links.findIndex(function (link) { return link.classList.contains("chosen"); });
    if (event.key === "Enter" && at >= 0) window.location.href = links[at].href;
    if (event.key === "Escape") results.hidden = true;
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp" || at < 0) return;
    event.preventDefault();
    const next = Math.min(links.length - 1, Math.max(0, at + (event.key === "ArrowDown" ? 1 : -1)));
    links[at].classList.remove("chosen");
    links[next].classList.add("chosen");
    links[next].scrollIntoView({ block: "nearest" });
  });
  document.addEventListener("click", function (event) {
    if (!input.form.contains(event.target)) results.hidden = true;
  });
});
