"""Any study as pictures: figures as data, the numbers they show, SVG and PNG, and what an interactive page needs."""
