// Comforts of the report. Every page can be read without this file.
(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("scripted");

  // -- theme: the reader's choice, or the system's ------------------------------------------------
  var store = {
    get: function () { try { return window.localStorage.getItem("encore-theme"); } catch (error) { return null; } },
    set: function (value) { try { window.localStorage.setItem("encore-theme", value); } catch (error) { /* not kept */ } }
  };
  var system = window.matchMedia("(prefers-color-scheme: dark)");
  var chosen = store.get();
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  function isDark() { return root.dataset.theme ? root.dataset.theme === "dark" : system.matches; }

  function theme(button) {
    function show() { button.setAttribute("aria-pressed", String(isDark())); }
    button.hidden = false;
    button.addEventListener("click", function () {
      root.dataset.theme = isDark() ? "light" : "dark";
      store.set(root.dataset.theme);
      show();
    });
    system.addEventListener("change", show);
    show();
  }

  function say(text) { document.getElementById("said").textContent = text; }

  // -- copy a command -----------------------------------------------------------------------------
  function copyable(button) {
    function done(worked) {
      button.textContent = worked ? "Copied" : "Press Ctrl+C";
      say(worked ? "Copied" : "The command is selected; press Ctrl+C");
      window.setTimeout(function () { button.textContent = "Copy"; }, 1800);
    }
    function select() {
      var range = document.createRange();
      range.selectNodeContents(button.parentNode.querySelector("code"));
      var selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      var worked = false;
      try { worked = document.execCommand("copy"); } catch (error) { worked = false; }
      done(worked);
    }
    button.addEventListener("click", function () {
      if (navigator.clipboard && window.isSecureContext) {
        navigator.clipboard.writeText(button.dataset.copy).then(function () { done(true); }, select);
      } else {
        select();
      }
    });
  }

  // -- sort the table -----------------------------------------------------------------------------
  function sortable(table) {
    var heads = Array.prototype.slice.call(table.tHead.rows[0].cells);
    function sort(column, direction, numeric) {
      var rows = Array.prototype.slice.call(table.tBodies[0].rows);
      function key(row) { return row.cells[column].dataset.key; }
      rows.sort(function (a, b) {
        var x = key(a), y = key(b);
        if (x === "" || y === "") return (x === "") - (y === "");
        return direction * (numeric ? x - y : x.localeCompare(y));
      });
      rows.forEach(function (row) { table.tBodies[0].appendChild(row); });
    }
    heads.forEach(function (head, column) {
      var button = head.querySelector("button");
      var numeric = button.hasAttribute("data-numeric");
      button.addEventListener("click", function () {
        var now = head.getAttribute("aria-sort");
        var next = now ? (now === "ascending" ? "descending" : "ascending") : numeric ? "descending" : "ascending";
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", next);
        sort(column, next === "ascending" ? 1 : -1, numeric);
      });
    });
  }

  // -- filter papers by words ---------------------------------------------------------------------
  function findable(input) {
    var items = Array.prototype.slice.call(document.querySelectorAll("[data-find]"));
    var papers = document.querySelectorAll(".paper-row[data-find]").length;
    var nothing = document.querySelector(".nothing");
    items.forEach(function (item) { item.words = item.dataset.find.toLowerCase(); });
    input.addEventListener("input", function () {
      var words = input.value.toLowerCase().split(/\s+/);
      items.forEach(function (item) {
        item.hidden = !words.every(function (word) { return item.words.indexOf(word) >= 0; });
      });
      var left = document.querySelectorAll(".paper-row[data-find]:not([hidden])").length;
      nothing.hidden = left > 0;
      say(left + " of " + papers + " papers");
    });
  }

  // -- show the claims of one verdict --------------------------------------------------------------
  function choosable(buttons) {
    var matrix = document.querySelector(".matrix");
    buttons.forEach(function (button) {
      button.addEventListener("click", function () {
        var on = button.getAttribute("aria-pressed") !== "true";
        buttons.forEach(function (other) { other.setAttribute("aria-pressed", "false"); });
        button.setAttribute("aria-pressed", String(on));
        matrix.classList.toggle("chosen", on);
        matrix.querySelectorAll(".cell").forEach(function (cell) {
          cell.classList.toggle("faint", on && cell.dataset.verdict !== button.dataset.only);
        });
      });
    });
  }

  // -- what a cell says: under the pointer, and on focus ---------------------------------------------
  function explained(cells) {
    var tip = document.createElement("div");
    tip.id = "tip";
    tip.setAttribute("role", "tooltip");
    tip.hidden = true;
    document.body.appendChild(tip);
    function hide() { tip.hidden = true; }
    function show(cell) {
      tip.textContent = cell.dataset.tip;
      tip.hidden = false;
      var box = cell.getBoundingClientRect();
      var left = Math.max(8, Math.min(box.left + box.width / 2 - tip.offsetWidth / 2, root.clientWidth - tip.offsetWidth - 8));
      var above = box.top - tip.offsetHeight - 8;
      tip.style.left = left + window.scrollX + "px";
      tip.style.top = (above > 8 ? above : box.bottom + 8) + window.scrollY + "px";
    }
    cells.forEach(function (cell) {
      cell.dataset.tip = cell.title;
      cell.removeAttribute("title");
      cell.setAttribute("aria-describedby", "tip");
      cell.addEventListener("mouseenter", function () { show(cell); });
      cell.addEventListener("focus", function () { show(cell); });
      cell.addEventListener("mouseleave", hide);
      cell.addEventListener("blur", hide);
    });
    document.addEventListener("keydown", function (event) { if (event.key === "Escape") hide(); });
  }

  function all(selector) { return Array.prototype.slice.call(document.querySelectorAll(selector)); }

  document.addEventListener("DOMContentLoaded", function () {
    all("button.theme").forEach(theme);
    all("button.copy").forEach(copyable);
    all("table#papers").forEach(sortable);
    all("input#find").forEach(findable);
    choosable(all("button[data-only]"));
    explained(all("a.cell"));
  });
  window.addEventListener("beforeprint", function () {
    all("details").forEach(function (details) { details.open = true; });
  });
})();
