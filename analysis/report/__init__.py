"""One evaluation in, one page out: HTML, Markdown or JSON."""
