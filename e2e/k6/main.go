// Command k6 loads a group over gRPC with the k6 scripts beside it, says how that went in a table,
// and fails if a threshold of a script does, or if the group then has other rows than were
// acknowledged. docs/load.md tells what it measures and how to read it.
//
//	make load
//	make load SCENARIO=writes,failover DURATION=1m VUS=16
//	ADDRESS=db1:17000,db2:17000 USERNAME=load PASSWORD=… TLS=true make load
//
// Without ADDRESS it starts three nodes on this machine, whose data it takes away in the end, and
// kills their leader in the scenario failover. It takes its settings from the environment, as the
// scripts do, which run without it, too.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// scenarios are the scripts. All but the last are run if SCENARIO does not say otherwise, on a
// group that is started here; of somebody else's group nobody here kills the leader.
var scenarios = []string{"reads", "writes", "transactions", "mixed", "failover", "soak"}

// config is what the environment says.
type config struct {
	k6        string // the program
	scripts   string // their directory
	scenarios []string
	duration  time.Duration // 0: the scripts' own
	address   string        // empty: a group is started
}

func configure() (*config, error) {
	c := &config{k6: "bin/k6", scripts: "e2e/k6", address: os.Getenv("ADDRESS"), scenarios: scenarios[:5]}
	if c.address != "" {
		c.scenarios = scenarios[:4]
	}
	if list := os.Getenv("SCENARIO"); list != "" {
		c.scenarios = strings.Split(list, ",")
	}
	for _, s := range c.scenarios {
		if !slices.Contains(scenarios, s) {
			return nil, fmt.Errorf("SCENARIO has no %q: there are %s", s, strings.Join(scenarios, ", "))
		}
	}
	if d := os.Getenv("DURATION"); d != "" {
		var err error
		if c.duration, err = time.ParseDuration(d); err != nil || c.duration <= 0 {
			return nil, fmt.Errorf("DURATION is to be a time such as 1m30s, not %q", d)
		}
	}
	return c, nil
}

// length is how long operations go on in a scenario, as the scripts have it.
func (c *config) length(scenario string) time.Duration {
	switch {
	case c.duration != 0:
		return c.duration
	case scenario == "soak":
		return time.Hour
	}
	return 20 * time.Second
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	c, err := configure()
	if err == nil {
		err = c.run(ctx)
	}
	if err != nil {
		cancel()
		fmt.Fprintln(os.Stderr, "k6:", err)
		os.Exit(1)
	}
}

// run runs the scenarios, each on a schema of its own, and prints the table. What fails does not
// keep the others from being run.
func (c *config) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "trireme-load-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t, err := newTarget(ctx, c, dir)
	if err != nil {
		return err
	}
	defer t.close()
	var results []*result
	var missed []string
	var errs []error
	for _, s := range c.scenarios {
		fmt.Fprintf(os.Stderr, "%s, %v …\n", s, c.length(s))
		r, err := c.scenario(ctx, t, s, dir)
		if r != nil {
			results, missed = append(results, r), append(missed, r.missed()...)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s, err))
		}
		if ctx.Err() != nil {
			errs = append(errs, ctx.Err())
			break
		}
	}
	show(os.Stdout, results)
	if len(errs) > 0 {
		errs = append(errs, errors.New(t.lastWords()))
	}
	for _, m := range missed {
		errs = append(errs, errors.New(m))
	}
	return errors.Join(errs...)
}

// scenario runs one and looks whether the group has what was acknowledged.
func (c *config) scenario(ctx context.Context, t *target, name, dir string) (*result, error) {
	file := filepath.Join(dir, name+".json")
	k, err := startK6(ctx, c.k6, filepath.Join(c.scripts, name+".js"), file, t.environment())
	if err != nil {
		return nil, err
	}
	r := &result{scenario: name, length: c.length(name)}
	var aside error
	switch name {
	case "failover":
		aside = t.failLeader(k, r)
	case "soak":
		aside = t.watch(k, r)
	}
	if err := errors.Join(k.wait(), r.read(file)); err != nil {
		_, _ = t.db.Exec(ctx, "DROP DATABASE IF EXISTS "+schema)
		return nil, errors.Join(err, aside)
	}
	return r, errors.Join(aside, t.verify(ctx, r))
}
