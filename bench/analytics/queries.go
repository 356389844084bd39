package main

// query is a query with the least ratio of MariaDB's time to ours that it should have:
// 2 where reading rows is most of the work, 3 where hashing or sorting them is.
type query struct {
	name, text string
	target     float64
}

// Queries have results that do not depend on the order in which rows come.
var queries = []query{
	{"count", "SELECT COUNT(*) FROM sales", 0},
	{"filter and sum", "SELECT COUNT(*), SUM(quantity), SUM(price) FROM sales WHERE quantity < 50 AND sold >= '2021-01-01'", 2},
	{"expressions", "SELECT SUM(price * quantity), AVG(quantity * (1 - discount)), MIN(sold), MAX(price) FROM sales WHERE region <> 3", 2},
	{"LIKE", "SELECT COUNT(*), SUM(quantity) FROM sales WHERE note LIKE '%fjord%meadow%'", 2},
	{"12 groups", "SELECT region, COUNT(*), SUM(price), AVG(quantity), MAX(sold) FROM sales GROUP BY region ORDER BY region", 3},
	{"groups by text", "SELECT product, COUNT(*), SUM(quantity) FROM sales GROUP BY product ORDER BY 3 DESC, product LIMIT 10", 3},
	{"many groups", "SELECT customer, COUNT(*), SUM(price) FROM sales GROUP BY customer ORDER BY 3 DESC, customer LIMIT 10", 3},
	{"groups of two columns", "SELECT COUNT(*), SUM(n) FROM (SELECT customer, region, COUNT(*) AS n FROM sales GROUP BY customer, region) AS d", 3},
	{"DISTINCT on text", "SELECT COUNT(*), MIN(product), MAX(product) FROM (SELECT DISTINCT product FROM sales) AS d", 3},
	{"COUNT(DISTINCT)", "SELECT COUNT(DISTINCT customer), COUNT(DISTINCT note) FROM sales", 3},
	{"join", "SELECT COUNT(*), SUM(c.duration + a.duration) FROM calls AS c JOIN answers AS a ON a.token = c.token", 3},
	{"join by text", "SELECT COUNT(*), SUM(c.duration) FROM calls AS c JOIN answers AS a ON a.line = c.line AND a.duration = c.duration", 3},
	{"first rows", "SELECT id, price, customer FROM sales ORDER BY price DESC, id LIMIT 100", 3},
	{"first rows by text", "SELECT id, note, product FROM sales ORDER BY note DESC, product, id LIMIT 100", 3},
	{"rows in the middle", "SELECT id, price FROM sales ORDER BY price, id LIMIT 1000000, 10", 3},
	{"rows to the client", "SELECT id, customer, sold, price, product FROM sales WHERE quantity < 25", 0},
}
