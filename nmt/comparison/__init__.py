"""Several recipes under one budget: plan, train side by side, measure alike, tabulate."""
