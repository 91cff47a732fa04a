"""A page of HTML of what a pipeline found, and the plots of a day; reads without Spark."""
