// A click, or Enter or Space, on the head of a column sorts its table; once more turns the order.
"use strict";
(() => {
  const number = (text) => {
    const plain = text.replace(/[,%\s]/g, "");
    return plain === "" ? NaN : Number(plain);
  };
  const key = (row, column) => row.cells[column].textContent.trim();
  const order = (rows, column) => {
    const filled = rows.map((row) => key(row, column)).filter((text) => text !== "");
    const numeric = filled.every((text) => !Number.isNaN(number(text)));
    return (a, b) =>
      numeric ? number(a) - number(b) : a.localeCompare(b, undefined, { numeric: true });
  };
  const sort = (table, column, ascending) => {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const compare = order(rows, column);
    rows.sort((one, other) => {
      const a = key(one, column);
      const b = key(other, column);
      // Empty cells are the last in either order.
      if (a === "" || b === "") return (a === "") - (b === "");
      return ascending ? compare(a, b) : compare(b, a);
    });
    body.append(...rows);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const ascending = head.getAttribute("aria-sort") !== "ascending";
        for (const other of heads) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sort(table, column, ascending);
      });
    });
  }
})();
