// Command tpcc is the TPC-C workload for any server that speaks the MySQL protocol: it
// loads the tables, runs the five transactions in their mix without keying and think
// times, and checks the consistency conditions of the specification.
//
//	tpcc -address 127.0.0.1:13306 -user root -warehouses 4 all
//	tpcc beside
//
// Steps: load, check, run, all (load, check, run, check). "beside" starts this database and
// MariaDB (Debian's mariadb-server) with the same memory, does all on both, running in turn,
// and reports the ratios. It exits with 1 if a condition
// is violated or a transaction fails for another reason than those that a client must
// expect. It is no audited implementation: results are comparable with each other only.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"time"

	"github.com/go-sql-driver/mysql"
)

type config struct {
	address, user, password, database string
	warehouses, clients, loaders      int
	ramp, duration                    time.Duration
	seed                              uint64
	foreign                           bool

	// For both servers beside each other.
	rounds, pool         int
	report, binary, only string
	profiles             string
	quick, keep          bool
}

func main() {
	var c config
	flag.StringVar(&c.address, "address", "127.0.0.1:13306", "host:port of the server, or the path of its socket")
	flag.StringVar(&c.user, "user", "root", "user")
	flag.StringVar(&c.password, "password", os.Getenv("MYSQL_PWD"), "password; by default that of MYSQL_PWD")
	flag.StringVar(&c.database, "database", "tpcc", "schema; load makes it if it is not there")
	flag.IntVar(&c.warehouses, "warehouses", 4, "scale: about 100 MB each")
	flag.IntVar(&c.clients, "clients", 8, "terminals at a time")
	flag.IntVar(&c.loaders, "loaders", 2, "connections that load")
	flag.DurationVar(&c.ramp, "ramp", 5*time.Second, "time before measuring")
	flag.DurationVar(&c.duration, "duration", 30*time.Second, "time of measuring")
	flag.Uint64Var(&c.seed, "seed", 1, "of the random data")
	flag.BoolVar(&c.foreign, "foreign-keys", false, "add foreign keys after loading")
	flag.IntVar(&c.rounds, "rounds", 3, "beside: turns of each server")
	flag.IntVar(&c.pool, "pool", 2048, "beside: buffer pool in MiB")
	flag.StringVar(&c.report, "report", "report/tpcc.md", "beside: file to write; empty: none")
	flag.StringVar(&c.binary, "trireme", "", "beside: binary of the server; empty: build it")
	flag.StringVar(&c.only, "only", "", "beside: run one contender only: trireme or mariadb")
	flag.StringVar(&c.profiles, "profiles", "", "beside: directory for CPU profiles of this database, of 5 s each")
	flag.BoolVar(&c.quick, "quick", false, "beside: one warehouse, one short turn, no report")
	flag.BoolVar(&c.keep, "keep", false, "beside: keep the servers' directory")
	flag.Parse()
	if c.quick {
		c.warehouses, c.rounds, c.ramp, c.duration = 1, 1, time.Second, min(c.duration, 5*time.Second)
	}
	if flag.NArg() != 1 || c.warehouses < 1 || c.clients < 1 || c.loaders < 1 || c.rounds < 1 {
		fmt.Fprintln(os.Stderr, "usage: tpcc [flags] load|check|run|all|beside")
		flag.PrintDefaults()
		os.Exit(2)
	}
	debug.SetGCPercent(800) // of a small heap: what the driver does is taken from the servers
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	do := func() error { return c.do(ctx, flag.Arg(0)) }
	if flag.Arg(0) == "beside" {
		do = func() error { return c.beside(ctx) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "tpcc:", err)
		os.Exit(1)
	}
}

func (c *config) open(database string) (*sql.DB, error) {
	m := mysql.NewConfig()
	m.User, m.Passwd, m.Addr, m.DBName = c.user, c.password, c.address, database
	if m.Net = "tcp"; c.address[0] == '/' {
		m.Net = "unix"
	}
	m.MaxAllowedPacket = 16 << 20
	conn, err := mysql.NewConnector(m)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(conn)
	db.SetMaxIdleConns(c.clients + c.loaders)
	return db, nil
}

func (c *config) do(ctx context.Context, step string) error {
	if step == "load" || step == "all" {
		took, err := c.load(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("loaded %d warehouses in %v\n", c.warehouses, took.Round(time.Millisecond))
	}
	db, err := c.open(c.database)
	if err != nil {
		return err
	}
	defer db.Close()
	delivered := 0
	switch step {
	case "load":
		return nil
	case "check":
		return c.check(ctx, db, -1)
	case "all":
		if err := c.check(ctx, db, 0); err != nil {
			return err
		}
	case "run":
		delivered = -1
	default:
		return fmt.Errorf("there is no step %q: load, check, run, all or beside", step)
	}
	r, err := drive(ctx, db, c.warehouses, c.clients, c.ramp, c.duration, c.seed)
	r.print(os.Stdout)
	if err != nil {
		return err
	}
	if delivered = max(delivered, -1); delivered == 0 && !r.unknown {
		delivered = r.delivered
	} else {
		delivered = -1
	}
	return c.check(ctx, db, delivered)
}

// load makes the tables and returns how long filling them took.
func (c *config) load(ctx context.Context) (took time.Duration, err error) {
	db, err := c.open("")
	if err != nil {
		return 0, err
	}
	_, err = db.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS `"+c.database+"`")
	if err = errors.Join(err, db.Close()); err != nil {
		return 0, err
	}
	if db, err = c.open(c.database); err != nil {
		return 0, err
	}
	defer db.Close()
	if err := createSchema(ctx, db); err != nil {
		return 0, err
	}
	begin := time.Now()
	l := &loader{db: db, seed: c.seed, tasks: c.loaders}
	if err := l.run(ctx, c.warehouses); err != nil {
		return 0, err
	}
	took = time.Since(begin)
	if !c.foreign {
		return took, nil
	}
	for _, f := range foreignKeys {
		if _, err := db.ExecContext(ctx, f); err != nil {
			return 0, err
		}
	}
	return took, nil
}

func (c *config) check(ctx context.Context, db *sql.DB, delivered int) error {
	begin := time.Now()
	problems, err := check(ctx, db, c.warehouses, delivered)
	if err != nil {
		return err
	}
	for _, p := range problems {
		fmt.Println(p)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%d of the consistency conditions do not hold", len(problems))
	}
	fmt.Printf("the 12 consistency conditions hold (checked in %v)\n", time.Since(begin).Round(time.Millisecond))
	return nil
}
