"use strict";
(() => {
  const PAGE = 100;
  const said = document.querySelector("[data-said]");
  const say = (text) => { said.textContent = text; };
  const element = (name, text, attributes) => {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    return made;
  };

  // -- colours ---------------------------------------------------------------------------
  const themes = ["", "light", "dark"];
  const names = { "": "as the system", light: "light", dark: "dark" };
  const stored = () => { try { return localStorage.getItem("optgap-theme") || ""; } catch { return ""; } };
  const themed = document.querySelector("[data-theme-button]");
  let theme = themes.includes(stored()) ? stored() : "";
  const paint = () => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    themed.querySelector("span").textContent = names[theme];
  };
  themed.hidden = false;
  themed.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem("optgap-theme", theme); } catch { /* a file may have no storage */ }
    paint();
    say("Colours: " + names[theme]);
  });
  paint();

  // -- tables ----------------------------------------------------------------------------
  const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const read = (cell) => {
    const text = cell.dataset.v ?? cell.textContent.replaceAll(",", "");
    return text === "" ? NaN : Number(text);
  };

  function sortable(box) {
    const table = box.querySelector("table");
    const body = table.tBodies[0];
    const heads = Array.from(table.tHead.rows[0].cells);
    const all = Array.from(table.tBodies).flatMap((part) => Array.from(part.rows));
    const caption = table.caption.textContent;
    const keys = new Map();
    let rows = all;
    let page = 0;
    let size = PAGE;
    let column = -1;
    let down = false;
    let wanted = "";

    const numbers = heads.flatMap((head, k) => (head.className === "n" ? [k] : []));
    Array.from(table.tBodies).slice(1).forEach((part) => part.remove());

    const count = element("span", "", { "data-count": "" });
    const show = () => {
      const pages = Math.max(1, Math.ceil(rows.length / size));
      page = Math.min(Math.max(page, 0), pages - 1);
      const first = page * size;
      const last = Math.min(first + size, rows.length);
      const shown = rows.slice(first, last);
      for (const row of shown) for (const k of numbers) row.cells[k].className = "n";
      body.replaceChildren(...shown);
      const of = rows.length === all.length ? "" : ` (of ${all.length.toLocaleString("en")})`;
      count.textContent = rows.length
        ? `rows ${(first + 1).toLocaleString("en")}–${last.toLocaleString("en")} of ${rows.length.toLocaleString("en")}${of}`
        : `no row matches${of}`;
      back.disabled = page === 0;
      next.disabled = page >= pages - 1;
    };

    const ordered = () => {
      const base = wanted
        ? all.filter((row) => row.textContent.toLowerCase().includes(wanted))
        : all.slice();
      if (column >= 0) {
        const sign = down ? -1 : 1;
        const numeric = heads[column].className === "n";
        if (!keys.has(column)) {
          keys.set(column, new Map(all.map((row) => {
            const cell = row.cells[column];
            return [row, numeric ? read(cell) : cell.textContent];
          })));
        }
        const key = keys.get(column);
        base.sort((a, b) => {
          const x = key.get(a);
          const y = key.get(b);
          const blank = (numeric ? Number.isNaN(x) : x === "") - (numeric ? Number.isNaN(y) : y === "");
          if (blank) return blank; // what is missing comes last either way
          if (numeric) return Number.isNaN(x) ? 0 : sign * (x - y);
          return sign * words.compare(x, y);
        });
      }
      rows = base;
      page = 0;
      show();
    };

    heads.forEach((head, k) => {
      const button = element("button", head.textContent, { type: "button" });
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        down = column === k ? !down : false;
        column = k;
        heads.forEach((other, j) => other.setAttribute(
          "aria-sort", j !== k ? "none" : down ? "descending" : "ascending"));
        ordered();
        say(`${caption}: sorted by ${button.textContent}, ${down ? "descending" : "ascending"}`);
      });
    });

    const back = element("button", "Previous", { type: "button" });
    const next = element("button", "Next", { type: "button" });
    back.addEventListener("click", () => { page -= 1; show(); say(count.textContent); });
    next.addEventListener("click", () => { page += 1; show(); say(count.textContent); });
    if (all.length > 10) {
      const tools = element("div", "", { class: "tools" });
      const label = element("label", "Filter ");
      const field = element("input", "", { type: "search", autocomplete: "off" });
      field.setAttribute("aria-label", `Filter: ${caption}`);
      let timer = 0;
      field.addEventListener("input", () => {
        clearTimeout(timer);
        timer = setTimeout(() => { wanted = field.value.trim().toLowerCase(); ordered(); say(count.textContent); }, 150);
      });
      label.append(field);
      tools.append(label);
      if (all.length > PAGE) {
        const rowsLabel = element("label", "Rows ");
        const choice = element("select");
        // more rows than this at a time take seconds to lay out
        for (const n of [PAGE, 250, 500]) {
          choice.append(element("option", n.toLocaleString("en"), { value: n }));
        }
        choice.addEventListener("change", () => { size = Number(choice.value); page = 0; show(); say(count.textContent); });
        rowsLabel.append(choice);
        tools.append(rowsLabel, back, next);
      }
      tools.append(count);
      box.prepend(tools);
    }
    show();
  }
  document.querySelectorAll("[data-table]").forEach(sortable);
  document.documentElement.dataset.ready = "";
})();
