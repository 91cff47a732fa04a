"""Alert rules: the text of a rule becomes safe SQL. Needs no Spark."""
