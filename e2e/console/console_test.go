package console

import (
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/triremedb/trireme/e2e/servers"
)

// views are all of them, as the address has them.
var views = []string{"group", "activity", "statements", "storage", "settings", "tables", "sql"}

// hostile is a name that would do harm where it were taken as markup.
const hostile = `<img src=x onerror=alert(1)>"'` + "`;--"

func base(n *servers.Node) string { return fmt.Sprintf("http://127.0.0.1:%d", n.HTTP) }

// TestConsole: what a DBA does with a group of three.
func TestConsole(t *testing.T) {
	g := servers.Test(t, servers.Options{Nodes: 3})
	leader, err := g.Leader(patience)
	if err != nil {
		t.Fatal(err)
	}
	name := "`" + strings.ReplaceAll(hostile, "`", "``") + "`"
	db := servers.Open(t, leader.DSN("", nil))
	for _, text := range []string{"CREATE DATABASE shop", "CREATE DATABASE " + name, "CREATE TABLE shop.fruit (id INT PRIMARY KEY, name VARCHAR(200), price DECIMAL(8,2))",
		"CREATE TABLE " + name + "." + name + " (id INT PRIMARY KEY, " + name + " VARCHAR(100))", "INSERT INTO shop.fruit VALUES (1, 'apple', 0.75), (2, '<script>alert(1)</script>', 1)",
		"CREATE TABLE shop.long (a LONGTEXT, b LONGTEXT, n INT)", "INSERT INTO shop.long WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 60) SELECT REPEAT('x', 70000), REPEAT('y', 70000), n FROM r",
		"CREATE USER clerk IDENTIFIED BY 'clerk'"} {
		if _, err := db.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	if _, err := db.Exec("INSERT INTO "+name+"."+name+" VALUES (1, ?)", hostile); err != nil {
		t.Fatal(err)
	}

	p := browse(t, base(leader))
	p.expect("401") // whoever opens the page is not signed in yet
	p.open(p.base + "/console/")
	p.until("the form", "document.querySelector('form')")
	p.shoot("signin-light")
	p.submit("root", "wrong")
	p.has(".note.bad", "1045")
	p.signIn("root", servers.Password)
	p.until("three members", "document.querySelectorAll('.member').length === 3")
	p.has(".state", "All 3 members are well")
	p.has(".member.leads", "Leader")
	p.until("charts are drawn", "document.querySelectorAll('.chart path').length > 0")

	looks(p)
	statements(p)
	tables(p)
	pages(p)
	large(p, db)
	others(p)
	p.clean("at the leader")

	// The leader dies: another member's console tells who leads then.
	var other *servers.Node
	for _, n := range g.Nodes {
		if n != leader {
			other = n
		}
	}
	q := browse(t, base(other))
	q.expect("401")
	q.signIn("root", servers.Password)
	q.until("it knows the leader", "document.querySelector('.member.leads')")
	before := q.text(".member.leads h2")
	q.visit("sql")
	q.click(".switch input", "")
	q.fill(".editor textarea", "DELETE FROM shop.fruit")
	q.click(".editor button", "Run")
	q.has(".results", "open the console of")
	q.visit("group")
	leader.Kill()
	q.until("another leads", "document.querySelector('.member.leads h2') && document.querySelector('.member.leads h2').innerText !== "+quote(before))
	q.has(".state", "is away")
	q.has(".member.away", "It answered last")
	q.shoot("away")
	q.clean("at another member")
	p.expect("ERR_CONNECTION_REFUSED")
	p.expect("ERR_INCOMPLETE_CHUNKED_ENCODING")
	p.expect("ERR_CONNECTION_RESET")
	p.expect("ERR_EMPTY_RESPONSE")
	p.visit("group")
	p.has(".state", "This node does not answer")
	p.clean("at a dead member")
}

// looks goes through all views, light and dark, wide and narrow.
func looks(p *page) {
	p.t.Helper()
	for _, dark := range []string{"light", "dark"} {
		p.scheme(dark)
		for _, v := range views {
			p.visit(v)
			p.until("the view "+v, "document.querySelector('nav.views a[aria-current]')?.dataset.view === "+quote(v)+" && document.querySelector('main h1')")
			p.until("no view is wider than the page", "document.documentElement.scrollWidth <= innerWidth")
			p.shoot(v + "-" + dark)
		}
		color := "getComputedStyle(document.body).backgroundColor"
		p.until(dark, map[string]string{"light": color + " === 'rgb(245, 247, 249)'", "dark": color + " === 'rgb(14, 20, 25)'"}[dark])
	}
	p.click("#theme", "Light")
	p.until("the switch counts more than the system", "getComputedStyle(document.body).backgroundColor === 'rgb(245, 247, 249)'")
	p.until("it is remembered", "localStorage.getItem('trireme-theme') === 'light'")
	for _, width := range []int64{1360, 375, 320} {
		p.size(width, 800)
		for _, v := range views {
			p.visit(v)
			p.until("the view "+v, "document.querySelector('nav.views a[aria-current]')?.dataset.view === "+quote(v))
			if v == "group" && width == 1360 {
				p.until("the badges of a member are in one line", `[...document.querySelectorAll(".member > header")].every((head) => {
					const middle = [...head.children].map((c) => c.getBoundingClientRect()).map((r) => r.top + r.height / 2);
					return Math.max(...middle) - Math.min(...middle) < 6;
				})`)
			}
			p.until(fmt.Sprintf("%s fits %d", v, width), fmt.Sprintf("innerWidth === %d && document.documentElement.scrollWidth <= innerWidth", width))
			p.shoot(fmt.Sprintf("%s-%d", v, width))
		}
	}
	p.size(1360, 900)
	p.clean("looking")
}

// statements: a SELECT, a write that is refused, one that is allowed.
func statements(p *page) {
	p.t.Helper()
	p.visit("sql")
	run := func(text, want string) {
		p.t.Helper()
		p.fill(".editor textarea", text)
		p.click(".editor button", "Run")
		p.has(".results", want)
	}
	run("SELECT name, price FROM shop.fruit ORDER BY id", "<script>alert(1)</script>")
	run("SELECT name FROM shop.fruit WHERE id = 1", "apple")
	p.shoot("sql-result")
	run("INSERT INTO shop.fruit VALUES (3, 'pear', 1)", "This tab only reads")
	run("SELECT nothing", "1054 (42S22)")
	p.click(".switch input", "")
	p.has("#marks", "writes are allowed")
	run("INSERT INTO shop.fruit VALUES (3, 'pear', 1)", "1 row changed")
	p.shoot("sql-writes")
	p.visit("group")
	p.has("#marks", "writes are allowed")
	p.visit("sql")
	p.click(".switch input", "")
	p.until("the mark is gone", "document.querySelector('#marks').innerText === ''")
	p.fill(".editor textarea", "SELECT SLEEP(600)")
	p.click(".editor button", "Run")
	p.has(".results", "Running")
	p.visit("group")
	p.has(".state", "members are well")
	p.visit("sql") // where it goes on
	p.has(".results", "Running")
	p.click(".editor button", "Cancel")
	p.has(".results", "1317 (70100)")
	p.clean("statements")
}

// tables: what has a hostile name is shown by it.
func tables(p *page) {
	p.t.Helper()
	p.visit("tables/" + url.PathEscape(hostile) + "/" + url.PathEscape(hostile))
	p.has(".browser h2", hostile)
	p.has(".values td:nth-child(2)", hostile)
	for tab, want := range map[string]string{"Columns": hostile, "Indexes": "PRIMARY", "Definition": "CREATE TABLE"} {
		p.click(".tabs button", tab)
		p.has("[role=tabpanel]", want)
	}
	p.until("no markup of theirs", "!document.querySelector('img[src=x]')")
	p.shoot("tables-hostile")
	p.clean("tables")
}

// pages: one of long values is shorter than others, and no row is passed over.
func pages(p *page) {
	p.t.Helper()
	p.visit("tables/shop/long")
	seen := map[string]bool{}
	for {
		p.until("a page", "document.querySelector('.values td.num')")
		var last string
		for _, n := range strings.Fields(p.text(".values tbody")) {
			if len(n) <= 2 && n != "…" {
				seen[n], last = true, n
			}
		}
		if len(seen) >= 60 || last == "" {
			break
		}
		p.click("[role=tabpanel] button", "On")
		p.until("the next page", "![...document.querySelectorAll('.values td.num')].some((td) => td.innerText === "+quote(last)+")")
	}
	p.has("[role=tabpanel]", "to 60,")
	p.clean("pages")
}

// large: a large transaction is seen while it runs, with what each member has of it.
func large(p *page, db *sql.DB) {
	p.t.Helper()
	const shown = "[...document.querySelectorAll('section.panel')].some((s) => !s.hidden && s.querySelector('h2').innerText.startsWith('Large transactions'))"
	p.visit("activity")
	p.until("nothing is shown of it", "document.querySelector('main h1')?.innerText === 'Activity' && !"+shown)
	tx, err := db.Begin()
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec("INSERT INTO shop.long WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 120) SELECT REPEAT(UUID(), 2000), REPEAT(UUID(), 2000), n FROM r"); err != nil {
		p.t.Fatal(err)
	}
	p.until("it is shown of three members", shown+" && document.querySelectorAll('[aria-label=\"Large transactions\"] tbody tr').length === 3")
	p.has("[aria-label='Large transactions']", "growing")
	p.has("[aria-label='Large transactions']", "more frames")
	p.until("no view is wider than the page", "document.documentElement.scrollWidth <= innerWidth")
	p.shoot("large")
	if err := tx.Rollback(); err != nil {
		p.t.Fatal(err)
	}
	p.until("it is over", "!"+shown)
	p.clean("large")
}

// others: who signs in next finds neither the text nor the results of who was there before, not
// even of a run that ended meanwhile.
func others(p *page) {
	p.t.Helper()
	p.visit("sql")
	p.fill(".editor textarea", "SELECT 'mine'; SELECT SLEEP(600)")
	p.until("the browser's list of requests is empty", "performance.clearResourceTimings() ?? true")
	p.click(".editor button", "Run")
	p.has(".results", "Running")
	p.click("button.bare", "Sign out")
	p.submit("clerk", "clerk")
	p.until("signed in", "document.querySelector('nav.views')")
	p.until("the run has ended", "performance.getEntriesByType('resource').some((e) => e.name.endsWith('/sql/run'))")
	p.visit("group")
	p.has(".state", "PROCESS")
	p.visit("sql")
	p.until("the text is gone", "document.querySelector('.editor textarea')?.value === 'SELECT VERSION(), NOW();'")
	p.until("the results are gone", "document.querySelector('.results').innerText === ''")
	p.click("button.bare", "Sign out")
	p.submit("root", servers.Password)
	p.until("signed in again", "document.querySelector('nav.views')")
	p.clean("others")
}
