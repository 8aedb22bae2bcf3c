"use strict";
/* Draws every chart of the page from the JSON beside it. The tables need none of this. */
(function () {
  const settings = { responsive: true, displayModeBar: false, showTips: false };
  const charts = new Map();

  function heightOf(chart) {
    return Math.round(chart.place.clientWidth * chart.shown.aspect + chart.shown.height);
  }

  function draw(key, position) {
    const chart = charts.get(key);
    const view = chart.views[position];
    chart.shown = view;
    chart.place.style.height = heightOf(chart) + "px";
    return Plotly.react(chart.place, view.data, view.layout, settings);
  }

  for (const place of document.querySelectorAll(".chart")) {
    const key = place.dataset.chart;
    const data = JSON.parse(document.getElementById("data-" + key).textContent);
    charts.set(key, { place, views: data.views });
    draw(key, 0);
  }

  /* Says over each box that more of it is out of sight. A closed one has no width yet. */
  function hint() {
    for (const box of document.querySelectorAll(".scroll")) {
      const chart = box.querySelector(".chart");  // its own least width: it is drawn to fit
      const needed = chart ? parseFloat(chart.style.minWidth) : box.scrollWidth;
      const wide = needed > box.clientWidth + 1 && box.clientWidth > 0;
      box.classList.toggle("wide", wide);
      box.previousElementSibling.hidden = !wide;
    }
  }
  hint();
  addEventListener("toggle", hint, true);

  addEventListener("resize", () => {
    hint();
    for (const chart of charts.values()) {
      chart.place.style.height = heightOf(chart) + "px";
    }
  });

  for (const button of document.querySelectorAll(".views button")) {
    button.addEventListener("click", () => {
      for (const other of button.parentElement.children) {
        other.setAttribute("aria-pressed", String(other === button));
      }
      draw(button.dataset.chart, Number(button.dataset.view));
    });
  }

  addEventListener("beforeprint", () => {
    for (const { place } of charts.values()) {
      Plotly.relayout(place, { width: 660 });
    }
  });
  addEventListener("afterprint", () => {
    for (const { place } of charts.values()) {
      Plotly.relayout(place, { width: null, autosize: true });
    }
  });
})();
