// Command hostile lets many accounts run the worst statements that they find on a group of three nodes with little
// memory and small disks, and reports what another account's short statements, paced as those of a shop, have of that: how long
// they take alone, beside programs that only take processors, and beside the hostile accounts.
//
//	go -C bench run ./hostile                 # about 14 minutes
//	go -C bench run ./hostile -minutes 1      # a look
//
// It fails if a node has ended, has used more memory than its limit, or holds other rows than the others in the end, or if a commit that the
// shop was told of is missing. As root each node has a disk of its own, of 2 GiB; otherwise the report says that it has none.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/bench/reportfile"
)

type config struct {
	minutes  float64
	accounts int
	rate     int
	idle     int
	flood    int
	disk     int // MiB
	seed     uint64
	report   string
	binary   string

	burn   bool   // this process only takes processors
	attack string // this process is that of the hostile accounts, and reaches the server so
}

const (
	memoryLimit = "1G"
	poolMiB     = 256
	password    = "hostile"
	nodes       = 3
)

func main() {
	var c config
	flag.Float64Var(&c.minutes, "minutes", 10, "length of the part with hostile accounts; the two before it take a fifth of that each")
	flag.IntVar(&c.accounts, "accounts", 60, "hostile accounts, each with its own schema and all rights on it")
	flag.IntVar(&c.rate, "rate", 200, "the shop's statements per second, of 8 clients; every fourth is a commit")
	flag.IntVar(&c.idle, "idle", 5000, "idle connections beside it")
	flag.IntVar(&c.flood, "flood", 20000, "connections that one client opens, again and again")
	flag.IntVar(&c.disk, "disk", 2048, "MiB of a node's disk; needs root")
	flag.Uint64Var(&c.seed, "seed", uint64(time.Now().UnixNano()), "of what the accounts do")
	flag.StringVar(&c.report, "report", "report/hostile.md", "file to write; empty: none")
	flag.StringVar(&c.binary, "trireme", "", "binary of the server; empty: build it")
	flag.BoolVar(&c.burn, "burn", false, "internal: only take processors")
	flag.StringVar(&c.attack, "attack", "", "internal: be the hostile accounts of the server with this data source name")
	flag.Parse()
	if c.burn {
		for {
		}
	}
	if c.attack != "" {
		if err := c.misbehaveUntil(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "hostile accounts:", err)
			os.Exit(1)
		}
		return
	}
	if err := c.run(); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

func (c *config) run() (err error) {
	if c.minutes <= 0 || c.accounts < 1 || c.rate < clients || c.rate > 10_000 {
		return errors.New("-minutes and -accounts must be above 0, -rate 8 to 10000")
	}
	fmt.Fprintln(os.Stderr, "seed", c.seed)
	w, err := c.start()
	if err != nil {
		return errors.Join(err, w.stop())
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := w.load(); err != nil {
		return err
	}
	turn := time.Duration(c.minutes * float64(time.Minute))
	var results []phase
	for _, p := range []struct {
		name   string
		length time.Duration
		beside func(stop <-chan struct{}) error
	}{
		{"nothing", turn / 5, nil},
		{"programs that take processors, two for each", turn / 5, burners},
		{fmt.Sprintf("%d hostile accounts", c.accounts), turn, w.attack},
	} {
		r, err := w.phase(p.name, p.length, p.beside)
		if err != nil {
			return fmt.Errorf("beside %s: %w", p.name, err)
		}
		fmt.Fprintln(os.Stderr, r.row())
		results = append(results, r)
	}
	verdict := w.verdict()
	text := c.text(w, results)
	fmt.Print(text)
	if c.report != "" && verdict == nil {
		verdict = reportfile.Write(c.report, text)
	}
	return verdict
}
